package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/memory"
)

// held holds a worker with a grace.
func held(t *testing.T, s *away, grace time.Duration) (*Worker, *clocksFake) {
	t.Helper()
	o, f := options()
	o.Grace = grace
	h, err := Hold(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return h, f
}

// ended waits until the program has to stop, and returns why.
func ended(t *testing.T, h *Worker) error {
	t.Helper()
	<-h.Done()
	return h.Err()
}

func TestWorkerIsDone(t *testing.T) {
	const grace = 2 * time.Second
	for _, c := range []struct {
		name   string
		fault  func(*away, *clocksFake, *Worker)
		within time.Duration
		want   func(error) bool
	}{
		{
			"store away", func(s *away, _ *clocksFake, _ *Worker) { s.refuse.Store(true) }, 6 * time.Minute,
			func(err error) bool { var e *OutageError; return errors.As(err, &e) && errors.Is(err, errAway) },
		},
		{
			"taken away", func(s *away, _ *clocksFake, h *Worker) {
				pool.Release(context.Background(), s, pool.Default, h.State().Worker)
			}, 11 * time.Second,
			func(err error) bool { var e *term.LostError; return errors.As(err, &e) },
		},
		{
			"clock stepped", func(_ *away, f *clocksFake, _ *Worker) { f.step.Store(int64(time.Hour)) }, time.Second,
			func(err error) bool { var e *StepError; return errors.As(err, &e) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &away{Store: memory.New()}
				h, f := held(t, s, grace)
				defer h.Close()
				time.Sleep(10 * time.Minute)
				if err := h.Err(); err != nil {
					t.Fatalf("after ten good minutes: %v", err)
				}
				c.fault(s, f, h)
				began := time.Now()
				err := ended(t, h)
				if !c.want(err) || time.Since(began) > c.within {
					t.Fatalf("%v after %s", err, time.Since(began))
				}
				if st := h.State(); st.phase == term.Holding && st.EndsAt.Before(time.Now().Add(grace-look)) {
					t.Fatalf("told at %s, the horizon is %s", time.Now(), st.EndsAt)
				}
				s.refuse.Store(false)
				time.Sleep(time.Hour) // it takes no other, and does not change its mind
				if again := h.Err(); again != err {
					t.Fatalf("first %v, and then %v", err, again)
				}
				if st := h.State(); c.name == "taken away" && st.phase != term.Lost {
					t.Fatalf("%+v", st)
				}
			})
		})
	}
}

func TestHeldWorkerIsGivenBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		h, _ := held(t, s, time.Second)
		time.Sleep(time.Minute)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := pool.Workers(t.Context(), s, pool.Default)
		if err != nil || len(list) != 1 || list[0].State != pool.WorkerFree {
			t.Fatalf("%+v %v", list, err)
		}
		if from := time.Until(list[0].Horizon); from < 4*time.Second || from > 6*time.Second {
			t.Fatalf("free from %s after the end on", from)
		}
	})
}

// What was issued before the clock was set back stays covered.
func TestHeldWorkerIsGivenBackAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		h, f := held(t, s, time.Second)
		time.Sleep(2 * time.Hour)
		stepped := time.Now()
		f.step.Store(-int64(time.Hour))
		var step *StepError
		if err := ended(t, h); !errors.As(err, &step) {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := pool.Workers(t.Context(), s, pool.Default)
		if err != nil || len(list) != 1 || list[0].State != pool.WorkerFree {
			t.Fatalf("%+v %v", list, err)
		}
		if list[0].Horizon.Before(stepped) {
			t.Fatalf("ids were issued until %s, and the next holder may start above %s", stepped, list[0].Horizon)
		}
	})
}

// A store that hangs is given up on before the grant is used up.
func TestHeldWorkerOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		o.Outage, o.Grace = 3*time.Second, time.Second
		h, err := Hold(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		s.hang.Store(true)
		var outage *OutageError
		if err := ended(t, h); !errors.As(err, &outage) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	})
}

// Where the store has said nothing yet, neither does the error.
func TestOutageErrorWithoutACause(t *testing.T) {
	e := &OutageError{EndedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	const want = "lease: no ids since 2026-01-02T03:04:05Z: the store does not answer; retry, ids resume when it answers"
	if e.Error() != want {
		t.Fatalf("%v, want %s", e, want)
	}
}
