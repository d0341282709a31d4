package recovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// uses are what programs and operators do with a store. Each is done by itself.
var uses = map[string]func(ctx context.Context, s store.Store) error{
	"lease": func(ctx context.Context, s store.Store) error {
		l, err := lease.Open(ctx, s, &lease.Options{Pool: "web"})
		if err != nil {
			return err
		}
		_, err = l.Next(ctx)
		return errors.Join(err, l.Close())
	},
	"lease of a worker": func(ctx context.Context, s store.Store) error {
		l, err := lease.Open(ctx, s, &lease.Options{Pool: "web", Choice: lease.Only(0)})
		if err != nil {
			return err
		}
		return l.Close()
	},
	"lease of a fresh worker": func(ctx context.Context, s store.Store) error {
		l, err := lease.Open(ctx, s, &lease.Options{Pool: "web", Choice: lease.Fresh()})
		if err != nil {
			return err
		}
		return l.Close()
	},
	"pool create": func(ctx context.Context, s store.Store) error {
		_, err := pool.Create(ctx, s, "another", &pool.Options{MayRepeat: []string{"web"}})
		return err
	},
	"pool ensure": func(ctx context.Context, s store.Store) error { _, err := pool.Ensure(ctx, s, "web", nil); return err },
	"pool set": func(ctx context.Context, s store.Store) error {
		_, err := pool.SetWorkers(ctx, s, "web", 0, 5)
		return err
	},
	"pool show": func(ctx context.Context, s store.Store) error { _, err := pool.Show(ctx, s, "web"); return err },
	"worker ls": func(ctx context.Context, s store.Store) error { _, err := pool.Workers(ctx, s, "web"); return err },
	"pool recover": func(ctx context.Context, s store.Store) error {
		_, err := pool.Recover(ctx, s, time.Minute)
		return err
	},
	"sequence": func(ctx context.Context, s store.Store) error {
		o, err := sequence.Open(ctx, s, "orders", nil)
		if err != nil {
			return err
		}
		_, err = o.Next(ctx)
		return errors.Join(err, o.Close())
	},
	"sequence create": func(ctx context.Context, s store.Store) error {
		_, err := sequence.Create(ctx, s, "fresh", nil)
		return err
	},
	"sequence set": func(ctx context.Context, s store.Store) error {
		_, err := sequence.SetCache(ctx, s, "orders", 7)
		return err
	},
	"sequence raise": func(ctx context.Context, s store.Store) error {
		_, err := sequence.Raise(ctx, s, "orders", 900)
		return err
	},
	"sequence recover": func(ctx context.Context, s store.Store) error {
		_, err := sequence.Recover(ctx, s, 10, nil)
		return err
	},
	"document": func(ctx context.Context, s store.Store) error { return draw(ctx, s, "invoice", "") },
	"name":     func(ctx context.Context, s store.Store) error { return draw(ctx, s, "bill:7", "bill:*") },
	"new name": func(ctx context.Context, s store.Store) error { return draw(ctx, s, "bill:8", "bill:*") },
	"document create": func(ctx context.Context, s store.Store) error {
		_, err := document.Create(ctx, s, "another", &document.Options{Pattern: "X{5}"})
		return err
	},
	"document raise": func(ctx context.Context, s store.Store) error {
		_, err := document.Raise(ctx, s, "invoice", "R900")
		return err
	},
	"document recover": func(ctx context.Context, s store.Store) error {
		_, err := document.Recover(ctx, s, 10, nil)
		return err
	},
	"recover": func(ctx context.Context, s store.Store) error {
		c, err := recovery.Read(ctx, s)
		if err != nil {
			return err
		}
		p, err := c.Plan(ctx, &recovery.Options{Numbers: 10})
		if err != nil {
			return err
		}
		_, err = p.Run(ctx)
		return err
	},
	"accept a move": func(ctx context.Context, s store.Store) error { _, err := recovery.AcceptMove(ctx, s); return err },
}

func draw(ctx context.Context, s store.Store, name, template string) error {
	d, err := document.Open(ctx, s, name, &document.Options{Template: template})
	if err != nil {
		return err
	}
	_, err = d.Next(ctx)
	return errors.Join(err, d.Close())
}

// users say who has to refuse a record that a later firn wrote, by the kind of its key. All others may pass over it;
// nobody may write it.
var users = map[string][]string{
	"pool/web":           {"lease", "lease of a worker", "lease of a fresh worker", "pool create", "pool ensure", "pool set", "pool show", "worker ls", "pool recover", "recover", "accept a move"},
	"pool/web/worker/0":  {"lease of a worker", "worker ls", "pool recover", "recover"},
	"pool/web/fresh":     {"lease of a fresh worker"},
	"store":              {"lease", "lease of a worker", "lease of a fresh worker", "pool create", "pool recover", "recover"},
	"lost":               {"recover"},
	"segment/orders":     {"sequence", "sequence set", "sequence raise", "sequence recover", "recover", "accept a move"},
	"serial/invoice":     {"document", "document raise", "document recover", "recover", "accept a move"},
	"serial/invoice/all": {"document", "document raise", "document recover", "recover", "accept a move"},
	"serial/bill:*":      {"name", "new name", "document recover", "recover", "accept a move"},
	"name/bill:*/7/all":  {"name", "document recover", "recover"},
	"names/bill:*":       {"new name"},
	"names/bill:*/7":     {},
}

// TestLaterFormats: a program that meets a record of a later firn does not write it, and where it needs the record
// it does nothing, and says why. So two versions may use a store while a deployment rolls: the older one stops
// using a record once the newer one has written it.
func TestLaterFormats(t *testing.T) {
	t.Parallel()
	written := everyKind(t)
	for _, key := range slices.Sorted(maps.Keys(written)) {
		wants, known := users[key]
		if !known {
			t.Errorf("a record of another kind: %s", key)
		}
		for _, use := range slices.Sorted(maps.Keys(uses)) {
			s := copyOf(t, written, key)
			before := mustGet(t, s, key)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			err := uses[use](ctx, s)
			cancel()
			if after := mustGet(t, s, key); string(after.Value) != string(before.Value) {
				t.Errorf("%s of a later firn: %s has written it (%v): %s", key, use, err, after.Value)
			}
			refused := err != nil && strings.Contains(err.Error(), "written by a later firn")
			if slices.Contains(wants, use) != refused {
				t.Errorf("%s of a later firn: %s: %v", key, use, err)
			}
		}
	}
	for key := range users {
		if written[key] == nil {
			t.Errorf("there is no record %s: %v", key, slices.Sorted(maps.Keys(written)))
		}
	}
}

// everyKind returns a record of each kind that there is, by its key.
func everyKind(t *testing.T) map[string][]byte {
	t.Helper()
	s := memory.New()
	ctx := t.Context()
	create := func(name, pattern string) {
		if _, err := document.Create(ctx, s, name, &document.Options{Pattern: pattern}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := pool.Create(ctx, s, "web", nil)
	_, err2 := sequence.Create(ctx, s, "orders", nil)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	create("invoice", "R{3}")
	create("bill:*", "B{3}")
	for _, use := range []string{"lease", "lease of a fresh worker", "sequence", "document", "name"} {
		if err := uses[use](ctx, s); err != nil {
			t.Fatalf("%s: %v", use, err)
		}
	}
	all, err := s.List(ctx, "")
	recovered := filled(t) // beside it: after a recovery ids start later
	err2 = uses["recover"](ctx, recovered)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	all = append(all, mustGet(t, recovered, "lost"), mustGet(t, recovered, "store"))
	kinds := make(map[string][]byte)
	for _, rec := range all {
		if !strings.HasPrefix(rec.Key, "pool/web/worker/") || rec.Key == "pool/web/worker/0" {
			kinds[rec.Key] = rec.Value
		}
	}
	return kinds
}

// copyOf returns a store with records, of which one is of a later firn.
func copyOf(t *testing.T, written map[string][]byte, later string) store.Store {
	t.Helper()
	s := memory.New()
	for key, value := range written {
		if key == later {
			var fields map[string]any
			if err := json.Unmarshal(value, &fields); err != nil {
				t.Fatal(err)
			}
			fields["v"], fields["later"] = 2, "kept"
			var err error
			if value, err = json.Marshal(fields); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Put(t.Context(), key, value, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func mustGet(t *testing.T, s store.Store, key string) store.Record {
	t.Helper()
	rec, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
