package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/server/daemon"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// This file says what to type where the settings are wrong.

// settingFailure returns what to say of an error about settings, or nil if it is none. The
// command says which flags a hint may name; it may be nil.
func settingFailure(cmd *cobra.Command, err error) *ui.Failure {
	var value *config.ValueError
	var faults *config.FaultsError
	var options *config.OptionsError
	var pattern *config.PatternError
	var other *config.Error
	switch {
	case errors.As(err, &value):
		return valueFailure(cmd, value)
	case errors.As(err, &faults):
		return ui.Bad("%w", err).Hint("firn config check %s", phrase.ShellWord(faults.Path))
	case errors.As(err, &options):
		return ui.Bad("%w", err)
	case errors.As(err, &pattern):
		var syntax *firn.SyntaxError
		if errors.As(pattern.Err, &syntax) {
			return documentSyntax(pattern.From, syntax)
		}
	case errors.As(err, &other):
		f := ui.Bad("%w", err)
		for _, text := range other.Advice {
			f.Hint("%s", text)
		}
		return f
	}
	return missingSetting(cmd, err)
}

// valueFailure says from where a value is that cannot be.
func valueFailure(cmd *cobra.Command, e *config.ValueError) *ui.Failure {
	var syntax *firn.SyntaxError
	if errors.As(e.Err, &syntax) {
		return syntaxFailure(e.From, syntax)
	}
	f := settingFailure(cmd, e.Err)
	if f != nil && errors.As(e.Err, new(*config.Error)) {
		return f // it says itself what it is about
	}
	if f == nil {
		f = ui.Bad("%w", e.Err)
	}
	f.Err = &config.ValueError{From: e.From, Err: f.Err}
	if errors.As(e.Err, new(*config.NoFileError)) {
		f.Hint("name a file that is there, or leave out %s", e.From)
	}
	return f
}

// missingSetting says what to add where something is not said, or says that what was said
// is not there.
func missingSetting(cmd *cobra.Command, err error) *ui.Failure {
	var find *config.FindError
	var trust *config.TrustError
	var which *config.WhichPoolError
	var unlisted *config.UnlistedPoolError
	var name *config.NoNameError
	var series *config.NoSeriesError
	var pattern *config.NoPatternError
	var there *config.CounterError
	var keys *config.KeysError
	var none *open.NoStoreError
	var implicit *whichstore.DefaultStoreError
	var other *leaseoptions.RangeError
	var host *leaseoptions.HostNameError
	var kind *countername.KindError
	var lost *countername.LostNameError
	var unused *daemon.UnusedError
	f := ui.Bad("%w", err)
	switch {
	case errors.As(err, &find):
		return f.Hint("--config FILE, if it is not that one")
	case errors.As(err, &trust):
		return f.Hint("--config ./%s, if you trust it; or chown, and chmod go-w %s", trust.Path, trust.Path)
	case errors.As(err, &which) && cmd != nil && flagOf(cmd, "pool") == nil:
		return f.Hint("in %s: series: { NAME: { kind: flake, pool: %s } }", which.Path, which.Pools[0])
	case errors.As(err, &which):
		return f.Hint("--pool %s", which.Pools[0])
	case errors.As(err, &unlisted):
		if unlisted.Default != "" {
			return f.Hint("is it pool %s of the store? Then %s", pool.Default, unlisted.Default)
		}
		return f.Hint("to use pool %s of the store, %s", unlisted.Pool, unlisted.Listing)
	case errors.As(err, &name):
		return f.Hint("firn next NAME")
	case errors.As(err, &series):
		return f.Hint("%s", seriesHint(cmd))
	case errors.As(err, &pattern):
		path := "firn next"
		if cmd != nil {
			path = cmd.CommandPath()
		}
		return f.Hint("with your pattern and zone: %s %s --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh", path, phrase.ShellWord(pattern.Series))
	case errors.As(err, &there):
		return otherKindHints(f, there)
	case errors.As(err, &keys):
		return keysFailure(err, keys)
	case errors.As(err, &none):
		return noStoreFailure(err, none.URL)
	case errors.As(err, &implicit):
		return noDefault(err, implicit)
	case errors.As(err, &other):
		return f.Hint("to change the pool: firn pool set %s --workers %s. To keep it: workers: %s in firn.yaml", phrase.ShellWord(other.Pool), other.Want, other.Have)
	case errors.As(err, &host):
		f.Code = ui.ExitFailed
		return f.Hint("to take any free one: --worker recycle")
	case errors.As(err, &kind):
		return kindHints(f, kind)
	case errors.As(err, &lost):
		return lostNameHints(f, lost.Name)
	case errors.As(err, &unused):
		f.Code = ui.ExitFailed
		return f.Hint("if it existed before, or this store was restored or lost: firn series raise %s TEXT, with TEXT the last one given out; the server begins after that", phrase.ShellWord(unused.Series)).
			Hint("only if it is new: SIGHUP to this server begins it")
	}
	return nil
}

// keysFailure says how the keys of a public form are named, or put back.
func keysFailure(err error, e *config.KeysError) *ui.Failure {
	f := ui.Bad("%w", err)
	_, variable := strings.CutPrefix(e.Source, config.KeysFromVariable)
	switch {
	case e.Path != "":
		return f.Hint("write the file that has the keys, or env:NAME, into %s: public: { form: %s, keys: firn.keys }", e.Path, e.Form).
			Hint("%s", firstKey("firn.keys"))
	case e.Source == "":
		return f.Hint("name the file or the variable that has it: --keys FILE, or --keys env:NAME").Hint("%s", firstKey("firn.keys"))
	case variable:
		return f.Hint("%s", keysBack).Hint("only if there never were any: firn public keygen")
	}
	return f.Hint("%s", keysBack).Hint("%s", firstKey(e.Source))
}

// withAdvice is an error about settings with all that can be done about it, in one line.
func withAdvice(err error) string {
	f := settingFailure(nil, err)
	if f == nil {
		return err.Error()
	}
	return strings.Join(append([]string{f.Error()}, hinter{}.lines(f)...), "; ")
}

// noStoreFailure says what to do where the file of a store is not there.
func noStoreFailure(err error, url string) *ui.Failure {
	f := ui.Failed("%w", err).
		Hint("if your programs use another one, name that: two stores make the same ids. If its volume is not mounted, mount it").
		Hint("%s", remedy.Backup(url)).
		Hint("%s", remedy.LostForGood(url))
	path, _ := whichstore.File(url)
	file, err := sqlite.Inspect(path)
	var none *sqlite.MissingDirectoryError
	if errors.As(err, &none) && url != whichstore.Text("") { // the first id makes that of the default file
		f.Hints = missingDirectory(none).Hints
	} else if !errors.As(err, new(*store.ForgotError)) && file.Sidecar == nil { // the hidden file says that there was one
		f.Hint("only if there never was one, the first id makes it: firn next --store %s", phrase.ShellWord(url))
	}
	return f
}

// noDefault says how a store is named where there is no default one.
func noDefault(err error, e *whichstore.DefaultStoreError) *ui.Failure {
	f := ui.Failed("%w", ui.Rename(strings.Replace(err.Error(), "no store is named", "no --store given", 1), err))
	if e.Variable != "" {
		f.Code = ui.ExitUsage
		return f.Hint("give the store to all processes as FIRN_STORE=URL, or unset %s if this user's default file is the right store", e.Variable)
	}
	if e.Err != nil && !e.NoHome {
		return f.Hint("let this user enter and write that directory: another file makes the same ids")
	}
	if e.Container == "" {
		return f.Hint(nameStore)
	}
	return f.Hint("one store for all containers: --store %s, or another server", serverStore).
		Hint("only if all processes that make these ids are on this host, in containers that mount one directory of the host as /ids: --store sqlite:/ids/ids.db")
}

// otherKindHints says how to draw from the counter that the store has by a name.
func otherKindHints(f *ui.Failure, e *config.CounterError) *ui.Failure {
	if strings.HasPrefix(e.From, "--") {
		f.HintOtherKind("to draw from the %s: firn next %s", e.Have, phrase.ShellWord(e.Series))
	} else {
		f.Hint("to draw from the %s: write kind: %[1]s for %s in firn.yaml", e.Have, e.Series)
	}
	return f.Hint("to have a %s, give it another name", e.Kind)
}
