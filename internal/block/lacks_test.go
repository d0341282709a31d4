package block_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Each sign that the store has forgotten is enough by itself.
func TestForgotten(t *testing.T) {
	rules := &block.Rules{Name: "a", Key: "segment/a"}
	strict := store.Durability{Durable: true}
	was := block.Record{ID: "one", First: 1, Max: 1000, Step: 10}.New()
	found := func(r block.Record, v store.Version) block.Event {
		rec := store.Record{Key: rules.Key, Version: v}
		if v != "" {
			rec.Value = r.Encode()
		}
		return block.Answer{Record: rec}
	}
	for name, tt := range map[string]struct {
		change  func(*block.Record)
		version store.Version
		forgot  bool
	}{
		"others have written":              {func(r *block.Record) { r.Writes, r.Granted = 5, 70 }, "other", false},
		"others have handed back":          {func(r *block.Record) { r.Writes = 5 }, "other", false},
		"it is gone":                       {func(*block.Record) {}, "", true},
		"another series":                   {func(r *block.Record) { r.ID, r.Writes, r.Granted = "two", 5, 70 }, "other", true},
		"fewer writes":                     {func(r *block.Record) { r.Writes, r.Granted = 1, 70 }, "other", true},
		"as many writes, but not this one": {func(r *block.Record) { r.Granted = 70 }, "other", true},
		"granted less than to us":          {func(r *block.Record) { r.Writes, r.Granted = 5, 9 }, "other", true},
	} {
		s := block.NewState([32]byte{}, strict, block.Now{})
		s, _ = s.Step(rules, block.Now{}, block.Take{Need: 10})
		s, do := s.Step(rules, block.Now{}, found(was, "v1"))
		granted, err := block.Read(store.Record{Version: "?", Value: do.Value})
		if err != nil || granted.Granted != 10 {
			t.Fatal(granted, err)
		}
		s, do = s.Step(rules, block.Now{}, block.Answer{Record: store.Record{Version: "v2"}})
		if do.Grant != (block.Grant{First: 1, Count: 10, Stride: 1}) {
			t.Fatal(do)
		}
		s, _ = s.Step(rules, block.Now{}, block.Take{Need: 1})
		s, _ = s.Step(rules, block.Now{}, block.Answer{Err: store.ErrConflict})
		now := granted
		tt.change(&now)
		s, do = s.Step(rules, block.Now{}, found(now, tt.version))
		var forgot *store.ForgotError
		if got := errors.As(s.Err, &forgot) && s.Over; got != tt.forgot || s.Over && do.Op != record.None {
			t.Errorf("%s: forgotten %v, %v", name, got, s.Err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, value := range []string{
		``, `{}`, `{"v":2}`, `{"v":1}`, `{"v":1,"id":"a","granted":"0","first":"0","max":"9","writes":1}`,
		`{"v":1,"id":"a","granted":"0","first":"1","max":"9","writes":0}`,
		`{"v":1,"id":"a","granted":"10","first":"1","max":"9","writes":1}`,
		`{"v":1,"id":"a","granted":"-1","first":"1","max":"9","writes":1}`,
		`{"v":1,"id":"a","granted":"2","first":"1","max":"9","increment":5,"writes":1}`,
		`{"v":1,"id":"a","granted":"0","first":"1","max":"9","stores":2,"offset":2,"writes":1}`,
		`{"v":1,"id":"a","granted":"0","first":"1","max":"9","increment":9999999999,"writes":1}`,
		`{"v":1,"id":"a","granted":0,"first":"1","max":"9","writes":1}`,
	} {
		var bad *store.FormatError
		if r, err := block.Read(store.Record{Key: "segment/a", Version: "v", Value: []byte(value)}); !errors.As(err, &bad) {
			t.Errorf("%s: %+v, %v", value, r, err)
		}
	}
}
