package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// A broken store is a store in memory with one bug, or none.
type broken struct {
	bug     string
	mu      sync.Mutex
	records map[string]store.Record
	writes  int
	offset  time.Duration
	removed bool
	told    bool // that it was removed

	before  map[string]store.Record // what was there before the last Put
	dirty   map[string]store.Record // what is being written
	writing map[string]int          // Puts under way
	pending []pending               // Puts that will be carried out
}

// A pending Put is carried out before one of the next calls of anybody.
type pending struct {
	calls int // before that
	put   func()
}

// A handle is what one process has of a broken store.
type handle struct {
	*broken
	mu    sync.Mutex
	cache map[string]store.Record
	dead  bool
	shaky bool
}

func (b *broken) has(bug string) bool { return b.bug == bug }

// backend is what open returns to a check.
func (b *broken) backend() Backend {
	b.records = make(map[string]store.Record)
	b.before = make(map[string]store.Record)
	b.dirty = make(map[string]store.Record)
	b.writing = make(map[string]int)
	return Backend{
		Open:       func(testing.TB) store.Store { return &handle{broken: b, cache: make(map[string]store.Record)} },
		Durable:    true,
		LocalClock: true, NoticesLoss: true,
		NoClock: strings.HasPrefix(b.bug, "no clock"),
		Checkpoint: func(testing.TB) func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			records, writes := maps.Clone(b.records), b.writes
			return func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.records, b.writes = maps.Clone(records), writes
			}
		},
		Advance: func(_ testing.TB, d time.Duration) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.offset += d
		},
		Shaky: func(testing.TB) store.Store { return &handle{broken: b, shaky: true} },
		Remove: func(testing.TB) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.removed = true
			if b.has("removed starts anew") {
				b.removed, b.records = false, make(map[string]store.Record)
			}
		},
	}
}

func (b *broken) now() time.Time {
	now := time.Now().Add(b.offset)
	switch {
	case b.has("times in seconds"):
		return now.Truncate(time.Second)
	case b.has("times of another zone"):
		return now.Add(2 * time.Hour)
	case b.has("time stands still"):
		return time.Now().Truncate(time.Hour)
	case b.has("time runs fast"):
		return now.Add(time.Duration(now.UnixNano() % int64(time.Hour)))
	case b.NoClock():
		return time.Time{}
	}
	return now.Round(0)
}

// NoClock says whether this store has none.
func (b *broken) NoClock() bool {
	return b.has("no clock") || b.has("no clock but judges")
}

func (b *broken) key(key string) string {
	switch {
	case b.has("keys without case"):
		return strings.ToLower(key)
	case b.has("keys as paths"):
		return strings.TrimSuffix(key, "/")
	case b.has("keys cut"):
		return key[:min(len(key), 191)]
	}
	return key
}

func (b *broken) gone() error {
	if !b.removed {
		return nil
	}
	switch {
	case b.has("removed is told once") && b.told:
		return nil
	case b.has("removed is an outage"):
		return errors.New("away")
	}
	b.told = true
	return &store.ForgotError{Store: "broken", What: "removed"}
}

// rightly is the name of a store without a bug which shows what the contract
// allows: that a Put of unknown outcome is carried out after other calls, or, of
// those that are lost on the way, never.
const rightly = "rightly late"

// later has a Put carried out later, under the condition it was made with.
func (h *handle) later(key string, value []byte, cond store.Condition) store.Version {
	r := store.Record{Value: slices.Clone(value), Version: store.NewVersion()}
	h.pending = append(h.pending, pending{calls: rand.N(4), put: func() {
		if r.Written = h.now(); h.holds(h.records[key], cond, r.Written) {
			h.records[key] = r
		}
	}})
	return r.Version
}

// catchUp carries out what is due.
func (b *broken) catchUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = slices.DeleteFunc(b.pending, func(p pending) bool {
		if p.calls == 0 {
			p.put()
		}
		return p.calls == 0
	})
	for i := range b.pending {
		b.pending[i].calls--
	}
}

func (h *handle) check(ctx context.Context, key string) error {
	h.catchUp()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return errors.New("broken connection")
	}
	if err := ctx.Err(); err != nil && !h.has("ctx ignored") {
		h.dead = h.has("cancelled breaks the handle")
		return err
	}
	if h.has("any key") {
		return nil
	}
	return store.CheckKey(key)
}

func (h *handle) Get(ctx context.Context, key string) (store.Record, error) {
	if err := h.check(ctx, key); err != nil {
		return store.Record{}, err
	}
	h.broken.mu.Lock()
	defer h.broken.mu.Unlock()
	if err := h.gone(); err != nil {
		return store.Record{}, err
	}
	r, ok := h.records[h.key(key)]
	if !ok && h.has("never written is an error") {
		return store.Record{}, errors.New("not found")
	}
	if h.has("reads are cached") {
		if old, ok := h.cache[key]; ok {
			return old, nil
		}
		defer func() { h.cache[key] = r }()
	}
	switch old, now := h.before[key], h.now(); {
	case h.has("reads lag") && now.Sub(r.Written) < time.Millisecond:
		r = old
	case h.has("reads what is not written") && h.dirty[key].Version != "":
		r = h.dirty[key]
	}
	return h.out(key, r), nil
}

func (b *broken) out(key string, r store.Record) store.Record {
	r.Key, r.Read = key, b.now()
	if !b.has("values handed out") {
		r.Value = slices.Clone(r.Value)
	}
	return r
}

func (h *handle) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := h.check(ctx, key); err != nil {
		if ctx.Err() != nil && h.has(rightly) {
			h.broken.mu.Lock()
			defer h.broken.mu.Unlock()
			return store.Record{Version: h.later(key, value, cond)}, err
		}
		if ctx.Err() != nil && h.has("cancelled is a conflict") || h.has("bad key is a conflict") {
			return store.Record{}, store.ErrConflict
		}
		return store.Record{}, err
	}
	limit := store.MaxValue
	switch {
	case h.has("values of any size"):
		limit = 1 << 30
	case h.has("values below 64 KiB"):
		limit--
	}
	if len(value) > limit {
		return store.Record{}, errors.New("too long")
	}
	if strings.HasPrefix(h.bug, "late") {
		time.Sleep(rand.N(200 * time.Microsecond))
	}
	if h.has("checked before locked") {
		h.broken.mu.Lock()
		old := h.records[key]
		h.broken.mu.Unlock()
		time.Sleep(time.Millisecond)
		if old.Version != cond.Version {
			return store.Record{}, store.ErrConflict
		}
	}
	h.broken.mu.Lock()
	defer h.broken.mu.Unlock()
	h.meanwhile(key, value)
	if h.shaky && h.has("shaky loses requests only") && rand.N(3) == 0 {
		return store.Record{Version: store.NewVersion()}, errors.New("lost")
	}
	if err := h.gone(); err != nil {
		return store.Record{}, err
	}
	if h.has(rightly) {
		if err := h.lost(ctx); err != nil {
			return store.Record{Version: h.later(key, value, cond)}, err
		}
	}
	return h.put(ctx, key, value, cond)
}

// meanwhile gives others a look at a store in which a Put is under way.
func (h *handle) meanwhile(key string, value []byte) {
	switch h.bug {
	case "reads what is not written", "list misses what is written", "list mixes writes":
	default:
		return
	}
	h.dirty[key] = store.Record{Value: value, Version: store.NewVersion()}
	h.writing[key]++
	h.broken.mu.Unlock()
	time.Sleep(rand.N(time.Millisecond))
	h.broken.mu.Lock()
	delete(h.dirty, key)
	h.writing[key]--
}

func (h *handle) put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	old, now := h.records[h.key(key)], h.now()
	if !h.holds(old, cond, now) {
		if h.has("conflicts write") {
			h.records[key] = store.Record{Value: value, Version: store.NewVersion(), Written: now}
		}
		if h.has("conflicts are silent") {
			return h.out(key, old), nil
		}
		return store.Record{}, store.ErrConflict
	}
	if h.has("conflicts by chance") && rand.N(20) == 0 {
		return store.Record{}, store.ErrConflict
	}
	r := store.Record{Value: h.in(value), Version: h.version(old, value), Written: now}
	if h.has("written when created") && old.Version != "" {
		r.Written = old.Written
	}
	if h.has("acknowledged before written") {
		go func() {
			time.Sleep(time.Millisecond)
			h.broken.mu.Lock()
			defer h.broken.mu.Unlock()
			h.records[h.key(key)] = r
		}()
		return h.out(key, r), nil
	}
	h.before[key] = old
	h.records[h.key(key)] = r
	if err := h.lost(ctx); err != nil {
		switch h.bug {
		case "late success comes again":
			h.again(key, r)
		case "late success is undone":
			h.again(key, old)
		case "late success is a conflict":
			return store.Record{}, store.ErrConflict
		case "late success tried another":
			return store.Record{Version: store.NewVersion()}, err
		case "late success is forgotten":
			return store.Record{}, err
		case "lost replies are resent":
			return h.put(ctx, key, value, cond)
		}
		return store.Record{Version: r.Version}, err
	}
	switch {
	case h.has("returns no value"):
		r.Value = nil
	case h.has("returns what it was given"):
		r.Key, r.Read, r.Value = key, now, value
		return r, nil
	case h.has("returns the old record") && old.Version != "":
		r = old
	}
	return h.out(key, r), nil
}

// again writes a record over whatever is there by then.
func (h *handle) again(key string, r store.Record) {
	time.AfterFunc(rand.N(5*time.Millisecond), func() {
		h.broken.mu.Lock()
		defer h.broken.mu.Unlock()
		h.records[key] = r
	})
}

// lost returns an error if a reply does not come through.
func (h *handle) lost(ctx context.Context) error {
	if h.shaky && !strings.HasPrefix(h.bug, "shaky loses") && rand.N(3) == 0 {
		return errors.New("lost")
	}
	if strings.HasPrefix(h.bug, "late") || h.has(rightly) {
		return ctx.Err()
	}
	return nil
}

func (b *broken) in(value []byte) []byte {
	switch {
	case b.has("values kept"):
		return value
	case b.has("values tidied"):
		var buf bytes.Buffer
		if json.Compact(&buf, value) == nil {
			return buf.Bytes()
		}
	case b.has("values parsed"):
		var v any
		if json.Unmarshal(value, &v) == nil {
			if out, err := json.Marshal(v); err == nil {
				return out
			}
		}
	}
	return slices.Clone(value)
}

func (b *broken) version(old store.Record, value []byte) store.Version {
	switch {
	case b.has("version counts the record"):
		var n int
		fmt.Sscan(string(old.Version), &n)
		return store.Version(fmt.Sprint(n + 1))
	case b.has("version counts the store"):
		b.writes++
		return store.Version(fmt.Sprint(b.writes))
	case b.has("version of the value"):
		return store.Version(fmt.Sprintf("%x", sha256.Sum256(value)))
	}
	return store.NewVersion()
}

func (b *broken) holds(old store.Record, cond store.Condition, now time.Time) bool {
	equal := old.Version == cond.Version
	switch {
	case b.has("version ignored"):
		equal = true
	case b.has("version ignored if zero"):
		equal = equal || cond.Version == ""
	case b.has("version without case"):
		equal = strings.EqualFold(string(old.Version), string(cond.Version))
	case b.has("version without spaces"):
		equal = string(old.Version) == strings.TrimSpace(string(cond.Version))
	case b.has("checked before locked"):
		equal = true
	}
	within := cond.Within == 0 || cond.Within > 0 && now.Sub(old.Written) <= cond.Within
	switch {
	case b.has("within ignored"), b.has("no clock"):
		within = true
	case b.has("no clock but judges"):
		within = cond.Within == 0
	case b.has("within negative is none"):
		within = within || cond.Within < 0
	case b.has("within for ever on creation"):
		within = within || old.Version == ""
	case b.has("within by our clock"):
		within = cond.Within == 0 || time.Since(old.Written) <= cond.Within && cond.Within > 0
	}
	return equal && within
}

func (h *handle) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if err := h.check(ctx, "list"); err != nil {
		return nil, err
	}
	h.broken.mu.Lock()
	defer h.broken.mu.Unlock()
	if err := h.gone(); err != nil {
		return nil, err
	}
	var list []store.Record
	for key, r := range h.records {
		if h.begins(key, prefix) {
			switch {
			case h.has("list lags") && h.now().Sub(r.Written) < time.Millisecond:
				r = h.before[key]
			case h.has("list misses what is written") && h.writing[key] > 0:
				continue
			case h.has("list mixes writes") && h.writing[key] > 0:
				r.Value = h.dirty[key].Value
			}
			list = append(list, h.out(key, r))
		}
	}
	slices.SortFunc(list, func(a, b store.Record) int {
		if h.has("list sorted without case") {
			return strings.Compare(strings.ToLower(a.Key), strings.ToLower(b.Key))
		}
		return strings.Compare(a.Key, b.Key)
	})
	switch {
	case h.has("list cut"):
		list = list[:min(len(list), 100)]
	case h.has("list of keys"):
		for i := range list {
			list[i].Value = nil
		}
	case h.has("list backwards"):
		slices.Reverse(list)
	}
	return list, nil
}

func (b *broken) begins(key, prefix string) bool {
	switch {
	case b.has("prefix without case"):
		return strings.HasPrefix(strings.ToLower(key), strings.ToLower(prefix))
	case b.has("prefix is LIKE"):
		return like(key, prefix+"%")
	case b.has("prefix is a path"):
		return prefix == "" || key == prefix || strings.HasPrefix(key, strings.TrimSuffix(prefix, "/")+"/")
	}
	return strings.HasPrefix(key, prefix)
}

// like is the operator of SQL.
func like(s, pattern string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] == '%' {
		return like(s, pattern[1:]) || s != "" && like(s[1:], pattern)
	}
	return s != "" && (pattern[0] == '_' || pattern[0] == s[0]) && like(s[1:], pattern[1:])
}

func (h *handle) Durability(ctx context.Context) (store.Durability, error) {
	if err := h.check(ctx, "durability"); err != nil {
		return store.Durability{}, err
	}
	h.broken.mu.Lock()
	defer h.broken.mu.Unlock()
	if err := h.gone(); err != nil {
		return store.Durability{}, err
	}
	p := store.Durability{Durable: true, Why: "in memory", LocalClock: true, NoticesLoss: true}
	switch {
	case h.has("promises less"):
		p.Durable = false
	case h.has("promises without a reason"):
		p.Why = ""
	case h.has("promises another's clock"):
		p.LocalClock = false
	case h.has("promises to notice nothing"):
		p.NoticesLoss = false
	}
	return p, nil
}
