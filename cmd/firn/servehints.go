package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server/daemon"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// serving is what can be done about a problem of a server, in one line, or "".
func (h hinter) serving(p daemon.Problem) string {
	if p.Store != "" {
		return h.lostStore(p.Err, p.Store)
	}
	err := p.Err
	if p.Series == nil {
		var f *ui.Failure
		if errors.As(serveFailure(h.cmd, err), &f) {
			return h.line(f)
		}
		return ""
	}
	var early *lease.NotYetError
	if errors.As(err, &early) {
		return "" // a server waits by itself
	}
	var f *ui.Failure
	if !errors.As((&drawing{p.Series, h}).explain(err), &f) {
		return ""
	}
	var lost *countername.LostNameError
	if errors.As(err, &lost) {
		f.Hint("if %s has ids with a time: list all series of this server in firn.yaml, %s with kind: flake", lost.Name, lost.Name).
			Hint("only if every name that no counter has is one of ids with a time: firn serve --kind flake")
	}
	if errors.As(err, new(*countername.KindError)) || p.Series.Listed && errors.As(err, new(*sequence.EndError)) && len(f.Hints) > 0 {
		f.Hint("then send SIGHUP to this server, or restart it")
	}
	var workers *leaseoptions.RangeError
	if errors.As(err, &workers) {
		f.Hint("this server reads firn.yaml only at SIGHUP: when it says workers: %s there, send SIGHUP to this server, or restart it", workers.Have)
	}
	var copied *sqlite.CopyError
	if errors.As(err, &copied) {
		addHints(f, remedy.Copied(copied))
	}
	if errors.As(err, new(*store.ForgotError)) || errors.As(err, new(*store.OtherStoreError)) || errors.As(err, new(*document.InstanceError)) {
		f.Hint("if the store was recovered since: send SIGHUP to this server, or restart it; it then issues as soon as ids start")
	}
	if refusesLogin(err) {
		f.Hint("if the user or the password is wrong in the address of the store: correct it there, then send SIGHUP to this server where that is firn.yaml, and restart it elsewhere, as it does not read it by itself").
			Hint("if the user is wrong at the store: correct it there; this server then continues")
	}
	return h.line(f)
}

// refusesLogin reports whether a store refuses the user or its password. The adapters say so in
// these words, each of its own server's errors.
func refusesLogin(err error) bool {
	text := err.Error()
	return strings.Contains(text, "the server refuses th") || strings.Contains(text, "the server wants a password")
}

// serveFailure says what can be done about an error that ends firn serve, or a reload of it.
func serveFailure(cmd *cobra.Command, err error) error {
	var f *ui.Failure
	var guard *daemon.GuardError
	var listen *daemon.ListenError
	var said *daemon.PoolError
	var moved *daemon.MovedError
	var one *daemon.SeriesError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.As(err, &guard):
		return guardFailure(guard)
	case errors.As(err, &listen):
		f := ui.Failed("%w", err)
		if listen.Running {
			return f
		}
		return f.Hint("--%s with another place, or off; port 0 takes any that is free", listen.Listener)
	case errors.As(err, &said):
		return ui.Bad("%w", err).Hint("leave out %s; in firn.yaml: series: { NAME: { kind: flake, pool: POOL } }", said.Said.From)
	case errors.As(err, &one):
		return seriesFailures(cmd, err)
	case errors.As(err, &moved):
		return movedFailure(cmd, moved)
	}
	if f := settingFailure(cmd, err); f != nil {
		return f
	}
	return err
}

// guardFailure says how a server lets nobody in but those who may.
func guardFailure(e *daemon.GuardError) error {
	f := ui.Bad("%w", e)
	switch {
	case e.Store:
		return f.Hint("--store %s, or another server that all servers of ids share", serverStore).
			Hint("only if all processes that make these ids are on this host: --store %s", hostStore)
	case e.State:
		return f.Hint("tls.client-ca in firn.yaml; or --insecure-no-auth, if only operators can come there")
	}
	return f.Hint("to make a token, and see what to write into firn.yaml: firn token create NAME").
		Hint("--insecure-no-auth, if only those who may draw can come there")
}

// seriesFailures says what can be done about all series that cannot be opened.
func seriesFailures(cmd *cobra.Command, err error) error {
	var all []*drawing
	var errs []error
	for _, err := range joined(err) {
		var moved *daemon.MovedError
		var one *daemon.SeriesError
		switch {
		case errors.As(err, &moved):
			err = movedFailure(cmd, moved)
		case errors.As(err, &one):
			err = seriesFailure(cmd, one)
		}
		if !errors.As(err, &one) {
			one = &daemon.SeriesError{Series: new(config.Series)}
		}
		if moved != nil {
			one.Series = moved.Series
		}
		all, errs = append(all, &drawing{one.Series, hinter{cmd: cmd}}), append(errs, err)
	}
	return failedTogether(all, errs)
}

// joined are the errors that were joined to err.
func joined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// seriesFailure is an error of a series, with its name and what can be done about it.
func seriesFailure(cmd *cobra.Command, e *daemon.SeriesError) error {
	var f *ui.Failure
	if !errors.As((&drawing{e.Series, hinter{cmd: cmd}}).explain(e.Err), &f) {
		return e
	}
	var renamed *countername.RenamedError
	if errors.As(e.Err, &renamed) {
		(&drawing{e.Series, hinter{cmd: cmd}}).hintRenamed(f, renamed)
	}
	var early *lease.NotYetError
	if errors.As(e.Err, &early) { // and the series gives ids by the settings that it has
		f.Hint("the new settings are not in force, as this server would give no ids until then: send SIGHUP to it again after %s", phrase.Instant(early.StartsAt))
	} else if firn.Retryable(e.Err) || errors.Is(e.Err, context.DeadlineExceeded) { // a start waits for such a store, a reload does not
		f.Hint("the new settings are not in force: when the store answers, send SIGHUP to this server again")
	}
	named := &daemon.SeriesError{Series: e.Series, Err: f.Err}
	return &ui.Failure{Code: f.Code, Err: ui.Rename(named.Error(), e), Hints: f.Hints}
}

// movedFailure says how a server comes back to the store that it had. It offers nothing first
// that begins anew.
func movedFailure(cmd *cobra.Command, e *daemon.MovedError) error {
	next := &drawing{e.Series, hinter{cmd: cmd}}
	var f *ui.Failure
	var one *daemon.SeriesError
	explained := error(nil)
	if errors.As(e.Err, &one) {
		explained = seriesFailure(cmd, one)
	} else {
		explained = next.explain(e.Err)
	}
	if !errors.As(explained, &f) {
		return e.Err
	}
	what := cmp.Or(next.Name, "this server")
	if next.Kind == config.Flake {
		what = "pool " + next.Leasing.Pool
	}
	f = ui.Failed("%s", phrase.WithoutPackage(f.Error())).
		Hint("this server has %s in %s: write that store back into the config, then send SIGHUP again", what, e.Had)
	m := next.missingOf(e.Err)
	if m == nil || m.again == "" {
		return f
	}
	where, flag := "", ""
	if m.where != "" {
		where = ", with " + m.where
	}
	if !next.Across() { // whose stores are those of the config
		flag = remedy.StoreFlag(whichstore.Text(next.URLs[0]))
	}
	return f.Hint("only if %s is to be in %s from now on: stop every process that uses the other store, then: %s%s%s", what, whichstore.Texts(next.Series), m.again, flag, where)
}

// onlyFlakes refuses a --kind that does not say that a name is a flake which no counter has.
func (s *settings) onlyFlakes() error {
	said, ok := s.Said("kind")
	switch {
	case !ok:
		return nil
	case said.Text != config.Flake:
		return ui.Bad("%s %s: firn serve takes flake only: a name that no counter has gives ids with a time", said.From, said.Text).
			Hint("to make a sequence: firn series create NAME --kind sequence").
			Hint("to make a document: firn series create NAME --pattern PATTERN")
	case s.File != nil && len(s.File.Series) > 0:
		return ui.Bad("%s flake is about names that are not listed, and %s lists series: no others are served", said.From, s.File.Path).
			Hint("leave out --kind: firn serve")
	}
	return nil
}
