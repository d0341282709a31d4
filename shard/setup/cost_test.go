package setup_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/setup"
)

// BenchmarkInit compares making shards with making the same objects by plain CREATE
// and GRANT, in batches of the same size on as many connections, of which both do
// rounds in turn, and reports medians; and says how much memory a connection has that has drawn from all.
//
//	go test ./shard/setup -run '^$' -bench Init -benchtime 3x -timeout 1h
func BenchmarkInit(b *testing.B) {
	for _, count := range []int{2000, 8192} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			var ratios, made []float64
			var memory int64
			for b.Loop() {
				raw := plainObjects(b, count)
				server, took := shardsOnly(b, count)
				ratios, made = append(ratios, took/raw), append(made, took)
				memory = touchAll(b, server, count)
			}
			slices.Sort(ratios)
			slices.Sort(made)
			b.ReportMetric(ratios[len(ratios)/2], "of-plain")
			b.ReportMetric(made[len(made)/2], "s")
			b.ReportMetric(float64(memory)/1e6, "MB/backend")
		})
	}
}

func seconds(f func()) float64 {
	begun := time.Now()
	f()
	return time.Since(begun).Seconds()
}

// shardsOnly makes shards on a new server, and returns how long that took.
func shardsOnly(b *testing.B, count int) (*testserver.Server, float64) {
	b.Helper()
	server := testserver.Postgres(b, "shared_buffers=128MB")
	took := seconds(func() { mustInit(b, serversAt(server.URL()), setup.Wish{Count: int64(count)}) })
	return server, took
}

// plainObjects makes what a shard is made of: a schema, two sequences, two functions,
// and what a role may do with them, and returns how long that took.
func plainObjects(b *testing.B, count int) float64 {
	b.Helper()
	server := testserver.Postgres(b, "shared_buffers=128MB")
	connect(b, server.URL()).must(b, "CREATE ROLE firn_app")
	begun := time.Now()
	const batch = 16
	var all sync.WaitGroup
	batches := make(chan int)
	for range 2 {
		c := connect(b, server.URL())
		all.Go(func() {
			for from := range batches {
				var sql strings.Builder
				sql.WriteString("BEGIN;\n")
				for n := from; n < min(from+batch, count); n++ {
					fmt.Fprintf(&sql, `CREATE SCHEMA s%[1]d; CREATE SEQUENCE s%[1]d.a; CREATE SEQUENCE s%[1]d.b;
CREATE FUNCTION s%[1]d.next_id(OUT result bigint) LANGUAGE sql AS $$ SELECT nextval('s%[1]d.a'::regclass) + nextval('s%[1]d.b'::regclass) $$;
CREATE FUNCTION s%[1]d.next_ids(n integer) RETURNS SETOF bigint LANGUAGE plpgsql ROWS 1000 AS $$ BEGIN RETURN QUERY SELECT nextval('s%[1]d.a'::regclass); END $$;
GRANT USAGE ON SCHEMA s%[1]d TO firn_app; GRANT USAGE ON SEQUENCE s%[1]d.a TO firn_app; GRANT SELECT ON SEQUENCE s%[1]d.b TO firn_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA s%[1]d GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO firn_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA s%[1]d GRANT USAGE, SELECT ON SEQUENCES TO firn_app;
`, n)
				}
				sql.WriteString("COMMIT;\n")
				if _, err := c.Exec(context.Background(), sql.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for from := 0; from < count; from += batch {
		batches <- from
	}
	close(batches)
	all.Wait()
	server.Kill(b)
	return time.Since(begun).Seconds()
}

// touchAll draws from all shards on one connection, and returns how much memory of
// its own that has afterwards.
func touchAll(b *testing.B, server *testserver.Server, count int) (bytes int64) {
	b.Helper()
	c := connect(b, server.URL())
	for n := range count {
		if _, err := c.Exec(b.Context(), fmt.Sprintf("SELECT insta%d.next_id()", n), pgx.QueryExecModeSimpleProtocol); err != nil {
			b.Fatal(err)
		}
	}
	bytes = anonymous(b, c.one(b, "SELECT pg_backend_pid()::text"))
	server.Kill(b)
	return bytes
}

// anonymous is the memory of a process that is no file's and nobody else's.
func anonymous(b *testing.B, pid string) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		b.Skip(err) // elsewhere than on Linux
	}
	for line := range bytes.Lines(status) {
		if text, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(text)), "kB")), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kB * 1024
		}
	}
	b.Fatal("no RssAnon")
	return 0
}
