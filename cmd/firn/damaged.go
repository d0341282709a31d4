package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store"
)

// A soundStore hides records that cannot be read, and those below them, so that a listing has the others.
type soundStore struct {
	store.Store
	hidden []string
}

func (s *soundStore) List(ctx context.Context, prefix string) ([]store.Record, error) {
	all, err := s.Store.List(ctx, prefix)
	return slices.DeleteFunc(all, func(rec store.Record) bool { return s.hides(rec.Key) }), err
}

func (s *soundStore) hides(key string) bool {
	return slices.ContainsFunc(s.hidden, func(one string) bool { return key == one || strings.HasPrefix(key, one+"/") })
}

// Unwrap lets store.AsUpdater find what the store can.
func (s *soundStore) Unwrap() store.Store { return s.Store }

// readSound reads a listing without the records that cannot be read, and returns these. Of says which
// record is hidden, with all below it, for one that cannot be read.
func readSound[T any](st store.Store, of func(key string) string, read func(store.Store) (T, error)) (T, []*store.FormatError, error) {
	s := &soundStore{Store: st}
	var damaged []*store.FormatError
	for {
		v, err := read(s)
		var bad *store.FormatError
		if !errors.As(err, &bad) || s.hides(of(bad.Key)) {
			return v, damaged, err
		}
		s.hidden, damaged = append(s.hidden, of(bad.Key)), append(damaged, bad)
	}
}

// definition is the record of a document, of a record of it.
func definition(key string) string {
	kind, rest, _ := strings.Cut(key, "/")
	name, _, _ := strings.Cut(rest, "/")
	return kind + "/" + name
}

// lastOf is what stands behind the last slash of a key.
func lastOf(key string) string { return key[strings.LastIndex(key, "/")+1:] }

// warnDamaged says which records a listing could not read, and what to do.
func warnDamaged(cmd *cobra.Command, damaged []*store.FormatError) {
	for _, bad := range damaged {
		f := addHints(ui.Failed("%w", bad), remedy.Damaged(bad, ""))
		ui.WarnHinting(cmd.ErrOrStderr(), hinter{cmd: cmd}.lines(f), "%s", phrase.Reason(bad))
	}
}

// A damagedLine is a document of which a record cannot be read.
type damagedLine struct {
	Series string `json:"series"`
	Kind   string `json:"kind"`
	Error  string `json:"error"`
}

func damagedDocument(bad *store.FormatError) *damagedLine {
	return &damagedLine{lastOf(definition(bad.Key)), config.Document, phrase.Reason(bad)}
}

func (l *damagedLine) name() string { return l.Series }

func (l *damagedLine) row() [7]any { return [7]any{l.Series, l.Kind, "-", "-", "-", "-", l.Error} }

func (l *damagedLine) facts() [][2]string {
	return [][2]string{{"series", l.Series}, {"kind", l.Kind}, {"error", l.Error}}
}

// A damagedPool is a pool of which a record cannot be read.
type damagedPool struct {
	Pool  string `json:"pool"`
	Error string `json:"error"`
}

// damagedPools are the pools whose records cannot be read.
func damagedPools(damaged []*store.FormatError) (all []poolRow) {
	for _, bad := range damaged {
		all = append(all, &damagedPool{Pool: lastOf(definition(bad.Key)), Error: phrase.Reason(bad)})
	}
	return all
}

func (l *damagedPool) name() string { return l.Pool }

func (l *damagedPool) row() []any { return []any{l.Pool, "-", "-", "-", "-", "-", "-", "-", l.Error} }
