package open_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/store/open"
)

// TestConnections: a store takes at most 4 connections of its server, however many calls there are, and keeps 2. The
// documentation has operators reckon with that.
func TestConnections(t *testing.T) {
	server := testserver.Shared(t, testserver.Postgres)
	url := testdb.New(t, server, "connections")
	st, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	watch, err := pgx.Connect(t.Context(), url+"&application_name=watch")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(t.Context())
	count := func() (n int) {
		sql := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'firn'"
		if err := watch.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var calls sync.WaitGroup
	for range 30 {
		calls.Go(func() {
			for range 15 {
				if _, err := st.Get(t.Context(), "k"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { calls.Wait(); close(ended) }()
	most := 0
	for busy := true; busy; {
		select {
		case <-ended:
			busy = false
		case <-time.After(2 * time.Millisecond):
			most = max(most, count())
		}
	}
	if most != 4 {
		t.Errorf("30 calls at a time had %d connections, not 4", most)
	}
	for range 100 {
		if count() <= 2 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections are kept", count())
}
