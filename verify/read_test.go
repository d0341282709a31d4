package verify_test

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/verify"
)

func TestBinary(t *testing.T) {
	var b []byte
	for _, v := range []uint64{250041753275469782, 250041753275469783, 250041753275469782, 0, 1 << 63} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	all := verify.NewTally(firn.Default())
	if err := verify.ReadBinary(strings.NewReader(string(b)+"abc"), "x", all); err != nil {
		t.Fatal(err)
	}
	r := all.Report()
	if r.IDs != 3 || r.Repeats != 1 || r.Faults != 3 {
		t.Errorf("%d ids, %d repeats, %d faults", r.IDs, r.Repeats, r.Faults)
	}
	if at := r.Repeated[0].At; at != "x: id 3, at byte 16" {
		t.Errorf("the repeat is at %q", at)
	}
}

// A last line that was cut off is no id, in lines and in a column. One of as many digits is, and so is one with a line end.
func TestCutOff(t *testing.T) {
	const whole = "250041753275469782\n250041753275469783\n"
	column := func(r io.Reader, name string, to verify.Sink) error { return verify.ReadCSV(r, name, "id", to) }
	for _, c := range []struct {
		read        func(io.Reader, string, verify.Sink) error
		text        string
		ids, faults int64
	}{
		{verify.ReadLines, whole + "250041753275", 2, 1},
		{verify.ReadLines, whole + "250041753275\n", 3, 0},
		{verify.ReadLines, whole + "250041753275469784", 3, 0},
		{verify.ReadLines, "250041753275", 1, 0},
		{column, "name,id\na,250041753275469782\nb,250041", 1, 1},
		{column, "name,id\na,250041753275469782\nb,250041\n", 2, 0},
		{column, "id,name\n250041753275469782,a\n250041,b", 2, 0}, // the cut, if any, is in the name
		{column, "id\n250041753275469782\n250041753275469783", 2, 0},
	} {
		all := verify.NewTally(firn.Default())
		if err := c.read(strings.NewReader(c.text), "x", all); err != nil {
			t.Error(err)
		}
		r := all.Report()
		if r.IDs != c.ids || r.Faults != c.faults {
			t.Errorf("%q: %d ids, %d faults; want %d, %d", c.text, r.IDs, r.Faults, c.ids, c.faults)
		}
		for _, f := range r.Faulty {
			if at := fmt.Sprintf("x:%d", 1+strings.Count(c.text, "\n")); f.At != at || !strings.Contains(f.Err.Error(), "looks cut off") {
				t.Errorf("%q: %s: %v; want it at %s", c.text, f.At, f.Err, at)
			}
		}
	}
}

// Places are where ids stand that are looked for, and nothing else.
func TestPlaces(t *testing.T) {
	places := verify.Places{7: nil, 8: nil}
	text := "7\n9\nx\n7\n" + strings.Repeat("8\n", 2*verify.MaxNamed)
	if err := verify.ReadLines(strings.NewReader(text), "a", places); err != nil {
		t.Fatal(err)
	}
	if len(places) != 2 || !slices.Equal(places[7], []string{"a:1", "a:4"}) || len(places[8]) != verify.MaxNamed {
		t.Errorf("%v", places)
	}
}

func TestReadErrors(t *testing.T) {
	all := verify.NewTally(firn.Default())
	var missing *verify.ColumnError
	err := verify.ReadCSV(strings.NewReader("name,id\na,1\n"), "x.csv", "key", all)
	if !errors.As(err, &missing) || !slices.Equal(missing.Columns, []string{"name", "id"}) {
		t.Errorf("%v", err)
	}
	broken := iotest.ErrReader(errors.ErrUnsupported)
	for _, err := range []error{
		verify.ReadCSV(broken, "x", "1", all), verify.ReadLines(broken, "x", all), verify.ReadBinary(broken, "x", all),
	} {
		if !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "verify: x: ") {
			t.Errorf("%v", err)
		}
	}
	if r := all.Report(); r.IDs != 0 || r.Faults != 0 || len(r.Makers) != 0 {
		t.Errorf("%+v", r)
	}
}

// The forms of input that FuzzVerify reads.
const (
	formLines  = "lines"
	formCSV    = "csv"
	formBinary = "binary"
)

// FuzzVerify reads anything: each line is an id as ParseID reads it, or a fault.
func FuzzVerify(f *testing.F) {
	f.Add("1\n2\n2\n", formLines)
	f.Add("9223372036854775807\n9223372036854775808\n00\n 7 \r\n\n-1", formLines)
	f.Add("a,b\n\"1\",2\n,\n", formCSV)
	f.Add("12345678abcdefgh\x80", formBinary)
	f.Fuzz(func(t *testing.T, text, form string) {
		all, in := verify.NewTally(firn.Default()), strings.NewReader(text)
		var err error
		switch form {
		case formCSV:
			err = verify.ReadCSV(in, "x", "1", all)
		case formBinary:
			err = verify.ReadBinary(in, "x", all)
		default:
			err = verify.ReadLines(in, "x", all)
			var ids, faults int64
			digits := 0
			for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
				whole := strings.HasSuffix(line, "\n")
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				if _, err := firn.ParseID(line); err != nil || len(line) > 4<<10 || !whole && len(line) < digits {
					faults++
				} else {
					ids++
					digits = len(line)
				}
			}
			if r := all.Report(); r.IDs != ids || r.Faults != faults || err != nil {
				t.Errorf("%d ids and %d faults, not %d and %d; %v", r.IDs, r.Faults, ids, faults, err)
			}
		}
		if err != nil && form != formCSV {
			t.Error(err)
		}
		if _, err := json.Marshal(all.Report()); err != nil { // as a program may
			t.Error(err)
		}
	})
}

// FuzzVerifyColumns reads a column, or bytes: each row and each 8 bytes is an id or a
// fault.
func FuzzVerifyColumns(f *testing.F) {
	f.Add([]byte("id,b\n\"1\",2\n,\n 7 ,x\nx\n9223372036854775808\n"), true)
	f.Add([]byte("a\n1\n"), true)
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01\x80\x00\x00\x00\x00\x00\x00\x00abc"), false)
	f.Fuzz(func(t *testing.T, text []byte, columns bool) {
		all, in := verify.NewTally(firn.Default()), bytes.NewReader(text)
		var ids, faults int64
		var err error
		if columns {
			err = verify.ReadCSV(in, "x", "1", all)
			c := csv.NewReader(bytes.NewReader(text))
			c.FieldsPerRecord = -1
			rows, err := c.ReadAll()
			if err != nil || len(rows) > 0 && slices.Contains(rows[0], "1") {
				rows = nil
			}
			digits := 0
			for i, row := range rows {
				cut := i == len(rows)-1 && len(row) == 1 && !bytes.HasSuffix(text, []byte("\n")) && len(strings.TrimSpace(row[0])) < digits
				_, numeric := strconv.ParseInt(strings.TrimSpace(row[0]), 10, 64)
				if i == 0 && numeric != nil {
					continue // the names
				}
				if _, err := firn.ParseID(strings.TrimSpace(row[0])); err == nil && !cut {
					ids++
					digits = len(strings.TrimSpace(row[0]))
				} else {
					faults++
				}
			}
			if rows == nil {
				ids, faults = -1, -1
			}
		} else {
			err = verify.ReadBinary(in, "x", all)
			for eight := range slices.Chunk(text, 8) {
				if len(eight) == 8 && int64(binary.BigEndian.Uint64(eight)) > 0 {
					ids++
				} else {
					faults++
				}
			}
		}
		r := all.Report()
		if ids >= 0 && (err != nil || r.IDs != ids || r.Faults != faults) {
			t.Fatalf("%q: %d ids and %d faults, not %d and %d; %v", text, r.IDs, r.Faults, ids, faults, err)
		}
	})
}
