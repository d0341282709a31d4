package main

import (
	"bufio"
	"bytes"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/inspect"
)

// idLines is a reader of n lines, one id each, which are made while they are read.
type idLines struct {
	n    int
	next int64
	left []byte
}

func (r *idLines) Read(b []byte) (int, error) {
	for len(r.left) < len(b) && r.n > 0 {
		r.left = append(strconv.AppendInt(r.left, r.next, 10), '\n')
		r.next++
		r.n--
	}
	if len(r.left) == 0 {
		return 0, io.EOF
	}
	k := copy(b, r.left)
	r.left = r.left[:copy(r.left, r.left[k:])]
	return k, nil
}

// lineCounter counts lines, and keeps none.
type lineCounter int

func (c *lineCounter) Write(b []byte) (int, error) {
	*c += lineCounter(bytes.Count(b, []byte("\n")))
	return len(b), nil
}

// A million ids are decoded in bounded memory: nothing is allocated for a line.
func TestDecodeMillion(t *testing.T) {
	const n = 1_000_000
	for _, asJSON := range []bool{false, true} {
		var lines lineCounter
		d := newDecoder(&lines, io.Discard, guessedAt)
		d.known, d.json = inspect.NewDecoder(firn.MustLayout("discord")), asJSON
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		if err := d.stream(&idLines{n: n, next: 175928847299117063}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if lines != n {
			t.Errorf("json %v: %d lines, want %d", asJSON, lines, n)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("json %v: allocated %d bytes for %d ids", asJSON, got, n)
		}
		t.Logf("json %v: %d ids in %s", asJSON, n, time.Since(start))
	}
}

func TestDecodeFaultyLines(t *testing.T) {
	long := strings.Repeat("1", 200_000)
	in := "226492416061441\n" + long + "\nid\n226492416061442" // the last line has no end
	var out, errs strings.Builder
	d := newDecoder(&out, &errs, guessedAt)
	d.known = inspect.NewDecoder(firn.MustLayout("sid"))
	err := d.stream(strings.NewReader(in))
	if err == nil || err.Error() != "2 of 4 could not be decoded" {
		t.Errorf("error %v", err)
	}
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("%d ids, want 2: %q", got, out.String())
	}
	const want = "firn: error: line 2: longer than 4096 bytes\n" +
		`firn: error: line 3: id "id", column 1: "i" is not a digit` + "\n"
	if errs.String() != want {
		t.Errorf("errors\n%swant\n%s", errs.String(), want)
	}
}

// Whoever types ids sees each answer before he types the next.
func TestDecodeAnswersAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	d := newDecoder(outW, io.Discard, guessedAt)
	d.known = inspect.NewDecoder(firn.MustLayout("sid"))
	done := make(chan error)
	go func() { done <- d.stream(inR) }()
	answers := bufio.NewScanner(outR)
	for _, id := range []string{"226492416061441", "226492416061442"} {
		if _, err := io.WriteString(inW, id+"\n"); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || !strings.HasPrefix(answers.Text(), id) {
			t.Fatalf("answer %q to %s", answers.Text(), id)
		}
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// guessedAt is the instant at which tests guess layouts.
var guessedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestDecodeRefusesWords: a text that a person wrote is no id, though it can be read in some encoding. An id that has
// letters of both cases, or that --as names the form of, is read.
func TestDecodeRefusesWords(t *testing.T) {
	emptyHome(t)
	for _, text := range []string{"invoice-7", "photo-1", "user-12", "foo_bar", "helloworld"} {
		out, errs, code := called(t, "decode", text)
		if code != 2 || out != "" || !strings.Contains(errs, `"`+text+`" is no id: it looks like words and numbers`) || !strings.Contains(errs, "firn decode --pattern PATTERN "+text) {
			t.Errorf("%s: exit code %d, %q, %s", text, code, out, errs)
		}
	}
	for _, args := range [][]string{{"ybyPRoQWzX"}, {"--as", "base64url", "invoice-7"}, {"175928847299117063"}} {
		if out, errs, code := called(t, append([]string{"decode"}, args...)...); code != 0 || out == "" {
			t.Errorf("%s: exit code %d, %q, %s", args, code, out, errs)
		}
	}
}
