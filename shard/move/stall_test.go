package move

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestStalled gives up a copy that cannot be made, because a row of it is there.
func TestStalled(t *testing.T) {
	t.Parallel()
	a, b := stuckCopy(t)
	o := hasty()
	o.Stall = time.Second
	m := New(a.Server, b.Server, o)
	defer m.Close()
	for begun := time.Now(); ; {
		_, err := m.Move(t.Context(), []int64{1})
		if !errors.As(err, new(*StalledError)) || !strings.Contains(err.Error(), "server b: the copy has come no farther for") {
			t.Errorf("%v", err)
		} else if !strings.Contains(err.Error(), "being copied (insta1.users)") {
			if time.Since(begun) < time.Minute {
				continue // a busy server has not begun it yet
			}
			t.Errorf("%v", err)
		}
		break
	}
	mustEnd(t, m.Abort, 1)
	nothingLeft(t, a, b)
}

// TestStalledAway gives such a copy up also where the target ends the mover's session again
// and again, as one that crashes does.
func TestStalledAway(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, b := stuckCopy(t)
	o := hasty()
	o.Stall = 2 * time.Second
	m := New(a.Server, b.Server, o)
	defer m.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error)
	go func() {
		_, err := m.Move(ctx, []int64{1})
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			if !errors.As(err, new(*StalledError)) {
				t.Errorf("%v", err)
			}
			mustEnd(t, m.Abort, 1)
			nothingLeft(t, a, b)
			return
		case <-time.After(700 * time.Millisecond):
			b.must(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
		}
	}
}

// TestReach: a copy grows while anything does that is new; one that fails and begins anew
// grows so only a few times.
func TestReach(t *testing.T) {
	at := time.Now()
	r := reach{}
	for i, tt := range []struct {
		now   reach
		grows bool
	}{
		{reach{}, true},
		{reach{}, false},
		{reach{states: 1}, true},
		{reach{states: 1, rows: 5, bytes: 50}, true},
		{reach{states: 1, rows: 5, bytes: 50}, false},
		{reach{states: 1, rows: 5, bytes: 50, log: 7}, true},
		{reach{states: 1, rows: 1, bytes: 10, log: 7}, false}, // it begins anew
		{reach{states: 1, rows: 4, bytes: 40, log: 7}, true},
		{reach{states: 1, log: 7}, false},
		{reach{states: 1, rows: 4, bytes: 40, log: 7}, true},
		{reach{states: 1, log: 7}, false},
		{reach{states: 1, rows: 4, bytes: 40, log: 7}, true},
		{reach{states: 1, log: 7}, false}, // and for ever
		{reach{states: 1, rows: 4, bytes: 40, log: 7}, false},
		{reach{states: 1, rows: 6, bytes: 60, log: 7}, true},
		{reach{states: 2}, true}, // the next table
		{reach{states: 2, rows: 1, bytes: 1}, true},
	} {
		at = at.Add(time.Second)
		if r = r.grown(tt.now, at); r.since.Equal(at) != tt.grows {
			t.Errorf("look %d at %+v: grows %v", i, tt.now, !tt.grows)
		}
	}
}
