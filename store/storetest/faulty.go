package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

// ErrLost is what a Put returns when its request or its reply was lost.
var ErrLost = errors.New("storetest: no reply from the store")

// A Faulty is a store with a bad connection to it: what happens to its next
// Puts is written in a script. It keeps the contract of package store, so that
// a protocol must live with all it does.
//
// Its methods may be called from many goroutines at once. It starts none, and
// waits for nothing but channels, timers and ctx: it may be used in a bubble of
// testing/synctest, if it was made there.
//
// A Put that met a fault has a Version of the Faulty's own, since it must be
// known before the store below chooses one: read such records through the same
// Faulty or a [Faulty.Handle] of it, not directly.
type Faulty struct {
	link *link

	mu     sync.Mutex // guards the rest
	script []step
	away   error
	hung   chan struct{} // closed when calls go on; nil if they do
}

type step struct {
	key   string // of the Put it is for; empty: any
	fault Fault
}

var _ store.Store = (*Faulty)(nil)

// A Put is one call of Put as it meets a fault.
type Put struct {
	Key   string
	Value []byte
	Cond  store.Condition

	// Version is what is tried.
	Version store.Version

	// Send carries the Put out in the store, now, whatever has happened to the
	// ctx of the call, and returns the store's answer. Each call of Send is one
	// more copy of the request that arrives.
	Send func() (store.Record, error)
}

// Lost returns what a Put returns whose outcome is unknown.
func (p Put) Lost(err error) (store.Record, error) {
	return store.Record{Key: p.Key, Version: p.Version}, err
}

// A Fault answers one Put in place of the store. Those of this package are
// made by functions; a test may write its own.
type Fault func(ctx context.Context, p Put) (store.Record, error)

// NewFaulty returns a handle on s without faults.
func NewFaulty(s store.Store) *Faulty {
	return &Faulty{link: &link{
		store: s,
		above: make(map[store.Version]store.Version),
		below: make(map[store.Version]store.Version),
	}}
}

// Handle returns another handle on the same store, as another process would
// have it: it sees the same records and has a script of its own.
func (f *Faulty) Handle() *Faulty { return &Faulty{link: f.link} }

// Next appends faults to the script. Each Put takes the first that is left, of
// those for any key and for its own. A nil Fault is none.
func (f *Faulty) Next(faults ...Fault) { f.NextOf("", faults...) }

// NextOf is Next for the Puts of one key.
func (f *Faulty) NextOf(key string, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range faults {
		f.script = append(f.script, step{key, fault})
	}
}

// Pending returns how many faults of the script no Put has met yet.
func (f *Faulty) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.script)
}

// Away makes every call fail with err, before anything is sent and before it
// meets a fault, until Away(nil). Calls under way go on.
func (f *Faulty) Away(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

// Hang makes every call wait, before anything is sent and before it meets a
// fault, until resume is called or its ctx ends.
func (f *Faulty) Hang() (resume func()) {
	hung := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hung = hung
	return sync.OnceFunc(func() { close(hung) })
}

// reach returns the error of a store that cannot be reached.
func (f *Faulty) reach(ctx context.Context) error {
	f.mu.Lock()
	hung := f.hung
	f.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away
}

// take removes the first step of the script that is for key.
func (f *Faulty) take(key string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.script, func(s step) bool { return s.key == "" || s.key == key })
	if i < 0 {
		return nil
	}
	fault := f.script[i].fault
	f.script = slices.Delete(f.script, i, i+1)
	return fault
}

// Get implements [store.Store].
func (f *Faulty) Get(ctx context.Context, key string) (store.Record, error) {
	if err := f.reach(ctx); err != nil {
		return store.Record{}, err
	}
	return f.link.get(ctx, key)
}

// List implements [store.Store].
func (f *Faulty) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if err := f.reach(ctx); err != nil {
		return nil, err
	}
	return f.link.list(ctx, prefix)
}

// Durability implements [store.Store].
func (f *Faulty) Durability(ctx context.Context) (store.Durability, error) {
	if err := f.reach(ctx); err != nil {
		return store.Durability{}, err
	}
	return f.link.store.Durability(ctx)
}

// Put implements [store.Store], with the next fault of the script.
func (f *Faulty) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := f.reach(ctx); err != nil {
		return store.Record{}, err
	}
	fault := f.take(key)
	if fault == nil {
		return f.link.put(ctx, key, value, cond, "")
	}
	p := Put{Key: key, Value: slices.Clone(value), Cond: cond, Version: store.NewVersion()}
	p.Send = func() (store.Record, error) {
		return f.link.put(context.WithoutCancel(ctx), key, p.Value, cond, p.Version)
	}
	return fault(ctx, p)
}

// Refuse fails the Put with err before anything is sent.
func Refuse(err error) Fault {
	return func(context.Context, Put) (store.Record, error) { return store.Record{}, err }
}

// LoseRequest loses the request: the Put is never carried out.
func LoseRequest() Fault {
	return func(_ context.Context, p Put) (store.Record, error) { return p.Lost(ErrLost) }
}

// LoseReply carries the Put out and loses the reply, be it a conflict.
func LoseReply() Fault {
	return func(_ context.Context, p Put) (store.Record, error) {
		p.Send()
		return p.Lost(ErrLost)
	}
}

// Delay carries the Put out after one delay, and lets the reply through after
// another. If ctx ends during the first, the Put is never carried out.
func Delay(request, reply time.Duration) Fault {
	return func(ctx context.Context, p Put) (store.Record, error) {
		if err := sleep(ctx, request); err != nil {
			return p.Lost(err)
		}
		r, err := p.Send()
		if e := sleep(ctx, reply); e != nil {
			return p.Lost(e)
		}
		return r, err
	}
}

// Later lets the Put fail at once; it is carried out when release is called,
// which returns the answer that nobody was waiting for any more. More calls of
// release return the same.
func Later() (f Fault, release func() (store.Record, error)) {
	h := newHeld()
	return func(_ context.Context, p Put) (store.Record, error) {
		h.hold(p)
		return p.Lost(ErrLost)
	}, h.release
}

// Twice carries the Put out, lets its reply through, and carries it out once
// more when release is called, as a network does that duplicates requests.
func Twice() (f Fault, release func() (store.Record, error)) {
	h := newHeld()
	return func(_ context.Context, p Put) (store.Record, error) {
		defer h.hold(p)
		return p.Send()
	}, h.release
}

// Freeze holds the request on its way until thaw is called, and carries it out
// then; whoever is still waiting gets the reply. The Put fails when its ctx
// ends, which changes nothing about the request.
func Freeze() (f Fault, thaw func() (store.Record, error)) {
	h := newHeld()
	return func(ctx context.Context, p Put) (store.Record, error) {
		h.hold(p)
		select {
		case <-h.sent:
			return h.record, h.err
		case <-ctx.Done():
			return p.Lost(ctx.Err())
		}
	}, h.release
}

// FreezeReply carries the Put out and holds the reply until thaw is called. The
// Put fails when its ctx ends.
func FreezeReply() (f Fault, thaw func()) {
	thawed := make(chan struct{})
	return func(ctx context.Context, p Put) (store.Record, error) {
		r, err := p.Send()
		select {
		case <-thawed:
			return r, err
		case <-ctx.Done():
			return p.Lost(ctx.Err())
		}
	}, sync.OnceFunc(func() { close(thawed) })
}

// A held Put is one on its way to the store.
type held struct {
	once   sync.Once
	mu     sync.Mutex // guards put
	put    *Put
	sent   chan struct{} // closed when record and err are the answer
	record store.Record
	err    error
}

func newHeld() *held { return &held{sent: make(chan struct{})} }

func (h *held) hold(p Put) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.put != nil {
		panic("storetest: a fault that can be released is for one Put")
	}
	h.put = &p
}

func (h *held) release() (store.Record, error) {
	h.mu.Lock()
	p := h.put
	h.mu.Unlock()
	if p == nil {
		panic("storetest: released before a Put met the fault")
	}
	h.once.Do(func() {
		h.record, h.err = p.Send()
		close(h.sent)
	})
	return h.record, h.err
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A link is what the handles on one store share: which Versions above stand for
// which below. It is locked while a Put is carried out whose Version differs,
// so that nobody reads the record before the names are known.
type link struct {
	store store.Store
	mu    sync.RWMutex
	above map[store.Version]store.Version
	below map[store.Version]store.Version
}

// put sends a Put to the store below; as is its Version above, or empty.
func (l *link) put(ctx context.Context, key string, value []byte, cond store.Condition, as store.Version) (store.Record, error) {
	if as == "" {
		l.mu.RLock()
		defer l.mu.RUnlock()
	} else {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	if v, ok := l.below[cond.Version]; ok {
		cond.Version = v
	}
	r, err := l.store.Put(ctx, key, value, cond)
	if as != "" && r.Version != "" {
		l.above[r.Version] = as
		l.below[as] = r.Version
		r.Version = as
	}
	return r, err
}

func (l *link) get(ctx context.Context, key string) (store.Record, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	r, err := l.store.Get(ctx, key)
	return l.translate(r), err
}

func (l *link) list(ctx context.Context, prefix string) ([]store.Record, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list, err := l.store.List(ctx, prefix)
	for i := range list {
		list[i] = l.translate(list[i])
	}
	return list, err
}

func (l *link) translate(r store.Record) store.Record {
	if v, ok := l.above[r.Version]; ok {
		r.Version = v
	}
	return r
}
