package lease

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
)

// Whatever is in a grant file, it is gone on with only where it says that it is of
// this file, this run of the system, and this pool; and what is written is read.
func FuzzGrantFile(f *testing.F) {
	g, err := openGrantFile(filepath.Join(f.TempDir(), "grant"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(g.close)
	g.boot = "boot" // so that there is one on every system
	slotOf := func(change func(*slot)) []byte {
		s := slot{
			V: 1, Serial: 7, Boot: g.boot, Device: g.device, Inode: g.inode, Pool: "main", Layout: "l",
			Slot: holder.Slot{Mark: 9, Grant: term.Saved{Worker: 3, PoolID: "p"}},
		}
		change(&s)
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	for _, change := range []func(*slot){
		func(*slot) {}, func(s *slot) { s.V = 2 }, func(s *slot) { s.Void = true }, func(s *slot) { s.Boot = "x" }, func(s *slot) { s.Inode++ },
		func(s *slot) { s.Pool = "x" }, func(s *slot) { s.Serial = 1<<64 - 1 }, func(s *slot) { s.Mark = -1 },
	} {
		f.Add(slotOf(change), slotOf(func(s *slot) { s.Serial = 8 }), true)
	}
	f.Add([]byte("{}"), []byte("\x00"), true)
	f.Add([]byte("00000000 "), []byte(" {}"), false)
	f.Fuzz(func(t *testing.T, first, second []byte, summed bool) {
		if err := g.file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		for i, text := range [][]byte{first, second} {
			if summed {
				text = []byte(checksum(text) + " " + string(text))
			}
			if _, err := g.file.WriteAt(text[:min(len(text), slotSize)], int64(i)*slotSize); err != nil {
				t.Fatal(err)
			}
		}
		main := &Options{Pool: "main"}
		s, err := g.read(main)
		if err != nil {
			return
		}
		if s.V != 1 || s.Void || s.Boot != g.boot || s.Device != g.device || s.Inode != g.inode || s.Pool != "main" || s.Shard != 0 {
			t.Fatalf("it goes on with %+v", s)
		}
		if !summed && !bytes.Contains(append(first, second...), []byte(`"boot"`)) {
			t.Fatalf("%q and %q: a sum was right by chance", first, second)
		}
		if s.Serial == 1<<64-1 {
			return // the next one would be 0
		}
		if err := g.write(s); err != nil {
			return // too long
		}
		again, err := g.read(main)
		want, _ := json.Marshal(s)
		s.Serial++
		got, _ := json.Marshal(again)
		if err != nil || again.Serial != s.Serial || again.Mark != s.Mark || len(got) < len(want) {
			t.Fatalf("%s is written and read as %s, %v", want, got, err)
		}
	})
}
