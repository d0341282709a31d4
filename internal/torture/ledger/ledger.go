//go:build linux

package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"github.com/firn-id/firn"
)

// A ledger is a directory with the ids that one process issued, in files that it
// maps into its memory. What was stored there is seen by others at once, and
// outlives the process however that ends.
//
// An id can be written down only once it is known, after it was issued. A
// process that is killed in the few instructions between the two leaves an id
// that nobody has ever seen: not the ledger, and nobody else.

// A Run is Count consecutive ids that one hand drew one after the other.
type Run struct {
	First firn.ID
	Count int64

	// The first was issued between these two, by the boot clock in nanoseconds: the
	// call for it was made at Begun, and had returned at Boot.
	Begun, Boot int64
}

// Last is the last id of a run.
func (r Run) Last() firn.ID { return r.First + firn.ID(r.Count-1) }

// A line is a Run in a file. Its count is written last, and grows in place.
type line struct {
	first, begun, boot int64
	count              atomic.Int64
}

func (l *line) run() Run {
	n := l.count.Load()
	return Run{First: firn.ID(l.first), Count: n, Begun: l.begun, Boot: l.boot}
}

// Numbers is where a process that has its ledger at dir writes the numbers of a series.
func Numbers(dir string) string { return filepath.Join(dir, "numbers") }

// chunk is how many lines a file has room for. The file is sparse.
const (
	chunk      = 1 << 18
	chunkBytes = chunk * int(unsafe.Sizeof(line{}))
)

func chunkName(dir string, hand, n int) string {
	return filepath.Join(dir, fmt.Sprintf("ids-%d-%d", hand, n))
}

// A Pen writes one hand's part of a ledger. A hand is a goroutine.
type Pen struct {
	dir   string
	hand  int
	boot  func() int64
	begun int64 // when the call was made whose ids come now
	files int
	lines []line  // of the latest file
	n     int     // lines begun in it
	next  firn.ID // that would continue the last line
}

// NewPen begins the part of a hand in the ledger at dir. It reads the boot clock
// from boot.
func NewPen(dir string, hand int, boot func() int64) *Pen {
	return &Pen{dir: dir, hand: hand, boot: boot}
}

// Begin says that a call for ids is made now.
func (p *Pen) Begin() { p.begun = p.boot() }

// Write writes an id down. When it returns, others can see it.
func (p *Pen) Write(id firn.ID) error {
	if id == p.next && p.n > 0 {
		p.lines[p.n-1].count.Add(1)
		p.next++
		return nil
	}
	if p.n == len(p.lines) {
		lines, err := mapChunk(chunkName(p.dir, p.hand, p.files), true)
		if err != nil {
			return err
		}
		p.files, p.lines, p.n = p.files+1, lines, 0
	}
	l := &p.lines[p.n]
	l.first, l.begun, l.boot = int64(id), p.begun, p.boot()
	l.count.Store(1)
	p.n++
	p.next = id + 1
	return nil
}

// Hands returns readers of all hands in the ledger at dir, from the nth on, that have
// begun their part.
func Hands(dir string, n int) (readers []*Reader) {
	for ; ; n++ {
		if _, err := os.Stat(chunkName(dir, n, 0)); err != nil {
			return readers
		}
		readers = append(readers, NewReader(dir, n))
	}
}

// A Reader reads a hand's part of a ledger, also while it is written.
type Reader struct {
	dir   string
	hand  int
	files [][]line

	// Up to which line it has counted: the one at (file, n) may still grow.
	file, n int
	before  int64 // ids in the lines before that
}

// NewReader reads the part of a hand in the ledger at dir.
func NewReader(dir string, hand int) *Reader { return &Reader{dir: dir, hand: hand} }

// load maps the files that have appeared. One that has not its length yet has
// no line either.
func (r *Reader) load() error {
	for {
		lines, err := mapChunk(chunkName(r.dir, r.hand, len(r.files)), false)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errShort) {
			return nil
		}
		if err != nil {
			return err
		}
		r.files = append(r.files, lines)
	}
}

// line returns line n of a file, or nil if it was not begun.
func (r *Reader) line(file, n int) *line {
	if n == chunk {
		file, n = file+1, 0
	}
	if file == len(r.files) || r.files[file][n].count.Load() == 0 {
		return nil
	}
	return &r.files[file][n]
}

// Last returns how many ids were written down so far, and the last run of them.
// It looks only at what came since the last call.
func (r *Reader) Last() (ids int64, last Run, err error) {
	if err := r.load(); err != nil {
		return 0, Run{}, err
	}
	l := r.line(r.file, r.n)
	if l == nil {
		return 0, Run{}, nil
	}
	for next := r.line(r.file, r.n+1); next != nil; next = r.line(r.file, r.n+1) {
		r.before += l.count.Load() // complete, as another has begun
		if r.n++; r.n == chunk {
			r.file, r.n = r.file+1, 0
		}
		l = next
	}
	last = l.run()
	return r.before + last.Count, last, nil
}

// Runs returns all runs, in the order in which they were drawn.
func (r *Reader) Runs() ([]Run, error) {
	if err := r.load(); err != nil {
		return nil, err
	}
	var runs []Run
	for file := range r.files {
		for n := range chunk {
			l := r.line(file, n)
			if l == nil {
				return runs, nil
			}
			runs = append(runs, l.run())
		}
	}
	return runs, nil
}

// Close gives the memory back.
func (r *Reader) Close() error {
	var errs []error
	for _, lines := range r.files {
		errs = append(errs, unmapChunk(lines))
	}
	r.files = nil
	return errors.Join(errs...)
}
