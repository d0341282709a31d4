package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check config, store, clock and pools, and say what to fix",
		Long: `Check what a process that leases would find: the config, the store and what it
promises, the clock, and of each pool the layout, the workers, how long ids go on
while the store is away, what a crash costs now and what a failover does. A line for
each, ok, warn or bad, and what to do.

Nothing is written: no pool is founded and no worker taken. With --pool, only that
pool is looked at; else all of the store and of firn.yaml. Flags of a pool are those
of the commands that lease.

The exit code is 3 if something is bad.`,
		Example: `  firn doctor
  firn doctor --store sqlite:/var/lib/app/ids.db --pool web --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			d := &doctor{out: cmd.OutOrStdout(), hints: hinter{cmd}, json: wantsJSON(cmd), now: time.Now, ended: ctx.Err}
			if err := d.examine(ctx, cmd); err != nil {
				return err
			}
			if err := errors.Join(d.err, ctx.Err()); err != nil {
				return err
			}
			if d.bads > 0 {
				return &ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("%d of %d checks found something bad", d.bads, d.all)}
			}
			return nil
		},
	}
	addStore(cmd)
	addPool(cmd)
	return cmd
}

// A finding is what one check found, as --json prints it.
type finding struct {
	State string `json:"state"`
	Check string `json:"check"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
}

// The states of a finding.
const (
	fine    = "ok"
	warning = "warn"
	wrong   = "bad"
)

// A doctor prints what it finds as it finds it: a store can be slow to answer.
type doctor struct {
	out   io.Writer
	hints hinter
	json  bool
	now   func() time.Time
	ended func() error // not nil: somebody has stopped the doctor
	err   error        // of printing

	all, bads int
}

// say prints a finding, without what to do where nothing is.
func (d *doctor) say(state, check, do, format string, args ...any) {
	f := finding{state, check, fmt.Sprintf(format, args...), d.hints.compose(do)}
	d.all++
	if state == wrong {
		d.bads++
	}
	var err error
	if d.json {
		err = json.NewEncoder(d.out).Encode(f)
	} else {
		text := strings.ReplaceAll(f.Text, "\n", "; ")
		if f.Do != "" {
			text += "; " + f.Do
		}
		_, err = fmt.Fprintf(d.out, "%-4s  %s: %s\n", f.State, f.Check, text)
	}
	d.err = errors.Join(d.err, err)
}

// fails prints an error as a finding that is bad, but what has failed because
// somebody has stopped the doctor.
func (d *doctor) fails(check string, err error) {
	if d.ended() != nil {
		return
	}
	var f *ui.Failure
	if !errors.As(err, &f) {
		f = classify(err)
	}
	d.say(wrong, check, d.hints.line(f), "%s", phrase.WithoutPackage(f.Error()))
}

// examine makes all checks. Its error is that they could not be made.
func (d *doctor) examine(ctx context.Context, cmd *cobra.Command) error {
	d.environment(cmd.Root())
	set := d.config(cmd)
	if set == nil {
		return nil
	}
	d.forms(set)
	d.tickets(ctx, set)
	url := set.StoreURL().Text
	s := d.store(ctx, cmd, url)
	if s == nil {
		return nil
	}
	defer s.Close()
	durability, ok := d.durability(ctx, s)
	if !ok {
		return nil
	}
	d.places(ctx, s, url)
	d.twins(ctx, s)
	d.counters(ctx, s, set, durability)
	return d.pools(ctx, s, set, durability)
}

// forms checks whether the public forms of firn.yaml have their keys.
func (d *doctor) forms(set *settings) {
	if set.File == nil {
		return
	}
	for i := range set.File.Series {
		one := &set.File.Series[i]
		if one.Public == nil {
			continue
		}
		form, err := set.WithKeys(one.Public)
		if err == nil && form.Values["keys"] == "" && one.Answers.Text != "public" {
			continue // only who asks for the form needs the keys
		}
		if f := set.File.KeysMissing(one); f != nil {
			err = f
		}
		if err == nil {
			_, err = form.Open(nil)
		}
		if err != nil {
			d.fails("series "+one.Name.Text+", public", err)
		}
	}
}

// places checks whether the store's counters were made in it. Its pools are checked one by
// one.
func (d *doctor) places(ctx context.Context, st store.Store, url string) {
	for _, check := range []func(context.Context, store.Store) error{open.CheckSequences, open.CheckDocuments} {
		err := check(ctx, st)
		if f := poolFailure(err, poolPlace{url: open.StoreText(url)}); f != nil {
			err = f
		}
		if err != nil {
			d.fails("counters, store", err)
		}
	}
}

// twins says which documents of the store can give out equal texts.
func (d *doctor) twins(ctx context.Context, st store.Store) {
	all, err := document.List(ctx, st)
	if err != nil {
		return // what cannot be read is said elsewhere
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			p, err := document.ParsePattern(a.Pattern)
			q, err2 := document.ParsePattern(b.Pattern)
			if err != nil || err2 != nil || !p.Overlaps(q) {
				continue
			}
			check := fmt.Sprintf("documents %s and %s", a.Name, b.Name)
			if slices.Contains(a.MayEqual, b.Name) || slices.Contains(b.MayEqual, a.Name) {
				d.say(fine, check, "", "their texts may be equal, as --may-repeat says: they must never meet in one table, queue or cache")
				continue
			}
			d.say(warning, check, "use one of them only, and for the others a new document with another pattern; to see them: firn series ls", "their texts may be equal")
		}
	}
}

// tickets checks each store of each ticket of firn.yaml. They are not the store of --store.
func (d *doctor) tickets(ctx context.Context, set *settings) {
	if set.File == nil {
		return
	}
	for i := range set.File.Series {
		one := &set.File.Series[i]
		if !one.Across() {
			continue
		}
		draw, err := set.servedDrawing(one)
		if err != nil {
			d.fails("series "+one.Name.Text, err)
			continue
		}
		for _, url := range draw.URLs {
			check := fmt.Sprintf("series %s, %s", one.Name.Text, fromurl.Redact(open.StoreText(url)))
			if err := d.ticketStore(ctx, draw, url); err != nil {
				d.fails(check, err)
			} else {
				d.say(fine, check, "", "the store has this part of the ticket")
			}
		}
	}
}

// ticketStore returns what is wrong with one store of a ticket. It makes no file.
func (d *doctor) ticketStore(ctx context.Context, draw *drawing, url string) error {
	if path, ok := open.SqliteFile(url); ok && !isFile(path) {
		if f, err := sqlite.Inspect(path); err == nil && f.Sidecar == nil {
			return draw.explain(&sequence.MissingError{Name: draw.Name})
		}
	}
	s, err := open.Store(ctx, url, nil)
	if err != nil {
		return draw.explain(open.AtStore(draw.Series, url, err))
	}
	defer s.Close()
	err = open.AtStore(draw.Series, url, errors.Join(open.CheckSequences(ctx, s), open.Absent(ctx, s, draw.Series, store.Durability{})))
	if err != nil {
		return draw.explain(err)
	}
	return nil
}

// counters looks for the counters of firn.yaml that the store does not have. Those of
// tickets are in other stores.
func (d *doctor) counters(ctx context.Context, st store.Store, set *settings, durability store.Durability) {
	if set.File == nil {
		return
	}
	for i := range set.File.Series {
		one := &set.File.Series[i]
		if one.Kind.Text != config.Sequence && one.Kind.Text != config.Document {
			continue
		}
		draw, err := set.servedDrawing(one)
		if err == nil {
			if err = open.Absent(ctx, st, draw.Series, durability); err != nil {
				err = draw.explain(err)
			}
		}
		if err != nil {
			d.fails("series "+one.Name.Text, err)
		}
	}
}

// config checks the settings. Without them there is no knowing the store.
func (d *doctor) config(cmd *cobra.Command) *settings {
	set, err := loadSettings(cmd)
	var faulty *config.FaultsError
	switch {
	case errors.As(err, &faulty):
		for line := range strings.Lines(faulty.Error()) {
			d.say(wrong, "config", "", "%s", strings.TrimSpace(line))
		}
		return nil
	case err != nil:
		d.fails("config", err)
		return nil
	case set.File == nil:
		d.say(fine, "config", "", "there is no firn.yaml: flags, FIRN_ variables and defaults count")
	default:
		d.say(fine, "config", "", "%s: %s, %d series", set.File.Path, phrase.Plural(len(set.File.Pools), "pool"), len(set.File.Series))
	}
	return set
}

// environment tells of variables that somebody may think firn reads.
func (d *doctor) environment(root *cobra.Command) {
	for _, v := range strayVariables(root, os.Environ()) {
		d.say(warning, "environment", v.do, "%s", v.text())
	}
}

// slowStore is how long a store may take to answer before that is said.
const slowStore = time.Second

// store opens the store, or returns nil if it cannot or must not be opened.
func (d *doctor) store(ctx context.Context, cmd *cobra.Command, url string) *fromurl.Store {
	implicit := ""
	if url == "" {
		path, err := open.DefaultStore()
		if err != nil {
			d.fails("store", err)
			return nil
		}
		url, implicit = "sqlite:"+path, ", the implicit one: ids are unique among the processes of this user on this host"
	}
	if path, ok := open.SqliteFile(url); ok && !d.file(path, url) {
		return nil
	}
	s, err := open.Store(ctx, url, nil)
	if err != nil {
		d.fails("store", forgotten(cmd, err))
		return nil
	}
	begun := d.now()
	if _, err := s.Get(ctx, term.KeyStore); err != nil {
		if d.privileges(ctx, s) {
			d.fails("store", forgotten(cmd, err))
		}
		s.Close()
		return nil
	}
	state, do, took := fine, "", d.now().Sub(begun)
	if took > slowStore {
		state, do = warning, "what keeps it?"
	}
	var other *open.ElsewhereError
	if errors.As(open.Elsewhere(ctx, s, open.ErrNoTable), &other) {
		state, do = warning, elsewhereHint(other)
	}
	d.say(state, "store", do, "%s answers in %s%s", fromurl.Redact(url), took.Round(10*time.Microsecond), implicit)
	return s
}

// Free space on a disk, and size of a write-ahead log, at which that is said.
const (
	littleSpace = 100 << 20
	noSpace     = 1 << 20
	longLog     = 64 << 20
)

// file checks what a SQLite store lies on. It returns whether it can be opened
// without making anything.
func (d *doctor) file(path, url string) bool {
	f, err := sqlite.Inspect(path)
	var forgot *store.ForgotError
	var copied *sqlite.CopyError
	switch {
	case errors.As(err, &copied):
		d.say(wrong, "file", strings.Join(copyHints(copied), "; "), "%s", phrase.WithoutPackage(err.Error()))
		return false
	case errors.As(err, &forgot):
		d.fails("file", hintRecover(classify(err), url, "stop all processes that use it, put back what there is, then: "+recoverCommand(url, false)))
		return false
	case err != nil:
		d.fails("file", err)
		return false
	}
	d.disk(&f)
	for _, name := range f.Left {
		d.say(warning, "file", "remove it", "%s is left over, and nobody reads it", name)
	}
	switch {
	case f.Database == nil:
		do := append([]string{"if there never was one: the first id makes it"}, noFileHints(url, withBackup(url))...)
		d.say(warning, "file", strings.Join(do, "; "), "there is no file %s", f.Path)
		return false
	case f.Sidecar == nil:
		d.say(warning, "file", "the first id writes it, or says what is wrong with the file",
			"the hidden file beside %s is missing, by which it is noticed that it was removed or replaced", f.Path)
		return false
	}
	state, do := fine, ""
	if runtime.GOOS != "windows" && f.Database.Mode().Perm()&0o002 != 0 {
		state, do = warning, "every user of this host can write it: chmod o-w "+phrase.ShellWord(f.Path)
	}
	log := "no write-ahead log"
	if f.Log != nil {
		log = "a write-ahead log of " + phrase.Count(f.Log.Size()) + " bytes"
		if f.Log.Size() > longLog {
			state, do = warning, "some process reads without an end, or was stopped"
		}
	}
	d.say(state, "file", do, "%s, %s bytes, mode %04o, with its hidden file and %s", f.Path, phrase.Count(f.Database.Size()), f.Database.Mode().Perm(), log)
	return true
}

// disk checks the file system.
func (d *doctor) disk(f *sqlite.Files) {
	if f.FileSystem == "overlay" {
		d.say(warning, "disk", "in a container, put it on a volume", "%s is on overlay, which ends with its container", f.Path)
	}
	free, ok := diskFree(f.Path)
	switch {
	case !ok:
		d.say(fine, "disk", "", "%s", f.FileSystem)
	case free < noSpace:
		d.say(wrong, "disk", "free some space", "%s, with %s bytes free", f.FileSystem, phrase.Count(free))
	case free < littleSpace:
		d.say(warning, "disk", "free some space", "%s, with %s MB free", f.FileSystem, phrase.Count(free>>20))
	default:
		d.say(fine, "disk", "", "%s, with %s MB free", f.FileSystem, phrase.Count(free>>20))
	}
}

// durability checks what the store does with a write that it acknowledged, and the
// clock.
func (d *doctor) durability(ctx context.Context, s store.Store) (store.Durability, bool) {
	p, err := s.Durability(ctx)
	if err != nil {
		d.fails("durability", err)
		return p, false
	}
	if p.Durable {
		d.say(fine, "durability", "", "durable: it does not forget what it acknowledged (%s)", p.Why)
	} else {
		d.say(warning, "durability", "firn's guarantee has this condition: docs/guarantees.md",
			"lossy: it can forget what it acknowledged (%s), and ids are unique as long as clocks are right within %s", p.Why, term.Skew)
	}
	before := d.now()
	rec, err := s.Get(ctx, term.KeyStore)
	after := d.now()
	switch ahead, behind := before.Sub(rec.Read), rec.Read.Sub(after); {
	case err != nil:
		d.fails("clock", err)
		return p, false
	case p.LocalClock:
		d.say(fine, "clock", "", "the store's is this host's own, so there is no second opinion of it")
	case rec.Read.IsZero():
		d.say(fine, "clock", "", "the store has none, so there is no second opinion of this host's")
	case ahead > term.Skew:
		d.say(wrong, "clock", "set this host's clock", "this host's is %s ahead of the store's; at most %s is safe", ahead.Round(time.Millisecond), term.Skew)
	case behind > term.Skew:
		d.say(warning, "clock", "set this host's clock", "this host's is %s behind the store's; ids will lag", behind.Round(time.Millisecond))
	default:
		d.say(fine, "clock", "", "this host's and the store's agree within %s", term.Skew)
	}
	return p, d.mayWrite(ctx, s, p)
}

// privileges checks whether a database grants this user all that firn needs of the table. A
// database that does not say which privileges are there counts as one that grants all.
func (d *doctor) privileges(ctx context.Context, s store.Store) bool {
	type granter interface {
		MissingPrivileges(ctx context.Context) (missing, grant string, err error)
	}
	for s != nil {
		if g, ok := s.(granter); ok {
			missing, grant, err := g.MissingPrivileges(ctx)
			if errors.Is(err, store.ErrDenied) {
				d.fails("rights", err)
				return false
			}
			if err != nil || missing == "" {
				return true
			}
			d.say(wrong, "rights", "have the owner of the table run: "+grant, "this user may not %s on the table firn_records", strings.ReplaceAll(missing, ", ", " or "))
			return false
		}
		u, ok := s.(interface{ Unwrap() store.Store })
		if !ok {
			return true
		}
		s = u.Unwrap()
	}
	return true
}

// mayWrite checks whether this user may change records of a store with a server. It asks for
// a change of a version that no record has: a server checks rights first, and changes nothing.
func (d *doctor) mayWrite(ctx context.Context, s store.Store, p store.Durability) bool {
	if p.LocalClock {
		return true // what keeps this user from writing a file is said when it is opened
	}
	if !d.privileges(ctx, s) {
		return false
	}
	_, err := s.Put(ctx, term.KeyStore, []byte(`{"v":1}`), store.Condition{Version: store.NewVersion()})
	if err == nil || errors.Is(err, store.ErrConflict) {
		return true
	}
	d.fails("rights", err)
	return false
}
