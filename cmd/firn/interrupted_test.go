//go:build !windows

package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/phrase"
)

// A command that a signal ends says on one line what it has done by then. Those of a store wait here for
// one that does not answer, and the others for input.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	const id = "250041753275469782\n"
	const changes = "nothing was printed; whether anything was changed is not known"
	for _, tt := range []struct {
		input, want string // a line, which comes again and again; without one there is a store
		args        []string
	}{
		{id, `[0-9,]+ ids were decoded`, []string{"decode"}},
		{id, `[0-9,]+ ids were written`, []string{"public", "encode", "--as", "hex"}},
		{id, `[0-9.]+ kB were read; whether an id repeats is not known`, []string{"verify"}},
		{"2012-03-03\n", `[0-9,]+ lines were read; no worker was taken, and no id printed`, []string{"backfill", "-", "--worker", "7", "--store", "none", "--layout", "time:41@1s,worker:3,seq:19;epoch=2010-01-01T00:00:00Z"}},
		{"", changes, []string{"next"}},
		{"", "nothing was printed", []string{"worker", "ls"}},
		{"", "nothing was printed", []string{"pool", "ls"}},
		{"", changes, []string{"pool", "ensure"}},
		{"", changes, []string{"series", "create", "orders", "--kind", "sequence"}},
		{"", "nothing was printed", []string{"series", "ls"}},
		{"", changes, []string{"store", "setup"}},
		{"", "1 line was printed", []string{"version"}},
		{"", "COMMAND was not started", []string{"run"}},
	} {
		for _, asJSON := range []bool{false, true} {
			args, want := slices.Clone(tt.args), `^firn: interrupted: `+tt.want+`\n$`
			if asJSON {
				args, want = append(args, "--json"), `^{"note":"interrupted: `+tt.want+`"}\n$`
			}
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				t.Parallel()
				p := interruptible(t, args, tt.input)
				if code := p.code(t); code != 130 || !regexp.MustCompile(want).Match(p.errs.Bytes()) {
					t.Errorf("exit code %d; stderr %q, want %s", code, &p.errs, want)
				}
			})
		}
	}
}

// interruptible starts a command, and interrupts it when it has read of its input or waits for its store.
func interruptible(t *testing.T, args []string, line string) *process {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	if line == "" {
		args = append(args, "--store", "postgres://u@"+silent.Addr().String()+"/db?sslmode=disable")
	}
	if args[0] == "run" {
		args = append(args, "--", "true")
	}
	p := command(t, "", args...)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
	if line != "" {
		// More than a pipe takes: what is beyond that was read.
		_, err = io.WriteString(in, strings.Repeat(line, 400_000/len(line)))
	} else {
		var c net.Conn
		if c, err = silent.Accept(); err == nil {
			t.Cleanup(func() { c.Close() })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	return p
}

// What decode says that it has done is what it has printed, in the middle of a long input.
func TestInterruptedCounts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := command(t, "", "decode", "--layout", "firn")
	p.Stdout = &out
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdin = r
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	for range 200 {
		if _, err := io.WriteString(w, strings.Repeat("250041753275469782\n", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	p.Process.Signal(syscall.SIGINT)
	for err == nil { // until it reads no more
		_, err = io.WriteString(w, "250041753275469782\n")
	}
	w.Close()
	code, text := p.code(t), p.errs.String()
	lines := phrase.Count(int64(bytes.Count(out.Bytes(), []byte{'\n'})))
	if code != 130 || text != "firn: interrupted: "+lines+" ids were decoded\n" {
		t.Errorf("exit code %d; %s lines, stderr %q", code, lines, text)
	}
}
