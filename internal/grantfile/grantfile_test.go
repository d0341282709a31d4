package grantfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
)

// memory is a file in memory, whose next write or read may fail.
type memory struct {
	data   []byte
	cut    int // so much of a write is carried out before it fails; 0: it does not fail
	unread bool
}

var errDisk = errors.New("input/output error")

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	n, err := len(b), error(nil)
	if m.cut > 0 {
		n, err = m.cut, errDisk
	}
	if grown := int(at) + n; grown > len(m.data) {
		m.data = append(m.data, make([]byte, grown-len(m.data))...)
	}
	copy(m.data[at:], b[:n])
	return n, err
}

func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	if m.unread {
		return 0, errDisk
	}
	return bytes.NewReader(m.data).ReadAt(b, at)
}

var (
	here = Place{Boot: "boot", Device: 3, Inode: 4}
	main = Owner{Pool: "main", Layout: firn.Default().String()}
)

func leave(mark firn.Tick) holder.Handover {
	return holder.Handover{Mark: mark, Grant: term.Saved{Worker: 3, PoolID: "p"}}
}

// written is a file that a process has left with a mark.
func written(t *testing.T, mark firn.Tick) *memory {
	t.Helper()
	f := new(memory)
	if err := Write(f, here, main, leave(mark)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRead(t *testing.T) {
	f := written(t, 9)
	for _, layout := range []string{"", main.Layout} {
		left, of, err := Read(f, here, Owner{Pool: "main", Layout: layout})
		if err != nil || left != leave(9) || of != main.Layout {
			t.Errorf("layout %q: %+v, %s, %v", layout, left, of, err)
		}
	}
	for want, no := range map[string]struct {
		at Place
		of Owner
	}{
		"this system does not say": {Place{Device: 3, Inode: 4}, main},
		"started again":            {Place{Boot: "x", Device: 3, Inode: 4}, main},
		"it is a copy":             {Place{Boot: "boot", Device: 3, Inode: 5}, main},
		"is a copy":                {Place{Boot: "boot", Device: 2, Inode: 4}, main},
		"it is of pool":            {here, Owner{Pool: "x", Layout: main.Layout}},
		"is of pool":               {here, Owner{Pool: "main", Layout: "twitter"}},
		"of pool":                  {here, Owner{Pool: "main", Layout: main.Layout, Shard: 1}},
	} {
		if _, _, err := Read(f, no.at, no.of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", no, err, want)
		}
	}
	refused := func(f io.ReaderAt, want string) {
		t.Helper()
		if left, _, err := Read(f, here, main); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it continues %+v, %v, want %q", left, err, want)
		}
	}
	refused(new(memory), "it is new")
	refused(&memory{data: make([]byte, 100)}, "it is new")
	refused(&memory{data: f.data, unread: true}, "cannot be read")
	void := written(t, 9)
	if err := Write(void, here, main, holder.Handover{Void: true}); err != nil {
		t.Fatal(err)
	}
	refused(void, "given back")
	newer := written(t, 9)
	text := bytes.Replace(bytes.TrimRight(newer.data, "\x00\n")[9:], []byte(`"v":1`), []byte(`"v":2`), 1)
	newer.data = []byte(checksum(text) + " " + string(text))
	refused(newer, "format 2")
}

// A process that finds the file damaged does not start from an earlier mark: ids above that were issued.
func TestDamaged(t *testing.T) {
	whole := written(t, 9)
	used := len(bytes.TrimRight(whole.data, "\x00"))
	for i := range used - 1 { // the last is the end of the line
		f := written(t, 8)
		if err := Write(f, here, main, leave(9)); err != nil {
			t.Fatal(err)
		}
		f.data[i] ^= 1
		if left, _, err := Read(f, here, main); err == nil {
			t.Fatalf("byte %d is another: it continues from mark %d", i, left.Mark)
		}
		f.data = f.data[:i]
		if left, _, err := Read(f, here, main); err == nil {
			t.Fatalf("%d bytes are left: it continues from mark %d", i, left.Mark)
		}
	}
}

// After a write that is broken off the file has one of the two marks, or is of no use; a write after that is read.
func TestTorn(t *testing.T) {
	for cut := 1; cut < Size; cut += 7 {
		f := written(t, 99)
		f.cut = cut
		if err := Write(f, here, main, leave(100)); err == nil {
			t.Fatal("the write did not fail")
		}
		if left, _, err := Read(f, here, main); err == nil && left.Mark != 99 && left.Mark != 100 {
			t.Errorf("cut at %d: mark %d", cut, left.Mark)
		}
		f.cut = 0
		if err := Write(f, here, main, leave(101)); err != nil {
			t.Fatal(err)
		}
		if left, _, err := Read(f, here, main); err != nil || left.Mark != 101 {
			t.Errorf("written after a cut at %d: mark %d, %v", cut, left.Mark, err)
		}
	}
}

func TestTooLong(t *testing.T) {
	f := new(memory)
	if err := Write(f, here, Owner{Pool: strings.Repeat("x", Size)}, leave(1)); err == nil || len(f.data) > 0 {
		t.Errorf("%v, %d bytes were written", err, len(f.data))
	}
}

// Whatever is in a grant file, its grant is continued only where it says that it is of this file, this run of the
// system, and this pool; and what is written is read.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{}"), true)
	f.Add([]byte("\x00"), true)
	f.Add([]byte("00000000 {}"), false)
	for _, left := range []holder.Handover{leave(9), leave(-1), {Void: true}} {
		file := new(memory)
		if err := Write(file, here, main, left); err != nil {
			f.Fatal(err)
		}
		text := bytes.TrimRight(file.data, "\x00\n")
		f.Add(text, false)
		f.Add(text[9:], true)
	}
	f.Fuzz(func(t *testing.T, text []byte, summed bool) {
		if summed {
			text = []byte(checksum(text) + " " + string(text))
		}
		file := &memory{data: text[:min(len(text), Size)]}
		of := Owner{Pool: "main"}
		left, layout, err := Read(file, here, of)
		if err != nil {
			return
		}
		b, err := read(file)
		if err != nil || b.V != format || b.Void || b.Place != here || b.Pool != "main" || b.Shard != 0 {
			t.Fatalf("it continues %+v", b)
		}
		of.Layout = layout
		if err := Write(file, here, of, left); err != nil {
			return // too long
		}
		again, _, err := Read(file, here, of)
		if err != nil || again != left {
			t.Fatalf("%+v is written and read as %+v, %v", left, again, err)
		}
	})
}
