package daemon

import (
	"context"
	"errors"
	"testing"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/pool"
)

// A pool that is too large to be listed hides no other.
func TestConsoleWorkers(t *testing.T) {
	t.Parallel()
	named := func(name string, list []pool.Worker, err error) *supply {
		s := &supply{drawing: &outlet{Series: &config.Series{Kind: config.Flake, URLs: []string{"memory:"}, Leasing: &config.Leasing{Pool: name}}}}
		s.now.Store(&flowing{workers: func(context.Context) ([]pool.Worker, error) { return list, err }})
		return s
	}
	small, large, away := named("small", []pool.Worker{{Worker: 3}}, nil), named("large", nil, errManyWorkers), named("away", nil, errors.New("gone"))
	for _, tt := range []struct {
		all  supplies
		want int
		err  bool
	}{
		{supplies{"a": small, "b": large}, 1, false},
		{supplies{"b": large}, 0, true},
		{supplies{"a": small, "c": away}, 1, true},
	} {
		if list, err := tt.all.workers(t.Context()); len(list) != tt.want || (err != nil) != tt.err {
			t.Errorf("%v: %v, %v", tt.all, list, err)
		}
	}
}
