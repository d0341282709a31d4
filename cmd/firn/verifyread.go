package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/firn-id/firn"
)

// A verifyInput is where ids are read from, and in which form.
type verifyInput struct {
	name   string // of a file; "-" is standard input
	in     io.Reader
	format string // lines, csv or binary
	column string // of a CSV: a name, or a number from 1 on
	read   *atomic.Int64
}

// The forms of input.
const (
	formatLines  = "lines"
	formatCSV    = "csv"
	formatBinary = "binary"
)

// An idSink takes what is read. The function tells where it stands.
type idSink interface {
	add(id firn.ID, at func() string)
	fault(id firn.ID, why string, at func() string)
}

// mark is what some programs begin a text with, to say that it is UTF-8.
const mark = "\ufeff"

// each hands every id of the input to a sink.
func (v *verifyInput) each(to idSink) error {
	r := bufio.NewReaderSize(&countedReader{v.in, v.read}, 1<<20)
	if b, _ := r.Peek(len(mark)); string(b) == mark && v.format != formatBinary {
		r.Discard(len(mark))
	}
	switch v.format {
	case formatCSV:
		return v.eachCSV(r, to)
	case formatBinary:
		return v.eachBinary(r, to)
	default:
		return v.eachLine(r, to)
	}
}

type countedReader struct {
	r    io.Reader
	read *atomic.Int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func (v *verifyInput) eachLine(r *bufio.Reader, to idSink) error {
	var line int64
	at := func() string { return fmt.Sprintf("%s:%d", v.name, line) }
	for {
		text, tooLong, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		line++
		text = bytes.TrimSpace(text)
		switch {
		case tooLong:
			to.fault(0, fmt.Sprintf("a line longer than %d bytes", maxLine), at)
		case len(text) > 0:
			v.take(text, to, at)
		}
		if err != nil {
			return nil
		}
	}
}

// take reads one id in decimal. Nearly all are well formed, so that is tried first.
func (v *verifyInput) take(text []byte, to idSink, at func() string) {
	if len(text) < 19 && text[0] != '0' {
		var n int64
		ok := true
		for _, c := range text {
			n = n*10 + int64(c-'0')
			ok = ok && '0' <= c && c <= '9'
		}
		if ok && n > 0 {
			to.add(firn.ID(n), at)
			return
		}
	}
	id, err := firn.ParseID(string(text))
	if err != nil {
		to.fault(0, err.Error(), at)
		return
	}
	to.add(id, at)
}

func (v *verifyInput) eachCSV(r *bufio.Reader, to idSink) error {
	c := csv.NewReader(r)
	c.ReuseRecord, c.FieldsPerRecord = true, -1
	head, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	i, named, err := v.index(head)
	if err != nil {
		return err
	}
	at := func() string {
		line, _ := c.FieldPos(0)
		return fmt.Sprintf("%s:%d", v.name, line)
	}
	for record, first := head, true; ; first = false {
		// A column that is told by its number may have a name above it, or none.
		text := strings.TrimSpace(field(record, i))
		switch {
		case first && (named || !likeNumber(text)):
		case text == "":
			to.fault(0, "there is no id", at)
		default:
			v.take([]byte(text), to, at)
		}
		if record, err = c.Read(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
}

// index is the column's place, and whether the first record names it.
func (v *verifyInput) index(head []string) (i int, named bool, err error) {
	if i := slices.Index(head, v.column); i >= 0 {
		return i, true, nil
	}
	if n, err := strconv.Atoi(v.column); err == nil && n >= 1 {
		return n - 1, false, nil
	}
	return 0, false, bad("%s has no column %q", v.name, v.column).hint("its columns are %s; --column takes a number too", strings.Join(head, ", "))
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

func (v *verifyInput) eachBinary(r *bufio.Reader, to idSink) error {
	var n int64
	at := func() string { return fmt.Sprintf("%s: id %d, at byte %d", v.name, n, (n-1)*8) }
	var eight [8]byte
	for {
		n++
		switch _, err := io.ReadFull(r, eight[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			to.fault(0, "it ends in the middle of 8 bytes", at)
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", v.name, err)
		}
		value := binary.BigEndian.Uint64(eight[:])
		if value == 0 || value > math.MaxInt64 {
			to.fault(0, fmt.Sprintf("%d is no id", value), at)
			continue
		}
		to.add(firn.ID(value), at)
	}
}

// A finder looks where ids stand that were found to repeat.
type finder struct{ places map[firn.ID][]string }

func (f *finder) add(id firn.ID, at func() string) {
	if places, ok := f.places[id]; ok && len(places) < maxSightings {
		f.places[id] = append(places, at())
	}
}

func (f *finder) fault(firn.ID, string, func() string) {}

// openInputs opens files by name, and says how long they are in all; 0: nobody knows.
func openInputs(names []string) (files []*os.File, total int64, err error) {
	for _, name := range names {
		if name == "-" {
			files = append(files, nil)
			total = math.MinInt64 // it stays below 0
			continue
		}
		f, err := os.Open(name)
		if err == nil {
			var fi os.FileInfo
			if fi, err = f.Stat(); err == nil && fi.IsDir() {
				err = fmt.Errorf("%s is a directory", name)
			} else if err == nil {
				total += fi.Size()
			}
		}
		if err != nil {
			closeFiles(files)
			return nil, 0, bad("%w", err)
		}
		files = append(files, f)
	}
	return files, max(total, 0), nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
