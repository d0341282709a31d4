package document_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// placed is a durable store that says of itself that it is at a place.
func placed(st *memory.Store, place string) *promising {
	return &promising{Store: st, p: store.Durability{Durable: true, Identity: place}}
}

func (p *promising) move(place string) { p.set(store.Durability{Durable: true, Identity: place}) }

func isElsewhere(err error) bool {
	var other *store.OtherStoreError
	return errors.As(err, &other) && other.Have == "there" && other.Want == "here" && other.What == `document "invoice"`
}

// A copy of a store gives out no texts until an operator says what it is.
func TestCopy(t *testing.T) {
	inner := memory.New()
	here := placed(inner, "here")
	if _, err := document.Create(t.Context(), here, "invoice", &document.Options{Pattern: "{1+}"}); err != nil {
		t.Fatal(err)
	}
	wantNext(t, opened(t, here, "{1+}", document.Options{}), "1", "2")
	for name, tt := range map[string]struct {
		accept func(store.Store) error
		next   string
	}{
		"recovered": {func(s store.Store) error { _, err := document.Recover(t.Context(), s, 1000, nil); return err }, "1003"},
		"moved":     {func(s store.Store) error { _, err := document.AcceptMove(t.Context(), s); return err }, "3"},
	} {
		copied := memory.New()
		copied.Restore(inner.Snapshot())
		there := placed(copied, "there")
		for what, refused := range map[string]func() error{
			"Open": func() error {
				_, err := document.Open(t.Context(), there, "invoice", &document.Options{Pattern: "{1+}"})
				return err
			},
			"Create": func() error {
				_, err := document.Create(t.Context(), there, "invoice", &document.Options{Pattern: "{1+}"})
				return err
			},
			"Create, another": func() error {
				_, err := document.Create(t.Context(), there, "t", &document.Options{Pattern: "{1+}"})
				return err
			},
			"Change": func() error {
				_, err := document.Widen(t.Context(), there, "invoice", &document.Options{Pattern: "{2+}"})
				return err
			},
			"Raise":      func() error { _, err := document.Raise(t.Context(), there, "invoice", "77"); return err },
			"CheckStore": func() error { return record.CheckStore(t.Context(), there, dated.Keys, "document") },
		} {
			if err := refused(); !isElsewhere(err) {
				t.Errorf("%s, not yet %s: %v", what, name, err)
			}
		}
		if err := tt.accept(there); err != nil {
			t.Fatal(err)
		}
		if err := record.CheckStore(t.Context(), there, dated.Keys, "document"); err != nil {
			t.Error(err)
		}
		wantNext(t, opened(t, there, "{1+}", document.Options{}), tt.next)
		if moved, err := document.AcceptMove(t.Context(), there); err != nil || len(moved) != 0 {
			t.Errorf("%s, once more: %v, %v", name, moved, err)
		}
	}
}

// A process that has a series open notices when it hears the store's durability again, and
// gives out nothing of what it has in hand.
func TestCopyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := placed(memory.New(), "here")
		if _, err := document.Create(t.Context(), st, "invoice", &document.Options{Pattern: "{1+}"}); err != nil {
			t.Fatal(err)
		}
		s := opened(t, st, "{1+}", document.Options{})
		wantNext(t, s, "1")
		st.move("there")
		time.Sleep(31 * time.Second)
		for range 2 {
			if got, err := s.Next(t.Context()); !isElsewhere(err) {
				t.Errorf("%+v, %v", got, err)
			}
		}
		st.move("here") // what was noticed stays
		if got, err := s.Next(t.Context()); !isElsewhere(err) {
			t.Errorf("%+v, %v", got, err)
		}
		s.Close()
	})
}

// Which store it is gets written down as soon as that is known.
func TestPlaceIsNoted(t *testing.T) {
	place := func(st store.Store) string {
		all, err := document.List(t.Context(), st)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].Store
	}
	st := placed(memory.New(), "")
	if _, err := document.Create(t.Context(), st, "invoice", &document.Options{Pattern: "{1+}"}); err != nil || place(st) != "" {
		t.Fatal(place(st), err)
	}
	st.move("here")
	wantNext(t, opened(t, st, "{1+}", document.Options{}), "1")
	if got := place(st); got != "here" {
		t.Errorf("opened in %q", got)
	}
	// A server whose table is made by the first record.
	empty := &lateName{placed(memory.New(), "")}
	if _, err := document.Create(t.Context(), empty, "invoice", &document.Options{Pattern: "{1+}"}); err != nil || place(empty) != "here" {
		t.Errorf("created in %q, %v", place(empty), err)
	}
}

// lateName can say where it is once it has a record.
type lateName struct{ *promising }

func (l *lateName) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	l.move("here")
	return l.promising.Put(ctx, key, value, cond)
}
