package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/trouble"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
)

// slowStore is how long a store may take to answer before that is said.
const slowStore = time.Second

// store opens the store, or returns nil if it cannot or must not be opened.
func (e *exam) store(ctx context.Context) *fromurl.Store {
	url, implicit := e.set.StoreURL().Text, ""
	if url == "" {
		path, err := whichstore.Default()
		if err != nil {
			e.fails("store", err)
			return nil
		}
		url, implicit = "sqlite:"+path, ", the implicit one: ids are unique among the processes of this user on this host"
	}
	e.url = url
	if path, ok := whichstore.File(url); ok && !e.file(path, url) {
		return nil
	}
	s, err := open.Store(ctx, url, nil)
	if err != nil {
		e.away(err)
		return nil
	}
	begun := e.now()
	if _, err := s.Get(ctx, term.KeyStore); err != nil {
		if e.privileges(ctx, s) {
			e.silent(ctx, s, err)
		}
		s.Close()
		return nil
	}
	state, do, took := OK, "", e.now().Sub(begun)
	if took > slowStore {
		state, do = Warning, "check the load of the store, and the network"
	}
	var other *cause.ElsewhereError
	if errors.As(cause.Elsewhere(ctx, s, cause.ErrNoTable), &other) {
		state, do = Warning, remedy.Elsewhere(other)
	}
	e.say(state, "store", do, "%s answers in %s%s", fromurl.Redact(url), took.Round(10*time.Microsecond), implicit)
	return s
}

// away reports a store that cannot be opened or read.
func (e *exam) away(err error) {
	f := failure("store", err)
	if trouble.Passes(err) {
		f.Do = "bring the store back, and restart no process: those that run continue for up to their outage budget, and a process that starts needs the store"
	}
	e.report(f)
}

// durability checks what the store does with a write that it acknowledged, the clock, and the
// rights of this user.
func (e *exam) durability(ctx context.Context, s store.Store) (store.Durability, bool) {
	p, err := s.Durability(ctx)
	if err != nil {
		e.fails("durability", err)
		return p, false
	}
	if p.Durable {
		e.say(OK, "durability", "", "durable: it keeps every write that it acknowledged (%s)", p.Why)
	} else {
		e.say(Warning, "durability", "firn's guarantee has this condition: docs/guarantees.md; to do without the condition, "+remedy.Durable(e.url)[0],
			"lossy: it can lose a write that it acknowledged (%s), and ids are unique as long as clocks are right within %s", p.Why, term.Skew)
	}
	return p, e.clock(ctx, s, p) && e.mayWrite(ctx, s, p)
}

// clock compares this host's clock with the store's.
func (e *exam) clock(ctx context.Context, s store.Store, p store.Durability) bool {
	before := e.now()
	rec, err := s.Get(ctx, term.KeyStore)
	after := e.now()
	switch ahead, behind := before.Sub(rec.Read), rec.Read.Sub(after); {
	case err != nil:
		e.fails("clock", err)
		return false
	case p.LocalClock:
		e.say(OK, "clock", "", "the store's is this host's own, so there is no second opinion of it")
	case rec.Read.IsZero():
		e.say(OK, "clock", "", "the store has none, so there is no second opinion of this host's")
	case ahead > term.Skew:
		e.say(Bad, "clock", remedy.WrongClock, "this host's is %s ahead of the store's, and at most %s is safe: one of the two is wrong", ahead.Round(time.Millisecond), term.Skew)
	case behind > term.Skew:
		e.say(Warning, "clock", remedy.WrongClock, "this host's is %s behind the store's: one of the two is wrong, and if it is this host's, its ids lag", behind.Round(time.Millisecond))
	default:
		e.say(OK, "clock", "", "this host's and the store's agree within %s", term.Skew)
	}
	return true
}

// privileges checks whether a database grants this user all that firn needs of the table. A
// database that does not say which privileges are there counts as one that grants all.
func (e *exam) privileges(ctx context.Context, s store.Store) bool {
	type granter interface {
		MissingPrivileges(ctx context.Context) (missing, grant string, err error)
	}
	for s != nil {
		if g, ok := s.(granter); ok {
			missing, grant, err := g.MissingPrivileges(ctx)
			if errors.Is(err, store.ErrDenied) {
				e.fails("rights", err)
				return false
			}
			if err != nil || missing == "" {
				return true
			}
			e.say(Bad, "rights", "have the owner of the table run: "+grant, "this user may not %s on the table firn_records", strings.ReplaceAll(missing, ", ", " or "))
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
func (e *exam) mayWrite(ctx context.Context, s store.Store, p store.Durability) bool {
	if p.LocalClock {
		return true // what keeps this user from writing a file is said when it is opened
	}
	if !e.privileges(ctx, s) {
		return false
	}
	_, err := s.Put(ctx, term.KeyStore, []byte(`{"v":1}`), store.Condition{Version: store.NewVersion()})
	if err == nil || errors.Is(err, store.ErrConflict) {
		return true
	}
	e.fails("rights", err)
	return false
}
