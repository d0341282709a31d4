package verify

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

// A Sink takes what is read: a [Tally] does, and so do [Places]. Where something stands
// is told by at; it is called only for what is worth naming, and before the Sink returns.
// A nil at tells nothing.
type Sink interface {
	Add(id firn.ID, at func() string)
	Fault(err error, at func() string) // something is no id
}

// A ColumnError says that a CSV has no such column.
type ColumnError struct {
	Name    string // of the CSV
	Column  string
	Columns []string // those it has
}

func (e *ColumnError) Error() string {
	return fmt.Sprintf("verify: %s has no column %q", e.Name, e.Column)
}

const (
	// mark is what some programs begin a text with, to say that it is UTF-8.
	mark = "\ufeff"

	// maxLine is the longest line that is read. No id is nearly as long.
	maxLine = 4 << 10
)

var errNoID = errors.New("there is no id")

// errCut says that the last id of a text was probably not written whole.
var errCut = errors.New("the last line has no line end, and fewer digits than the id before it: it looks cut off; if it is whole, add the line end")

// ReadLines reads ids in decimal, one a line; a blank line is nothing. A last line without a line end is no id if it
// has fewer digits than the id before it. Places begin with the name and end with the line: ids.txt:7. Its errors are
// those of reading.
func ReadLines(r io.Reader, name string, to Sink) error {
	in := textReader(r)
	var number int64
	digits := 0 // of the id before
	at := func() string { return fmt.Sprintf("%s:%d", name, number) }
	for {
		line, tooLong, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return reading(name, err)
		}
		number++
		line = bytes.TrimSpace(line)
		switch {
		case tooLong:
			to.Fault(fmt.Errorf("a line longer than %d bytes", maxLine), at)
		case len(line) > 0 && err != nil && len(line) < digits:
			to.Fault(errCut, at)
		case len(line) > 0 && take(line, to, at):
			digits = len(line)
		}
		if err != nil {
			return nil
		}
	}
}

// ReadCSV reads ids in decimal from a column of a CSV: one that its first line names, or
// the number of one, from "1" on. Of a column that is told by its number the first line
// may be a name or an id. A last line that ends in the column is as one of [ReadLines]. It returns a [*ColumnError]
// if there is no such column, and errors of reading, as of a quote that is left open.
func ReadCSV(r io.Reader, name, column string, to Sink) error {
	in := &ending{Reader: r}
	c := csv.NewReader(textReader(in))
	c.ReuseRecord, c.FieldsPerRecord = true, -1
	head, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return reading(name, err)
	}
	i, named := indexOf(column, head)
	if i < 0 || i >= len(head) {
		return &ColumnError{name, column, slices.Clone(head)}
	}
	line, digits := 0, 0 // of this record; of the id before
	at := func() string { return fmt.Sprintf("%s:%d", name, line) }
	for record, first := head, true; ; first = false {
		// A column that is told by its number may have a name above it, or none.
		text, last := strings.TrimSpace(field(record, i)), len(record) == i+1
		line, _ = c.FieldPos(0)
		record, err = c.Read()
		switch ended := errors.Is(err, io.EOF); {
		case first && (named || !likeNumber(text)):
		case text == "":
			to.Fault(errNoID, at)
		case ended && last && in.last != '\n' && len(text) < digits:
			to.Fault(errCut, at)
		default:
			if take([]byte(text), to, at) {
				digits = len(text)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return reading(name, err)
		}
	}
}

// ending is a reader that keeps the last byte that it read.
type ending struct {
	io.Reader
	last byte
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	if n > 0 {
		e.last = b[n-1]
	}
	return n, err
}

// ReadBinary reads ids of 8 bytes each, the highest first. Its errors are those of
// reading.
func ReadBinary(r io.Reader, name string, to Sink) error {
	in := bufio.NewReaderSize(r, readAhead)
	var n int64
	at := func() string { return fmt.Sprintf("%s: id %d, at byte %d", name, n, (n-1)*8) }
	var eight [8]byte
	for {
		n++
		switch _, err := io.ReadFull(in, eight[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			to.Fault(errors.New("it ends in the middle of 8 bytes"), at)
			return nil
		case err != nil:
			return reading(name, err)
		}
		value := binary.BigEndian.Uint64(eight[:])
		if value == 0 || value > math.MaxInt64 {
			to.Fault(fmt.Errorf("%d is no id", value), at)
			continue
		}
		to.Add(firn.ID(value), at)
	}
}

const readAhead = 1 << 20

// textReader reads a text from behind its mark.
func textReader(r io.Reader) *bufio.Reader {
	b := bufio.NewReaderSize(r, readAhead)
	if begin, _ := b.Peek(len(mark)); string(begin) == mark {
		b.Discard(len(mark))
	}
	return b
}

func reading(name string, err error) error { return fmt.Errorf("verify: %s: %w", name, err) }

// readLine returns the next line, which is valid until the next call. Of one
// that is too long it returns the beginning, and skips the rest.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	line, err = r.ReadSlice('\n')
	tooLong = len(line) > maxLine
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, tooLong, err
}

// take reads one id in decimal. Nearly all are well formed, so that is tried first.
// It reports whether it is an id.
func take(text []byte, to Sink, at func() string) bool {
	if len(text) < 19 && text[0] != '0' {
		var n int64
		ok := true
		for _, c := range text {
			n = n*10 + int64(c-'0')
			ok = ok && '0' <= c && c <= '9'
		}
		if ok && n > 0 {
			to.Add(firn.ID(n), at)
			return true
		}
	}
	id, err := firn.ParseID(string(text))
	if err != nil {
		to.Fault(err, at)
		return false
	}
	to.Add(id, at)
	return true
}

// indexOf is the column's place, or -1, and whether the first record names it.
func indexOf(column string, head []string) (i int, named bool) {
	if i := slices.Index(head, column); i >= 0 {
		return i, true
	}
	if n, err := strconv.Atoi(column); err == nil && n >= 1 {
		return n - 1, false
	}
	return -1, false
}

func field(record []string, i int) string {
	if i >= len(record) {
		return ""
	}
	return record[i]
}

// likeNumber reports whether a text was meant to be a number, such as one that is too
// large for an id.
func likeNumber(text string) bool {
	return text != "" && strings.IndexByte("+-0123456789", text[0]) >= 0
}
