package document

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	randv2 "math/rand/v2"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Options of a series. Nil, or any zero field, takes the default, which the
// comment names first.
type Options struct {
	// Zone is the time zone of the date, by its IANA name; none. It has to be
	// there if the pattern has a date, and only then. A program for systems
	// without time zones imports time/tzdata.
	Zone string

	// Step is 1: how many counts one write grants to this process. More of them
	// are fewer writes, and gaps: those in hand are lost when the process is
	// killed, or when the date changes.
	Step int64

	// Lossy accepts a store that may forget what it acknowledged. Texts are then
	// unique at best effort: a write that is lost with a server is noticed by
	// another server's name, and the series stops, but not before.
	Lossy bool

	Logger *slog.Logger // slog.Default()
}

// An OptionError says which option cannot be, and why. It may be one of several
// in what Open returns.
type OptionError struct {
	Option string // in lower case; "pattern" and "series" are the arguments of Open
	Reason string // begins with the option
	Err    error  // a [*SyntaxError] of the pattern
}

func (e *OptionError) Error() string { return "document: " + e.Reason }

// Retryable is false; see firn.Retryable.
func (*OptionError) Retryable() bool { return false }
func (e *OptionError) Unwrap() error { return e.Err }

// Check returns everything that is wrong with a name, a pattern and the options:
// nil, or [*OptionError]s joined. Open begins with it.
func (o *Options) Check(name, pattern string) error {
	_, err := o.rules(name, pattern)
	return err
}

// rules are what the options say.
func (o *Options) rules(name, pattern string) (rules, error) {
	if o == nil {
		o = &Options{}
	}
	r := rules{name: name, step: max(o.Step, 1), lossy: o.Lossy}
	var errs []error
	bad := func(option string, err error, format string, args ...any) {
		errs = append(errs, &OptionError{option, fmt.Sprintf(format, args...), err})
	}
	if err := checkName(name); err != nil {
		bad("series", nil, "%s", err.Error()[len("document: "):])
	}
	var err error
	var wrong *SyntaxError
	if r.pattern, err = ParsePattern(pattern); errors.As(err, &wrong) {
		bad("pattern", wrong, "pattern %q: byte %d: %s", pattern, wrong.Offset, wrong.Reason)
		return r, errors.Join(errs...)
	}
	switch {
	case r.pattern.HasDate() && o.Zone == "":
		bad("zone", nil, "zone: a date needs a time zone, such as Asia/Ho_Chi_Minh or UTC: which day it is differs")
	case !r.pattern.HasDate() && o.Zone != "":
		bad("zone", nil, "zone %s: the pattern %s has no date", o.Zone, pattern)
	case o.Zone != "":
		if r.zone, err = loadZone(o.Zone); err != nil {
			bad("zone", nil, "%s", err)
		}
	}
	if o.Step < 0 || o.Step > maxStep {
		bad("step", nil, "step %d: there can be 1 to %d", o.Step, maxStep)
	}
	return r, errors.Join(errs...)
}

// maxStep is far above what a period's texts are worth losing.
const maxStep = 1_000_000

// zoneName is the zone's IANA name, "" where there is none.
func (r *rules) zoneName() string {
	if r.zone == nil {
		return ""
	}
	return r.zone.String()
}

// Open opens a series. One that is not there is begun on an embedded store only,
// and if that was never restored; elsewhere it could be one that the store has
// forgotten, and [Create] says that there was none. The series outlives ctx;
// Close hands back what is left.
//
// Errors to tell apart, besides the store's: [*OptionError]; [*MissingError];
// [*DefinitionError], the series has another pattern or zone; [*LossyError], the
// store can forget and that is not accepted; [*InstanceError]; [*store.OtherStoreError], the
// store is a copy.
func Open(ctx context.Context, st store.Store, name, pattern string, opts *Options) (*Series, error) {
	r, err := opts.rules(name, pattern)
	if err != nil {
		return nil, err
	}
	p, err := promiseOf(ctx, st, &r)
	if err != nil {
		return nil, err
	}
	s := &Series{store: st, pattern: r.pattern, base: time.Now(), last: none}
	begin := p.NoticesLoss
	if begin {
		rec, err := st.Get(ctx, keyRestored)
		if err != nil {
			return nil, err
		}
		begin = rec.Version == ""
	}
	def, _, err := define(ctx, st, &r, p, begin)
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, st, name, &def, p); err != nil {
		return nil, err
	}
	if !p.Durable && p.Instance != def.Instance {
		return nil, &InstanceError{name, p.Instance, def.Instance}
	}
	if !p.Durable {
		log := slog.Default()
		if opts.Logger != nil { // opts is not nil: it accepts
			log = opts.Logger
		}
		log.Warn("best effort: the store can forget a write it acknowledged, and then texts repeat", "series", name, "why", p.Why)
	}
	s.drawer = newDrawer(r, def, p, s.clocks())
	s.life, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// Create begins a series, and says with that that there was none of its name in
// this store: one that was forgotten would give out its texts again, and so would
// one of another system's texts; [Raise] says what was given out. It reports
// whether the series was begun now; one that is there already has to have this
// pattern and zone. Errors are those of [Open].
func Create(ctx context.Context, st store.Store, name, pattern string, opts *Options) (begun bool, err error) {
	r, err := opts.rules(name, pattern)
	if err != nil {
		return false, err
	}
	p, err := promiseOf(ctx, st, &r)
	if err != nil {
		return false, err
	}
	if err := CheckStore(ctx, st); err != nil {
		return false, err
	}
	def, begun, err := define(ctx, st, &r, p, true)
	if err == nil && def.Store == "" { // now that a record is there, the store can say where it is
		p, err = st.Durability(ctx)
	}
	if err == nil {
		err = settle(ctx, st, name, &def, p)
	}
	return begun, err
}

// promiseOf is the store's promise, if a series may rest on it.
func promiseOf(ctx context.Context, st store.Store, r *rules) (store.Durability, error) {
	p, err := st.Durability(ctx)
	if err == nil && !p.Durable && !r.lossy {
		err = &LossyError{r.name, p.Why}
	}
	return p, err
}

// define reads the definition of a series, or begins it. Of two who do at once
// one is first, and the other reads what that one wrote.
func define(ctx context.Context, st store.Store, r *rules, p store.Durability, begin bool) (def definition, begun bool, err error) {
	for {
		rec, err := st.Get(ctx, keySeries(r.name))
		if err != nil {
			return def, false, err
		}
		if rec.Version != "" {
			def, err := record.Read[definition](rec)
			if err == nil && (def.Pattern != r.pattern.text || def.Zone != r.zoneName()) {
				err = &DefinitionError{r.name, def.Pattern, def.Zone, r.pattern.text, r.zoneName()}
			}
			return def, false, err
		}
		if !begin {
			return def, false, withNames(ctx, st, &MissingError{Series: r.name})
		}
		var id [16]byte
		rand.Read(id[:])
		def := definition{
			V: record.Format, ID: hex.EncodeToString(id[:]), Pattern: r.pattern.text, Zone: r.zoneName(),
			Instance: p.Instance, Store: p.Identity,
		}
		rec, err = st.Put(ctx, keySeries(r.name), record.Encode(def), store.Condition{})
		if err == nil {
			return def, true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return def, false, fmt.Errorf("document: it is unknown whether series %q was begun: %w", r.name, err)
		}
	}
}

// handBack gives back the counts in hand.
func (s *Series) handBack(ctx context.Context) error {
	s.mu.Lock()
	do, left := s.drawer.handBack(), s.drawer.reserved()
	s.drawer.hand, s.drawer.spare = none, nil
	s.mu.Unlock()
	if do.op == stop {
		return nil
	}
	a := perform(ctx, s.store, do)
	if a.err != nil && !errors.Is(a.err, store.ErrConflict) {
		return fmt.Errorf("document: %d reserved numbers of series %q were not handed back: %w", left, s.drawer.name, a.err)
	}
	return nil
}

// pause waits before a write that met so many conflicts in a row, at random, so
// that those who contend come apart.
func pause(ctx context.Context, conflicts int) {
	most := time.Millisecond << min(conflicts, 5)
	t := time.NewTimer(randv2.N(most))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
