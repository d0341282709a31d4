package firn_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// A script is a source that gives some ids and then an error.
type script struct {
	ids   []firn.ID
	err   error
	calls int
}

func (s *script) Next(context.Context) (firn.ID, error) {
	s.calls++
	if len(s.ids) == 0 {
		return 0, s.err
	}
	id := s.ids[0]
	s.ids = s.ids[1:]
	return id, nil
}

func (s *script) Append(context.Context, []firn.ID, int) ([]firn.ID, error) { panic("not called") }

func TestAll(t *testing.T) {
	end := errors.New("the end")
	t.Run("the error comes last", func(t *testing.T) {
		s := &script{ids: []firn.ID{3, 5, 8}, err: end}
		var ids []firn.ID
		var errs []error
		for id, err := range firn.All(t.Context(), s) {
			ids, errs = append(ids, id), append(errs, err)
		}
		if !slices.Equal(ids, []firn.ID{3, 5, 8, 0}) || !slices.Equal(errs, []error{nil, nil, nil, end}) || s.calls != 4 {
			t.Errorf("%v, %v, %d calls", ids, errs, s.calls)
		}
	})
	t.Run("a loop that breaks asks for no more", func(t *testing.T) {
		s := &script{ids: []firn.ID{3, 5, 8}, err: end}
		for id := range firn.All(t.Context(), s) {
			if id == 5 {
				break
			}
		}
		if s.calls != 2 {
			t.Errorf("%d calls for 2 ids", s.calls)
		}
		for id, err := range firn.All(t.Context(), s) { // and may be ranged over again
			if id != 8 || err != nil {
				t.Error(id, err)
			}
			break
		}
	})
	t.Run("the context reaches the source", func(t *testing.T) {
		g := generator(t, coarse, grantOf(coarse, time.Hour), nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var last error
		for _, last = range firn.All(ctx, g) {
			n++
			cancel()
		}
		// What is there is given even so.
		if !errors.Is(last, context.Canceled) || n < 12 {
			t.Errorf("%d ids, %v", n, last)
		}
	})
}
