package setup_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/setup"
)

// forTables is a schema in which each of two tables has a function of its own.
func forTables(n int) string {
	one := strings.Replace(published(n), fmt.Sprintf("CREATE SCHEMA insta%d;", n), "", 1)
	of := func(table string) string {
		return strings.NewReplacer("table_id_seq", table+"_id_seq", "next_id", table+"_next_id", ".photo", "."+table).Replace(one)
	}
	return fmt.Sprintf("CREATE SCHEMA insta%d;", n) + of("photos") + of("likes")
}

func adoptThe(t *testing.T, d *database, functions ...string) (*setup.Adoption, error) {
	t.Helper()
	s, err := setup.Open(t.Context(), serversOf(d), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := s.Adopt(t.Context(), adoptWish(), functions...)
	if err != nil {
		return nil, err
	}
	return a, a.Run(t.Context(), time.Minute, new(atomic.Int64))
}

// Functions for each table are taken over together, each with what is of its own table; and those that somebody
// left the first time are taken over the next time.
func TestAdoptEachTable(t *testing.T) {
	t.Parallel()
	for _, first := range [][]string{nil, {"likes_next_id"}, {"photos_next_id", "likes_next_id"}} {
		d := newDatabase(t)
		d.must(t, forTables(0)+forTables(3)+"CREATE FUNCTION insta0.unrelated() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
		if _, err := adoptThe(t, d, first...); err != nil {
			t.Fatal(err)
		}
		if first != nil {
			other := d.one(t, "SELECT insta3.likes_next_id()::text")
			if _, err := adoptThe(t, d); err != nil {
				t.Fatal(err)
			}
			if next := d.one(t, "SELECT insta3.likes_next_id()::text"); next <= other {
				t.Errorf("%v first: a generator that was there gave %s, and then %s", first, other, next)
			}
		}
		for _, schema := range []string{"insta0", "insta3"} {
			for _, table := range []string{"photos", "likes"} {
				name := schema + "." + table
				last := d.one(t, "SELECT max(id)::text FROM "+name)
				d.must(t, "INSERT INTO "+name+" (x) VALUES (11)")
				got := d.one(t, fmt.Sprintf("SELECT format('%%s %%s', (firn.decode(id)).shard, id > %s) FROM %s WHERE x = 11", last, name))
				if got != schema[5:]+" t" {
					t.Errorf("%v first: %s: %s", first, name, got)
				}
			}
		}
		if got := d.one(t, "SELECT string_agg(format('%s.%s', shard, name), ' ' ORDER BY shard, name) FROM firn.generator"); got != "0.likes_next_id 0.photos_next_id 3.likes_next_id 3.photos_next_id" {
			t.Errorf("%v first: generators %s", first, got)
		}
		others, err := setup.Others(t.Context(), serversOf(d)[0])
		if err != nil || len(others) > 0 {
			t.Errorf("%v first: left are %v, %v", first, others, err)
		}
		if a, err := adoptThe(t, d); err != nil || a.Steps() != 0 {
			t.Errorf("%v first: again: %v, %v", first, a, err)
		}
	}
}

// What a function of a table needs is refused as a whole, and a shard that moves gets no generator: the other copy
// would not get it.
func TestAdoptEachTableRefuses(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.must(t, strings.ReplaceAll(forTables(0), "likes_id_seq", "photos_id_seq_2"))
	def := d.one(t, "SELECT pg_get_functiondef('insta0.likes_next_id()'::regprocedure)")
	for _, c := range []struct{ old, with, want string }{
		{"photos_id_seq_2", "photos_id_seq", "insta0.photos_next_id and insta0.likes_next_id draw from one sequence, insta0.photos_id_seq"},
		{"% 1024", "%% 1024", `insta0.likes_next_id: it is not understood: "%%" is how a format string writes %, and PostgreSQL has no such operator`},
	} {
		d.must(t, strings.Replace(def, c.old, c.with, 1))
		refuses(t, c.want, func() error { _, err := adoptThe(t, d); return err }, d)
	}
	d.must(t, strings.Replace(def, "photos_id_seq_2", "photos_id_seq", 1))
	refuses(t, "draw from one sequence", func() error { _, err := adoptThe(t, d, "photos_next_id"); return err }, d)
	d.must(t, def)
	if _, err := adoptThe(t, d, "photos_next_id"); err != nil {
		t.Fatal(err)
	}
	d.must(t, "INSERT INTO firn.move (shard, batch, source, target, loaded) VALUES (0, 'bbcdefghijkl', 'a', 'c', true)")
	if _, err := adoptThe(t, d); err == nil || !strings.Contains(err.Error(), "the move of shard 0 is not finished") {
		t.Errorf("a shard that moves: %v", err)
	}
	if got := d.one(t, "SELECT count(*)::text FROM firn.generator"); got != "1" {
		t.Errorf("a shard that moves has %s generators", got)
	}
}

// A function of another schema that a column default of a shard calls is left after an adoption, and found.
func TestOthersOutside(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.must(t, published(3)+strings.NewReplacer("CREATE SCHEMA insta3;", "CREATE SCHEMA ids;", "insta3.", "ids.").Replace(published(3))+
		"CREATE TABLE insta3.likes (id bigint DEFAULT ids.next_id()); DROP TABLE ids.photo")
	if _, err := adoptThe(t, d); err != nil {
		t.Fatal(err)
	}
	others, err := setup.Others(t.Context(), serversOf(d)[0])
	if want := []setup.OtherFunction{{Shard: 3, Schema: "ids", Name: "next_id", Outside: true}}; err != nil || !slices.Equal(others, want) {
		t.Errorf("%v, %v", others, err)
	}
}
