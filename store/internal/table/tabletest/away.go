package tabletest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// testAway takes the server away in several ways. What was acknowledged is there
// when it is back, and nothing has to be opened again.
func testAway(t *testing.T, x Server) {
	t.Parallel()
	server, d := x.Start(t)
	proxy := testserver.NewProxy(t, server.Addr())
	s := x.New(x.through(t, d, proxy))
	r := MustPut(t, s, "k", `1`, store.Condition{})
	for _, c := range []struct {
		name       string
		away, back func()
		want       []string
	}{
		{
			"refused", func() { proxy.Refuse(true); proxy.Cut() }, func() { proxy.Refuse(false) },
			[]string{"nothing listens at the address", "connection was lost"},
		},
		{"no network", func() { proxy.Hang(true) }, func() { proxy.Hang(false) }, []string{"not answered in time"}},
		{"frozen", func() { server.Freeze(t) }, func() { server.Thaw(t) }, []string{"not answered in time"}},
		{"killed", func() { server.Kill(t) }, func() { server.Start(t) }, []string{"connection was lost", "nothing listens", "terminating", "shutting down"}},
		{"stopped", func() { server.Stop(t) }, func() { server.Start(t) }, []string{"connection was lost", "nothing listens", "administrator", "shutting down"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.away()
			put := Fails(t, s, store.Condition{Version: r.Version}, c.want...)
			c.back()
			var got store.Record
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				var err error
				if got, err = s.Get(t.Context(), "k"); err == nil {
					break
				} else if time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
			if got.Version != r.Version && got.Version != put.Version {
				t.Errorf("%+v, and tried was %q", got, put.Version)
			}
			Works(t, s)
			r, _ = s.Get(t.Context(), "k")
		})
	}
}

// testDeadline: a Put with a deadline returns by it from a server that hangs, with
// what it tried; that is what the record is later, or it is as it was.
func testDeadline(t *testing.T, x Server) {
	server, d := x.Start(t)
	s := x.New(x.Silent(t, d))
	r := MustPut(t, s, "k", `1`, store.Condition{})
	server.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	put, err := s.Put(ctx, "k", []byte(`2`), store.Condition{Version: r.Version})
	if took := time.Since(start); took > 20*time.Second { // or it would wait for the server to thaw
		t.Errorf("took %v", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || put.Version == "" {
		t.Errorf("%+v, %v", put, err)
	}
	server.Thaw(t)
	for range 20 {
		got, err := s.Get(t.Context(), "k")
		if err != nil || got.Version != r.Version && got.Version != put.Version {
			t.Errorf("%+v, %v", got, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	Works(t, s)
}
