package tabletest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// testUpdateLost loses the request or the reply of each statement of an Update.
func testUpdateLost(t *testing.T, x Server) {
	d := x.Fresh(t)
	proxy := testserver.NewProxy(t, d.Addr)
	good := x.New(x.open(t, d))
	MustPut(t, good, "k", `0`, store.Condition{})
	landed := map[string]bool{}
	for _, c := range []struct {
		name string
		when string
		lose func(int)
	}{
		{"BEGIN", "begin", proxy.LoseReplies},
		{"UPDATE lost", "update", proxy.LoseRequests},
		{"UPDATE unanswered", "update", proxy.LoseReplies},
		{"COMMIT lost", "commit", proxy.LoseRequests},
		{"COMMIT unanswered", "commit", proxy.LoseReplies},
	} {
		lose := func(when string) {
			if when == c.when {
				c.lose(1)
			}
		}
		db := Watch(t, x.Driver, d.DSN(t, proxy.Addr()), &Hooks{Before: func(statement string) {
			switch strings.ToLower(statement) {
			case "begin", "start transaction":
				lose("begin")
			case "commit":
				lose("commit")
			}
		}})
		if err := Use(t, x.New(x.through(t, d, proxy))); err != nil {
			t.Fatal(err)
		}
		was, err := good.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		put, err := x.New(db).Update(t.Context(), "k", func(store.Record) ([]byte, error) {
			lose("update")
			return []byte(`2`), nil
		})
		Says(t, c.name, err, "connection was lost")
		if unknown := c.when == "commit"; unknown != (put.Version != "") {
			t.Errorf("%s: tried %q", c.name, put.Version)
		}
		// The row is free again, and has what was tried or what it had.
		now, err := good.Update(t.Context(), "k", func(r store.Record) ([]byte, error) {
			landed[c.name] = r.Version != was.Version
			if landed[c.name] && r.Version != put.Version {
				t.Errorf("%s: tried %q, was %q, is %q", c.name, put.Version, was.Version, r.Version)
			}
			return []byte(`3`), nil
		})
		if err != nil || now.Version == "" {
			t.Errorf("%s: and then %v", c.name, err)
		}
	}
	if landed["COMMIT lost"] || !landed["COMMIT unanswered"] {
		t.Errorf("carried out: %v", landed)
	}
}

// testUpdateNoTable: where nothing was ever written there is nothing to hold, and
// where there was a table it was forgotten.
func testUpdateNoTable(t *testing.T, x Server) {
	s, db := x.fresh(t)
	calls := 0
	f := func(r store.Record) ([]byte, error) {
		if calls++; r.Version != "" || r.Key != "k" || r.Read.IsZero() {
			t.Errorf("f is given %+v", r)
		}
		return []byte(`1`), nil
	}
	for _, made := range []bool{false, true} {
		calls = 0
		if r, err := s.Update(t.Context(), "k", f); !errors.Is(err, store.ErrConflict) || r.Version != "" || calls != 1 {
			t.Errorf("table: %t: %+v, %v after %d calls", made, r, err, calls)
		}
		mine := errors.New("mine")
		if _, err := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) { return nil, mine }); err != mine {
			t.Errorf("table: %t: %v", made, err)
		}
		if x.Exists(t, db, "firn_records") != made {
			t.Error("an Update makes no table")
		}
		MustPut(t, s, map[bool]string{false: "other", true: "third"}[made], `1`, store.Condition{})
	}
	updated := x.New(db)
	if _, err := updated.Update(t.Context(), "other", To2); err != nil {
		t.Error(err)
	}
	Do(t, db, `DROP TABLE firn_records`)
	for _, s := range []Store{s, updated} {
		calls = 0
		var forgot *store.ForgotError
		if r, err := s.Update(t.Context(), "k", f); !errors.As(err, &forgot) || r.Version != "" || calls != 0 {
			t.Errorf("%+v, %v after %d calls", r, err, calls)
		}
	}
}

// testUpdateStopped stops a process that holds the row: the others go on, and it
// learns that it wrote nothing.
func testUpdateStopped(t *testing.T, x Server) {
	s, db := x.fresh(t)
	MustPut(t, s, "k", `0`, store.Condition{})
	other := x.New(db)
	holds, thaw := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		r, err := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) {
			close(holds)
			<-thaw // as a process that is stopped
			return []byte(`1`), nil
		})
		if r.Version != "" {
			t.Errorf("COMMIT was not sent, and there is the Version %s", r.Version)
		}
		ended <- err
	}()
	<-holds
	start := time.Now()
	r, err := other.Update(t.Context(), "k", To2)
	if took := time.Since(start); err != nil || took < time.Second || took > time.Minute {
		t.Errorf("after %v: %v", took, err)
	}
	close(thaw)
	Says(t, "Update", <-ended, "the process stood still", "connection was lost")
	if got, err := other.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	Works(t, s)
}

// testUpdateGivesUp: one that waits for the row returns by its deadline, and
// neither has it later nor keeps a connection.
func testUpdateGivesUp(t *testing.T, x Server) {
	d := x.Fresh(t)
	db := x.open(t, d)
	db.SetMaxOpenConns(2)
	s := x.New(db)
	MustPut(t, s, "k", `0`, store.Condition{})
	_, err := x.New(x.open(t, d)).Update(t.Context(), "k", func(store.Record) ([]byte, error) {
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			r, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) {
				t.Error("f is called")
				return nil, errors.New("never")
			})
			if !errors.Is(err, context.DeadlineExceeded) || r.Version != "" || time.Since(start) > 20*time.Second {
				t.Errorf("%+v, %v after %v", r, err, time.Since(start))
			}
		}
		return []byte(`1`), nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.Update(t.Context(), "k", To2); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if r, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) { cancel(); return []byte(`9`), nil }); err == nil || r.Version != "" {
		t.Errorf("cancelled by f: %+v, %v", r, err)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || string(got.Value) != `2` {
		t.Errorf("%+v, %v", got, err)
	}
}
