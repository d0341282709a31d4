// Package stored holds what a store's server keeps against golden files, for tests: how a record of a pool, a worker, a
// sequence and a document lies in Redis, etcd or ZooKeeper, byte by byte. What a version has written, a later one has
// to read, and to continue above.
package stored

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/golden"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A Place is an empty place of a server for one store.
type Place struct {
	Store store.Store
	Dump  func(testing.TB) map[string]string  // all that the server keeps of the store, by name
	Load  func(testing.TB, map[string]string) // puts that into the place, which is empty
}

// A Kind is a kind of store.
type Kind struct {
	New   func(testing.TB) Place
	Lossy bool // the store is lossy: another server needs a recovery, and the first id of a lease comes late
	Moved bool // another server is another store, which has to be accepted
}

// file is the golden file: a line for each entry of a Dump, the name, a space and the data in quotes.
const file = "testdata/0.1.0/stored.txt"

const skipped = 100 // numbers that a recovery leaves out

// Run reads what version 0.1.0 has written to a server, writes each record again with the same bytes but for its
// version and time, and continues above the numbers and the id that were given.
func Run(t *testing.T, k Kind) {
	if os.Getenv(golden.Rewrite) == "write" {
		p := k.New(t)
		fill(t, k, p.Store)
		golden.Same(t, file, []byte(text(p.Dump(t))), "")
		return // this server wrote it: the next run reads it in another one
	}
	was := parse(t, string(golden.Read(t, file)))
	p := k.New(t)
	p.Load(t, was)
	list, err := p.Store.List(t.Context(), "")
	if err != nil || len(list) < 5 {
		t.Fatalf("%d records, %v; %s", len(list), err, golden.Do)
	}
	for _, rec := range list {
		if _, err := p.Store.Put(t.Context(), rec.Key, rec.Value, store.Condition{Version: rec.Version}); err != nil {
			t.Fatalf("%s: %v", rec.Key, err)
		}
	}
	if a, b := blank(text(was)), blank(text(p.Dump(t))); a != b {
		t.Errorf("the server keeps\n%s\nand %s has\n%s\n%s", b, file, a, golden.Do)
	}
	resume(t, k, p.Store)
}

// Of each writing of a record these parts differ: its version, and where the server has a clock its time.
var differs = regexp.MustCompile(`\b[0-9a-f]{32}\b|\b[0-9]{16}\b`)

// blank is a text without the parts that differ; its lines are sorted, as a name can be a version.
func blank(text string) string {
	lines := strings.Split(differs.ReplaceAllString(text, "*"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func text(all map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(name + " " + strconv.Quote(all[name]) + "\n")
	}
	return b.String()
}

func parse(t *testing.T, text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		data, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %s: %v", file, name, err)
		}
		all[name] = data
	}
	return all
}

// fill has a pool with a worker that was held, a sequence and a document in a store.
func fill(t *testing.T, k Kind, st store.Store) {
	if _, err := pool.Create(t.Context(), st, pool.Default, nil); err != nil {
		t.Fatal(err)
	}
	id(t, st)
	if _, err := sequence.Create(t.Context(), st, "orders", &sequence.Options{MayRepeat: k.Lossy}); err != nil {
		t.Fatal(err)
	}
	number(t, k, st)
	if _, err := document.Create(t.Context(), st, "invoice", documents(k)); err != nil {
		t.Fatal(err)
	}
	count(t, k, st)
}

var quiet = slog.New(slog.DiscardHandler)

func documents(k Kind) *document.Options {
	return &document.Options{Pattern: "INV-{6}", MayRepeat: k.Lossy, Logger: quiet}
}

// resume gives an id and numbers, which are above all that the store had granted.
func resume(t *testing.T, k Kind, st store.Store) {
	orders, err := sequence.Show(t.Context(), st, "orders")
	if err != nil {
		t.Fatal(err)
	}
	invoice, err := document.Show(t.Context(), st, "invoice")
	if err != nil || len(invoice.Texts) == 0 {
		t.Fatalf("%+v, %v", invoice, err)
	}
	move(t, k, st)
	least := int64(0)
	if k.Lossy {
		least = skipped
	}
	if n := number(t, k, st); int64(n) <= int64(orders.Granted)+least {
		t.Errorf("number %d of the sequence, which had granted %d", n, orders.Granted)
	}
	if n := count(t, k, st); n <= invoice.Texts[0].Count+least {
		t.Errorf("number %d of the document, which had granted %d", n, invoice.Texts[0].Count)
	}
	if k.Lossy { // the recovery has the pool's ids start later
		return
	}
	var held struct {
		Term    uint64
		Horizon firn.Tick
	}
	rec, err := st.Get(t.Context(), "pool/"+pool.Default+"/worker/0")
	if err != nil || json.Unmarshal(rec.Value, &held) != nil || held.Term == 0 || held.Horizon == 0 {
		t.Fatalf("the worker's record is %s, %v", rec.Value, err)
	}
	got := id(t, st)
	if parts, err := firn.Default().Decode(got); err != nil || parts.Tick <= held.Horizon {
		t.Errorf("id %d, %v: it is not above the horizon %d of the worker", got, err, held.Horizon)
	}
}

// move says what is so where a store came to another server: it was moved, or it may have lost something.
func move(t *testing.T, k Kind, st store.Store) {
	if k.Moved {
		if _, err := sequence.Open(t.Context(), st, "orders", nil); !errors.As(err, new(*store.OtherStoreError)) {
			t.Errorf("on another server: %v, want an OtherStoreError", err)
		}
		if _, err := recovery.AcceptMove(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if !k.Lossy {
		return
	}
	contents, err := recovery.Read(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := contents.Plan(t.Context(), &recovery.Options{Numbers: skipped})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// id returns an id of the pool.
func id(t *testing.T, st store.Store) firn.ID {
	l, err := lease.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// number returns a number of the sequence.
func number(t *testing.T, k Kind, st store.Store) firn.ID {
	s, err := sequence.Open(t.Context(), st, "orders", &sequence.Options{MayRepeat: k.Lossy, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// count returns the count of a text of the document.
func count(t *testing.T, k Kind, st store.Store) int64 {
	s, err := document.Open(t.Context(), st, "invoice", documents(k))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := s.Append(t.Context(), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Count
}
