package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// timeless is a store without a clock, as etcd and ZooKeeper are.
type timeless struct{ store.Store }

func (s timeless) List(ctx context.Context, prefix string) ([]store.Record, error) {
	list, err := s.Store.List(ctx, prefix)
	for i := range list {
		list[i].Read, list[i].Written = time.Time{}, time.Time{}
	}
	return list, err
}

// What is listed of a worker is what the store can know: without a clock it does not know
// whether a holder is alive, nor when its worker falls free.
func TestWorkersOfAStoreWithoutAClock(t *testing.T) {
	s := memory.New()
	l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "web", Name: "box:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		name       string
		store      store.Store
		text, json string
		never      string
	}{
		{"with a clock", s, "held", `"state":"held"`, "unknown"},
		{"without", timeless{s}, "unknown", `"state":"unknown"`, "free_in_seconds"},
	} {
		for _, asJSON := range []bool{false, true} {
			var out strings.Builder
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			cmd.SetOut(&out)
			cmd.Flags().Bool("json", asJSON, "")
			if err := listWorkers(cmd, c.store, "web"); err != nil {
				t.Fatal(err)
			}
			want := c.text
			if asJSON {
				want = c.json
			}
			if !strings.Contains(out.String(), want) || strings.Contains(out.String(), c.never) {
				t.Errorf("%s, --json=%t: %s\nwant %s and no %s", c.name, asJSON, out.String(), want, c.never)
			}
		}
	}
}
