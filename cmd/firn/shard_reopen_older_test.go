//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// lettingGo has server a let shard 0 go to server b at term 4, while b has it as it was at term 1: b was put back.
const lettingGo = `SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'b', term = 4, attempt = 'x' WHERE shard = 0;
	SELECT firn.make_mark('insta0'); INSERT INTO insta0.firn_mark VALUES (4, 'x', 'b', 0, '{"behind": ["1200", true], "ahead": ["1200", true], "set": ["1200", true], "down": ["-10", true]}')`

// TestShardsReopenSequences: an operator has advanced sequences of a copy, as is said before the copy is opened.
// They stay there. The others continue at the numbers that the move wrote down.
func TestShardsReopenSequences(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	onDatabase(t, a, `CREATE SEQUENCE insta0.behind; CREATE SEQUENCE insta0.ahead; CREATE SEQUENCE insta0.set; CREATE SEQUENCE insta0.down INCREMENT -1;
		SELECT setval('insta0.behind', 300)`)
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 1 WHERE shard = 0")
	onDatabase(t, a, lettingGo)
	onDatabase(t, a, "SELECT setval('insta0.ahead', 70000), setval('insta0.set', 70000, false), setval('insta0.down', -500)")
	_, errs, code := called(t, append(strings.Fields("shard reopen a --shards 0 --incomplete --yes"), flags...)...)
	if code != 0 {
		t.Fatal(errs)
	}
	warned, opened := strings.Index(errs, "SELECT setval("), strings.Index(errs, "1 shard opened")
	if warned < 0 || opened >= 0 && opened < warned {
		t.Errorf("it does not say to advance sequences before it opens the shard:\n%s", errs)
	}
	for sequence, want := range map[string]int64{"behind": 1201, "ahead": 70001, "set": 70000, "down": -501} {
		if got := one[int64](t, a, "SELECT nextval('insta0."+sequence+"')"); got != want {
			t.Errorf("%s: the next number is %d, want %d", sequence, got, want)
		}
	}
}

// TestShardsReopenOlder: a server was put back to before a shard moved away from it and back, and the other server has
// dropped its copy since. What was written meanwhile is nowhere, and who opens the older copy is told before.
func TestShardsReopenOlder(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 1 WHERE shard = 0")
	onDatabase(t, a, lettingGo+"; DROP SCHEMA insta0 CASCADE")
	said, errs, _ := called(t, append(strings.Fields("shard reopen b --shards 0 --dry-run"), flags...)...)
	if !strings.Contains(errs, "on a it is written that b had shard 0 at a later term than b knows") || !strings.Contains(errs, "rows that were written to shard 0 since, on b or another server, are not there") {
		t.Errorf("%s%s", said, errs)
	}
	if _, errs, _ = called(t, append(strings.Fields("shard reopen b --shards 0"), flags...)...); !strings.Contains(errs, "rows that were written to shard 0 since, on b or another server, are lost") {
		t.Errorf("it does not ask about that:\n%s", errs)
	}
}

// TestShardsReopenOlderCopy: the same of a backup that was taken while the shard was away, and its copy on the server
// was not dropped yet. The copy lacks what was written since to either server.
func TestShardsReopenOlderCopy(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	onDatabase(t, b, `SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET state = 'moved', moved_to = 'a', term = 1, attempt = 'w' WHERE shard = 0;
		SELECT firn.make_mark('insta0'); INSERT INTO insta0.firn_mark VALUES (1, 'w', 'a', 0, '{}')`)
	onDatabase(t, a, lettingGo+"; DROP SCHEMA insta0 CASCADE")
	said, errs, _ := called(t, append(strings.Fields("shard reopen b --shards 0 --dry-run"), flags...)...)
	if !strings.Contains(errs, "on a it is written that b had shard 0 at a later term than b knows") {
		t.Errorf("%s%s", said, errs)
	}
	if _, errs, _ = called(t, append(strings.Fields("shard reopen b --shards 0"), flags...)...); !strings.Contains(errs, "rows that were written to shard 0 since, on b or another server, are lost") {
		t.Errorf("it does not ask about that:\n%s", errs)
	}
}

// TestShardsOriginalIsNoticed: server b was put back to an earlier state and reopened. What it had been put back from
// is older than that, though it had opened shard 0 at the next term after the one of a.
func TestShardsOriginalIsNoticed(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 1 WHERE shard = 0")
	onDatabase(t, a, lettingGo+"; DROP SCHEMA insta0 CASCADE")
	if said, errs, code := called(t, append(strings.Fields("shard reopen b --shards 0 --incomplete --yes"), flags...)...); code != 0 {
		t.Fatalf("%d: %s%s", code, said, errs)
	}
	onDatabase(t, b, "UPDATE firn.shard SET term = 5 WHERE shard = 0") // as it was
	if said, errs, code := called(t, append([]string{"shard", "status"}, flags...)...); code == 0 || !strings.Contains(said, "a was told that b opens it") {
		t.Errorf("status: %d: %s%s", code, said, errs)
	}
	if _, errs, _ := called(t, append(strings.Fields("shard reopen b --shards 0"), flags...)...); !strings.Contains(errs, "rows that were written to shard 0 since, on b or another server, are lost") {
		t.Errorf("reopen does not ask about lost rows:\n%s", errs)
	}
}
