package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

func newStoreRestored() *cobra.Command {
	var outage time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use:   "restored",
		Short: "Make a store that has forgotten usable again",
		Long: `Make a store usable again that has forgotten what it acknowledged: after a backup
was put back, or a file was removed or replaced. What it no longer knows of may have
been issued. So it raises the floor of every pool above all that can have been
granted, and takes every worker away from its holder: nothing is issued until the
outage budget and 5 s have passed. Counters, of segments, tickets and serials, have no
clock to tell how far they had gone: they are raised by --numbers.

Stop every process that uses the store before, and start them after. What is there
now is accepted as the store: of SQLite the file at the path; if there is nothing,
an empty one is made. It may be repeated, and is to be after an error.

Grant files may stay where what was put back has their pool: who starts with one goes
on with the old grant, which the floor is above, and then takes a worker anew. Where
the pool itself is lost, remove the grant files before anything is started: a process
ends on one of a pool that the store does not have, and names it.

A restored backup needs it, a replica that was promoted without the last writes of
its primary, and a store that a process says has forgotten.`,
		Example: `  firn store restored --store sqlite:/var/lib/app/ids.db
  firn store restored --store postgres://app@db/app --outage 10m --yes`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := newRestoration(cmd, outage)
			if err != nil {
				return err
			}
			if err := r.explain(cmd.ErrOrStderr(), time.Now()); err != nil {
				return err
			}
			if !yes {
				again := fmt.Sprintf("firn store restored --store %s --yes", shellWord(open.Redact(r.url)))
				if err := mustAsk(cmd.Context(), cmd, r.question(), again); err != nil {
					return err
				}
			}
			return r.run(cmd.Context(), cmd.OutOrStdout(), wantsJSON(cmd))
		},
	}
	addStore(cmd)
	cmd.Flags().DurationVar(&outage, "outage", 0, "the longest outage budget of any process that used the store ("+
		durationText(term.OutageStrict)+", or what firn.yaml or FIRN_OUTAGE say if that is more)")
	addNumbers(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: all processes are stopped, and no other copy of the store will be used")
	return cmd
}

// A restoration is what is to be done to a store.
type restoration struct {
	url      string
	path     string // of the file; empty: it has none
	implicit bool   // nobody named it
	outage   time.Duration
	numbers  int64 // by which counters are raised; 0: nobody said
	counters []restoredCounter
}

func newRestoration(cmd *cobra.Command, outage time.Duration) (*restoration, error) {
	set, err := loadSettings(cmd)
	if err != nil {
		return nil, err
	}
	r := &restoration{url: set.storeURL().text, outage: outage}
	if r.numbers, err = numbersOf(cmd); err != nil {
		return nil, err
	}
	if r.url == "" {
		path, err := implicitStore()
		if err != nil {
			return nil, err
		}
		r.url, r.implicit = "sqlite:"+path, true
	}
	if err := checkStore(r.url); err != nil {
		return nil, badStore(err)
	}
	if path, ok := sqliteFile(r.url); ok {
		r.path = path
	}
	f := cmd.Flags().Lookup("outage")
	if f.Changed && outage < time.Second {
		return nil, bad("%s %s: no process had less than 1s", origin(f), outage)
	}
	// Too little would let ids repeat. So only who says so here has less than the
	// default: a variable is about one process, and others had what they had.
	if !f.Changed || len(f.Annotations[fromVariable]) > 0 {
		r.outage = max(outage, term.OutageStrict)
		if set.file != nil {
			for i := range set.file.pools {
				r.outage = max(r.outage, set.file.pools[i].options().Outage)
			}
		}
	}
	return r, nil
}

// sqliteFile is the path in the URL of a SQLite store.
func sqliteFile(url string) (path string, ok bool) {
	path, ok = strings.CutPrefix(url, "sqlite:")
	return strings.TrimPrefix(path, "//"), ok
}

// explain says what will be done and what that means.
func (r *restoration) explain(w io.Writer, now time.Time) error {
	pause := r.outage + term.Skew
	var b strings.Builder
	fmt.Fprintf(&b, "%s is made usable again:\n", open.Redact(r.url))
	fmt.Fprintf(&b, "  - every process that uses it has to be stopped now: what it issues meanwhile may repeat\n")
	switch fi, err := os.Stat(r.path); {
	case r.path == "":
		fmt.Fprintf(&b, "  - what is in it now is taken for the store; if there is nothing, an empty one is made\n")
	case err == nil:
		fmt.Fprintf(&b, "  - the file there now, of %s and %s bytes, is taken for the store\n"+
			"  - if a copy of this file is in use elsewhere, now or later, both make the same ids: keep one, and remove the others\n", instant(fi.ModTime()), count(fi.Size()))
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintf(&b, "  - there is no file: an empty one is made\n")
	default:
		return err
	}
	fmt.Fprintf(&b, "  - every worker is taken away from its holder\n")
	fmt.Fprintf(&b, "  - nothing is issued for about %s: %s of outage budget and %s of clock error\n",
		durationText(pause), durationText(r.outage), durationText(term.Skew))
	fmt.Fprintf(&b, "    (that is until %s, or longer where a pool's record knows of a longer budget; --outage if some process had one)\n", now.Add(pause).UTC().Format(time.RFC3339))
	_, err := io.WriteString(w, b.String())
	return err
}

// question is what somebody has to answer with yes before the store is made usable
// again. A server has one address, and a file may have been copied.
func (r *restoration) question() string {
	if r.path == "" {
		return "Are all processes stopped?"
	}
	return "Are all processes stopped, and will no other copy of the file be used?"
}

// A restoredLine is a pool, or the store itself, as --json prints it.
type restoredLine struct {
	Store   string `json:"store,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Floor   string `json:"floor"`
	Workers int    `json:"workers_rewritten"`
}

// run does it.
func (r *restoration) run(ctx context.Context, out io.Writer, asJSON bool) (err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if r.implicit {
		if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
			return err
		}
	}
	var pools []lease.Restoration
	var all term.Store
	raise := func(s store.Store) error {
		pools, all, err = r.raise(ctx, s)
		return err
	}
	if r.path != "" {
		err = sqlite.Restored(ctx, r.path, func(s *sqlite.Store) error { return raise(s) })
	} else {
		err = r.withServer(ctx, raise)
	}
	if err != nil {
		return err
	}
	lines := []restoredLine{{Store: open.Redact(r.url), Floor: instant(all.Floor)}}
	for _, p := range pools {
		lines = append(lines, restoredLine{Pool: p.Pool, Floor: instant(p.Floor), Workers: p.Workers})
	}
	if err := printRestored(out, lines, asJSON); err != nil {
		return err
	}
	return printCounters(out, r.counters, asJSON)
}

// raise raises every counter and every floor, and reads back the store's.
func (r *restoration) raise(ctx context.Context, s store.Store) (pools []lease.Restoration, all term.Store, err error) {
	if r.counters, err = raiseCounters(ctx, s, r.numbers); err != nil {
		return nil, all, signalled(ctx, err)
	}
	if pools, err = lease.Restored(ctx, s, r.outage); err != nil {
		return pools, all, signalled(ctx, classify(fmt.Errorf("%w; %s done", err, plural(len(pools), "pool"))).
			hint("firn store restored --store %s again, before anything is started", shellWord(open.Redact(r.url))))
	}
	rec, err := s.Get(ctx, term.KeyStore)
	if err == nil {
		all, err = term.ReadStore(rec)
	}
	return pools, all, err
}

// withServer calls f with the store, which has a server.
func (r *restoration) withServer(ctx context.Context, f func(store.Store) error) error {
	s, err := open.URL(ctx, r.url)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

func printRestored(out io.Writer, lines []restoredLine, asJSON bool) error {
	enc := json.NewEncoder(out)
	for _, l := range lines {
		var err error
		switch {
		case asJSON:
			err = enc.Encode(l)
		case l.Store != "":
			_, err = fmt.Fprintf(out, "%s is usable again; what is founded later issues nothing before %s\n", l.Store, l.Floor)
		default:
			_, err = fmt.Fprintf(out, "pool %s: nothing is issued before %s; %s rewritten\n", l.Pool, l.Floor, plural(l.Workers, "record"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forgotten adds to the error of a store that forgot what makes it usable again.
func forgotten(cmd *cobra.Command, err error) error {
	var forgot *store.ForgotError
	if !errors.As(err, &forgot) {
		return err
	}
	var f *failure
	if !errors.As(err, &f) {
		f = classify(err)
	}
	var copied *sqlite.CopyError
	if errors.As(err, &copied) {
		for _, hint := range copyHints(copied) {
			f = f.hint("%s", hint)
		}
		return f
	}
	var file *lease.GrantFileError
	if errors.As(err, &file) { // repaired or not, the store will not have that pool again
		return f.hint("if firn store restored has run: rm %s", shellWord(file.Path))
	}
	url := forgot.Store
	if !strings.HasPrefix(url, "sqlite:") { // it is the name of a pool
		set, err := loadSettings(cmd)
		if err == nil {
			url = set.storeURL().text
		}
		if path, err := implicitStore(); url == "" && err == nil {
			url = "sqlite:" + path
		}
	}
	return f.hint("stop all who use it, put back what there is, then: firn store restored --store %s", shellWord(open.Redact(url)))
}

// copyHints are what to do about a file that may be one of two copies. To recover is
// the last of them: it accepts the file, and knows nothing of the others.
func copyHints(e *sqlite.CopyError) []string {
	hints := []string{"if the original is still there, use that one: two copies of a store make the same ids"}
	if e.Alone {
		hints = append(hints, "if you moved the file, move its hidden file too: mv OLD_DIRECTORY/"+filepath.Base(e.Sidecar)+" "+shellWord(filepath.Dir(e.Path)))
	}
	return append(hints, "only if the original and every other copy are gone for good: stop all who use this one, then: firn store recover --store "+shellWord("sqlite:"+e.Path))
}
