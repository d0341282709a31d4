//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// said runs f and returns the grants that were said meanwhile.
func said(t *testing.T, f func()) (grants []ledger.Event) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = stdout
	w.Close()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var e ledger.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event == ledger.Granted {
			grants = append(grants, e)
		}
	}
	return grants
}

func worker(t *testing.T, owner string, horizon int64) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"v": 1, "term": 7, "owner": owner, "horizon": horizon, "ttl": 1000})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A process that went on with a grant file finds that an extension which the process before
// it had sent was carried out later. The lease takes that for granted, so the witness says
// it; it does not say so of the record of before, nor of another owner's.
func TestWitnessOfALateExtension(t *testing.T) {
	key := term.KeyWorker(pool.Default, 3)
	for _, tt := range []struct {
		name  string
		late  []byte // what became of the record after the grant file was written
		grant bool
	}{
		{"an extension of before was carried out", worker(t, "we", 300), true},
		{"nothing was carried out", nil, false},
		{"another has taken the worker", worker(t, "they", 300), false},
	} {
		st, ctx := memory.New(), t.Context()
		first, err := st.Put(ctx, key, worker(t, "we", 200), store.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		version := first.Version
		if tt.late != nil {
			if _, err := st.Put(ctx, key, tt.late, store.Condition{Version: first.Version}); err != nil {
				t.Fatal(err)
			}
		} else {
			version = "another"
		}
		w := &witness{Store: st, pool: pool.Default}
		grants := said(t, func() {
			if _, err := w.Put(ctx, key, worker(t, "we", 400), store.Condition{Version: version}); err == nil {
				t.Errorf("%s: a write on an old version was carried out", tt.name)
			}
			if tt.late == nil { // the attempt was on the record that is there
				w.try(key, attempt{value: worker(t, "we", 400), cond: first.Version}, false)
			}
			if _, err := w.Get(ctx, key); err != nil {
				t.Error(err)
			}
		})
		if got := len(grants) == 1 && grants[0].Horizon == 300 && grants[0].Prior == -1 && grants[0].Term == 7; got != tt.grant || len(grants) > 1 {
			t.Errorf("%s: it said %+v", tt.name, grants)
		}
	}
}
