package firn

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	_ fmt.Stringer             = ID(0)
	_ encoding.TextAppender    = ID(0)
	_ encoding.TextMarshaler   = ID(0)
	_ encoding.TextUnmarshaler = (*ID)(nil)
	_ json.Marshaler           = ID(0)
	_ json.Unmarshaler         = (*ID)(nil)
	_ driver.Valuer            = ID(0)
	_ sql.Scanner              = (*ID)(nil)
)

func TestParseID(t *testing.T) {
	for _, want := range []ID{1, 9, 10, 99_999_999, 1e8, 1<<53 - 1, 1e16 - 1, 1e16, 844272577781444608, math.MaxInt64 - 1, math.MaxInt64} {
		got, err := ParseID(strconv.FormatInt(int64(want), 10))
		if err != nil || got != want {
			t.Errorf("ParseID(%d) = %d, %v", want, got, err)
		}
	}
}

func TestParseIDErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `firn: id "", column 1: there is no digit`},
		{"0", `firn: id "0", column 1: zero is never issued`},
		{"00", `firn: id "00", column 1: an id has no leading zero`},
		{"07", `firn: id "07", column 1: an id has no leading zero`},
		{"-5", `firn: id "-5", column 1: an id has no sign`},
		{"+5", `firn: id "+5", column 1: an id has no sign`},
		{"5-", `firn: id "5-", column 2: "-" is not a digit`},
		{" 5", `firn: id " 5", column 1: an id has no space`},
		{"5\n", `firn: id "5\n", column 2: an id has no space`},
		{"1,000", `firn: id "1,000", column 2: "," is not a digit`},
		{"1_000", `firn: id "1_000", column 2: "_" is not a digit`},
		{"0x1f", `firn: id "0x1f", column 2: "x" is not a digit`},
		{"12３", `firn: id "12３", column 3: "３" is not a digit`},
		{"12\xff", `firn: id "12\xff", column 3: "\xff" is not a digit`},
		{"9223372036854775808", `firn: id "9223372036854775808", column 1: above 9223372036854775807`},
		{"18446744073709551617", `firn: id "18446744073709551617", column 1: above 9223372036854775807`},
		{
			strings.Repeat("7", 1000) + "x",
			`firn: id "` + strings.Repeat("7", 160) + `"..., column 1001: "x" is not a digit`,
		},
	} {
		got, err := ParseID(c.text)
		if got != 0 || err == nil || err.Error() != c.want {
			t.Errorf("ParseID(%q) = %d, %v\nwant %s", c.text, got, err, c.want)
			continue
		}
		if syntax, ok := errors.AsType[*SyntaxError](err); !ok || syntax.Kind != "id" || syntax.Text != c.text {
			t.Errorf("ParseID(%q): %#v", c.text, err)
		}
	}
}

// What is not the text that strconv writes of a positive int64 is no id.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "0", "1", "01", "+1", "-1", " 1", "1e3", "9223372036854775807", "9223372036854775808", "99999999999999999999", "１"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := strconv.ParseInt(s, 10, 64)
		canonical := err == nil && n > 0 && strconv.FormatInt(n, 10) == s
		id, err := ParseID(s)
		if (err == nil) != canonical {
			t.Fatalf("ParseID(%q) = %d, %v", s, id, err)
		}
		if err != nil {
			syntax, ok := errors.AsType[*SyntaxError](err)
			if !ok || syntax.Offset < 0 || syntax.Offset > len(s) || len(err.Error()) > 900 {
				t.Fatalf("ParseID(%q): %v", s, err)
			}
			return
		}
		if int64(id) != n || id.String() != s {
			t.Fatalf("ParseID(%q) = %d", s, id)
		}
		text, err := id.AppendText([]byte("id="))
		if err != nil || string(text) != "id="+s {
			t.Fatalf("AppendText of %q: %q, %v", s, text, err)
		}
	})
}

// appendDecimal writes whole words: none of them may show or be lost, however
// much room there is.
func TestAppendDecimal(t *testing.T) {
	numbers := []uint64{1, 9, math.MaxInt64}
	for n := uint64(10); n < 1e18; n *= 10 {
		numbers = append(numbers, n-1, n, n+1, n*10-1, n*9+n/7)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		numbers = append(numbers, r.Uint64()>>(1+r.IntN(63)))
	}
	for _, n := range numbers {
		want := strconv.FormatUint(n, 10)
		for _, room := range []int{0, len(want) - 1, len(want), maxDigits, 40} {
			b := append(make([]byte, 0, 2+room), "x:"...)
			if got := string(appendDecimal(b, n)); got != "x:"+want {
				t.Fatalf("appendDecimal(%d) with room for %d: %q", n, room, got)
			}
		}
	}
	step := uint64(31)
	if testing.Short() {
		step = 997
	}
	for n := uint64(0); n < 1e8; n += step {
		digits := eightDigits(n)
		for rest := n; rest > 0 || digits>>56 != '0'; rest /= 10 {
			if digits>>56 != '0'+rest%10 {
				t.Fatalf("eightDigits(%d) is wrong", n)
			}
			digits = digits<<8 | '0'
		}
	}
}

func TestIDJSON(t *testing.T) {
	type photo struct {
		ID     ID  `json:"id"`
		Parent *ID `json:"parent,omitempty"`
	}
	b, err := json.Marshal(photo{ID: 844272577781444608})
	if err != nil || string(b) != `{"id":"844272577781444608"}` {
		t.Errorf("%s, %v", b, err)
	}
	for _, text := range []string{`{"id":"844272577781444608"}`, `{"id":844272577781444608}`, `{"id": 844272577781444608, "parent": null}`} {
		var p photo
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.ID != 844272577781444608 || p.Parent != nil {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
	for _, c := range []struct{ text, want string }{
		{`1.5`, `firn: id "1.5", column 2: "." is not a digit`},
		{`1e3`, `firn: id "1e3", column 2: "e" is not a digit`},
		{`""`, `firn: id "", column 1: there is no digit`},
		{`"`, `firn: id "\"", column 1: "\"" is not a digit`},
		{`00`, `firn: id "00", column 1: an id has no leading zero`},
		{`0.0`, `firn: id "0.0", column 2: "." is not a digit`},
		{`-0`, `firn: id "-0", column 1: an id has no sign`},
		{`"null"`, `firn: id "null", column 1: "n" is not a digit`},
		{`-1`, `firn: id "-1", column 1: an id has no sign`},
		{`"-1"`, `firn: id "-1", column 1: an id has no sign`},
		{`" 1"`, `firn: id " 1", column 1: an id has no space`},
		{`true`, `firn: id "true", column 1: "t" is not a digit`},
		{`{}`, `firn: id "{}", column 1: "{" is not a digit`},
		{`"\u0031"`, `firn: id "\\u0031", column 1: "\\" is not a digit`},
		{`9223372036854775808`, `firn: id "9223372036854775808", column 1: above 9223372036854775807`},
	} {
		id := ID(7)
		if err := id.UnmarshalJSON([]byte(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.text, err, c.want)
		}
		if id != 7 {
			t.Errorf("%s: changed the id to %d", c.text, id)
		}
	}
	var keyed map[ID]string
	if err := json.Unmarshal([]byte(`{"12":"a"}`), &keyed); err != nil || keyed[12] != "a" {
		t.Errorf("as a key: %v, %v", keyed, err)
	}
}

// The zero ID is a field that was not set: every form writes it as 0 and reads that back.
func TestZeroIDIsWrittenAndReadBack(t *testing.T) {
	type row struct {
		ID    ID         `json:"id"`
		Empty ID         `json:"empty,omitzero"`
		Ref   *ID        `json:"ref"`
		Keyed map[ID]int `json:"keyed"`
	}
	b, err := json.Marshal(row{Keyed: map[ID]int{0: 1}})
	if want := `{"id":"0","ref":null,"keyed":{"0":1}}`; err != nil || string(b) != want {
		t.Errorf("Marshal: %s, %v, want %s", b, err, want)
	}
	back := row{ID: 7}
	if err := json.Unmarshal(b, &back); err != nil || back.ID != 0 || back.Ref != nil || len(back.Keyed) != 1 {
		t.Errorf("Unmarshal of %s: %+v, %v", b, back, err)
	}
	for text, want := range map[string]ID{`0`: 0, `"0"`: 0, `null`: 7} {
		id := ID(7)
		if err := json.Unmarshal([]byte(text), &id); err != nil || id != want {
			t.Errorf("Unmarshal(%s) leaves %d, %v, want %d", text, id, err, want)
		}
		id = 7
		if err := id.UnmarshalJSON([]byte(text)); err != nil || id != want {
			t.Errorf("UnmarshalJSON(%s) leaves %d, %v, want %d", text, id, err, want)
		}
	}
	text, err := ID(0).MarshalText()
	if err != nil || string(text) != "0" {
		t.Errorf("MarshalText: %s, %v", text, err)
	}
	id := ID(7)
	if err := id.UnmarshalText(text); err != nil || id != 0 {
		t.Errorf("UnmarshalText(%s): %d, %v", text, id, err)
	}
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	} {
		var out strings.Builder
		slog.New(handler(&out)).Info("saved", "id", ID(0))
		if !strings.Contains(out.String(), "id=0\n") && !strings.Contains(out.String(), `"id":"0"}`) {
			t.Errorf("slog, %s: %s", name, out.String())
		}
	}
	if text := fmt.Sprint(ID(0)); text != "0" {
		t.Errorf("printed: %s", text)
	}
}

// An id that is required is never 0: none is read from a text that must have one, and none
// goes into a database or comes out.
func TestZeroIDIsNoID(t *testing.T) {
	if id, err := ParseID("0"); err == nil {
		t.Errorf("ParseID: %d", id)
	}
	if v, err := ID(0).Value(); err == nil || !strings.Contains(err.Error(), "use sql.Null[firn.ID]") {
		t.Errorf("Value: %v, %v", v, err)
	}
	for _, src := range []any{int64(0), uint64(0), "0", []byte("0"), nil} {
		id := ID(7)
		if err := id.Scan(src); err == nil || id != 7 {
			t.Errorf("Scan(%#v) leaves %d, %v", src, id, err)
		}
	}
}

// A negative number is no id in any form, and String shows it.
func TestIDNeverIssued(t *testing.T) {
	for id, want := range map[ID]string{
		-1:            "firn: id -1 is not positive",
		math.MinInt64: "firn: id -9223372036854775808 is not positive",
	} {
		_, err1 := id.AppendText(nil)
		_, err2 := id.MarshalText()
		_, err3 := id.MarshalJSON()
		_, err4 := id.Value()
		err5 := new(ID).Scan(int64(id))
		for i, err := range []error{err1, err2, err3, err4, err5} {
			if err == nil || err.Error() != want {
				t.Errorf("%d, form %d: %v", id, i+1, err)
			}
		}
		if got := id.String(); got != strconv.FormatInt(int64(id), 10) {
			t.Errorf("String of %d: %s", int64(id), got)
		}
	}
}

func TestIDSQL(t *testing.T) {
	if v, err := ID(12).Value(); err != nil || v != int64(12) {
		t.Errorf("Value: %v, %v", v, err)
	}
	for _, src := range []any{int64(12), uint64(12), []byte("12"), "12"} {
		var id ID
		if err := id.Scan(src); err != nil || id != 12 {
			t.Errorf("Scan(%#v): %d, %v", src, id, err)
		}
	}
	for _, c := range []struct {
		src  any
		want string
	}{
		{nil, "firn: an id is never NULL; scan into sql.Null[firn.ID] where there may be none"},
		{1.5, "firn: cannot scan float64 into an id: it is int64, uint64, []byte or string"},
		{uint64(1 << 63), `firn: id "9223372036854775808", column 1: above 9223372036854775807`},
		{uint64(math.MaxUint64), `firn: id "18446744073709551615", column 1: above 9223372036854775807`},
		{"", `firn: id "", column 1: there is no digit`},
		{[]byte("x"), `firn: id "x", column 1: "x" is not a digit`},
	} {
		id := ID(7)
		if err := id.Scan(c.src); err == nil || err.Error() != c.want || id != 7 {
			t.Errorf("Scan(%#v): %d, %v\nwant %s", c.src, id, err, c.want)
		}
	}
}

// The errors tell people to use sql.Null: so it has to work.
func TestIDNull(t *testing.T) {
	var id sql.Null[ID]
	if err := id.Scan(nil); err != nil || id.Valid {
		t.Errorf("NULL: %+v, %v", id, err)
	}
	if v, err := id.Value(); err != nil || v != nil {
		t.Errorf("NULL: %v, %v", v, err)
	}
	if err := id.Scan([]byte("12")); err != nil || !id.Valid || id.V != 12 {
		t.Errorf("12: %+v, %v", id, err)
	}
	if v, err := id.Value(); err != nil || v != int64(12) {
		t.Errorf("12: %v, %v", v, err)
	}
}

func TestIDAllocs(t *testing.T) {
	b := make([]byte, 0, 19)
	text, quoted := []byte("9223372036854775807"), []byte(`"9223372036854775807"`)
	var id ID
	for name, f := range map[string]func(){
		"AppendText":    func() { b, _ = ID(math.MaxInt64).AppendText(b[:0]) },
		"AppendText 16": func() { b, _ = ID(1<<53 - 1).AppendText(b[:0]) },
		"AppendText 1":  func() { b, _ = ID(1).AppendText(b[:0]) },
		"ParseID":       func() { id, _ = ParseID("9223372036854775807") },
		"UnmarshalText": func() { _ = id.UnmarshalText(text) },
		"UnmarshalJSON": func() { _ = id.UnmarshalJSON(quoted) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		r    Range
		want []ID
	}{
		{Range{}, nil},
		{Range{First: 5, Count: -1, Step: 1}, nil},
		{Range{First: 5, Count: 1, Step: 3}, []ID{5}},
		{Range{First: 5, Count: 3, Step: 3}, []ID{5, 8, 11}},
		{Range{First: 5, Count: 3}, []ID{5, 6, 7}},
		{Range{First: 5, Count: 3, Step: -2}, []ID{5, 3, 1}},
		{Range{First: math.MaxInt64 - 1, Count: 2, Step: 1}, []ID{math.MaxInt64 - 1, math.MaxInt64}},
	} {
		got := slices.Collect(c.r.All())
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %d, want %d", c.r, got, c.want)
		}
		last := ID(0)
		if len(c.want) > 0 {
			last = c.want[len(c.want)-1]
		}
		if c.r.Last() != last {
			t.Errorf("%+v: last %d, want %d", c.r, c.r.Last(), last)
		}
	}
	for id := range (Range{First: 1, Count: math.MaxInt, Step: 1}).All() {
		if id == 3 {
			break
		}
	}
}

func BenchmarkID(b *testing.B) {
	id := ID(844272577781444608)
	text, _ := id.MarshalText()
	quoted, _ := id.MarshalJSON()
	buf := make([]byte, 0, 32)
	spelled := string(text)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"AppendText", func() { buf, _ = id.AppendText(buf[:0]) }},
		{"strconv.AppendInt", func() { buf = strconv.AppendInt(buf[:0], int64(id), 10) }},
		{"String", func() { spelled = id.String() }},
		{"MarshalText", func() { text, _ = id.MarshalText() }},
		{"MarshalJSON", func() { quoted, _ = id.MarshalJSON() }},
		{"ParseID", func() { id, _ = ParseID(spelled) }},
		{"strconv.ParseInt", func() { _, _ = strconv.ParseInt(spelled, 10, 64) }},
		{"UnmarshalText", func() { _ = id.UnmarshalText(text) }},
		{"UnmarshalJSON", func() { _ = id.UnmarshalJSON(quoted) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
		})
	}
}
