package grantfile

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/golden"
	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// TestGolden reads a grant file as version 0.1.0 has written it, and writes it with the same bytes.
func TestGolden(t *testing.T) {
	const file = "testdata/0.1.0/grant"
	at := Place{Boot: "5f0c2a2e-8a3d-4d0e-9d5b-1f8f2f1f7c11", Device: 64769, Inode: 18446744073709551615}
	of := Owner{Pool: "web", Layout: "time:41@1ms,shard:2,worker:8,seq:12;epoch=2025-01-01T00:00:00Z", Shard: 3}
	want := holder.Handover{
		Mark: 60_000_000_001,
		Grant: term.Saved{
			PoolID: "00112233445566778899aabbccddeeff", Worker: 7,
			Record:  term.Record{V: 1, Term: 9, Owner: "ffeeddccbbaa99887766554433221100", Name: "host:4711", Build: "v0.1.0", Horizon: 60_000_300_000, TTL: 12_000},
			Version: "v1", Since: 3_600_000_000_123, Reach: 180 * time.Second, Read: time.Date(2026, 11, 28, 11, 0, 0, 5, time.UTC), Lossy: true,
		},
		Durability: store.Durability{Durable: true, Why: "journal_mode=wal", LocalClock: true, NoticesLoss: true, Instance: "i", Identity: "fedcba98"},
	}
	var now memory
	if err := Write(&now, at, of, want); err != nil {
		t.Fatal(err)
	}
	golden.Same(t, file, now.data, "")
	was := &memory{data: golden.Read(t, file)}
	got, layout, err := Read(was, at, of)
	if err != nil || layout != of.Layout || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %q, %v, want %+v", got, layout, err, want)
	}
	filled := want
	filled.Void = true
	golden.Filled(t, file, filled, at, of)
}

// TestNewerFormat: a file with another format number is of no use, whatever else it has. What a process does then is to
// take a worker like any other.
func TestNewerFormat(t *testing.T) {
	f := written(t, firn.Tick(7))
	_, text, _ := bytes.Cut(bytes.TrimRight(f.data, "\x00\n"), []byte{' '})
	for was, is := range map[string]string{`"v":1`: `"v":2`, `{"v":1,`: `{"v":2,"later":{},`} {
		changed := bytes.Replace(text, []byte(was), []byte(is), 1)
		newer := &memory{data: []byte(checksum(changed) + " " + string(changed) + "\n")}
		if _, _, err := Read(newer, here, main); err == nil || !strings.Contains(err.Error(), "it has format 2, written by another firn") {
			t.Errorf("%s: %v", is, err)
		}
	}
}
