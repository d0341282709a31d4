package move

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const shop = `
CREATE TABLE insta1.users (id bigint PRIMARY KEY DEFAULT insta1.next_id(), name text, n integer NOT NULL DEFAULT 0, number serial);
CREATE TABLE insta1.events (id bigint DEFAULT insta1.next_id(), day integer NOT NULL, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
CREATE TABLE insta1.events_1 PARTITION OF insta1.events FOR VALUES FROM (1) TO (10);
CREATE TABLE insta1.events_2 PARTITION OF insta1.events DEFAULT;
INSERT INTO insta1.users (name) SELECT 'user ' || i FROM generate_series(1, 500) AS i;
INSERT INTO insta1.events (day) SELECT i % 20 FROM generate_series(1, 300) AS i;
`

func mover(t *testing.T, a, b *site) *Mover {
	m := New(a.Server, b.Server, &Options{Lag: time.Second, Progress: func(p Progress) { t.Log(p) }})
	t.Cleanup(m.Close)
	return m
}

func TestMove(t *testing.T) {
	a, b := pair(t, 4)
	a.must(t, shop)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	moved, err := mover(t, a, b).Move(ctx, []int64{1})
	fmt.Println(moved, err)
	if err != nil {
		t.Fatal(err)
	}
}
