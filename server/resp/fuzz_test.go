package resp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
)

var pipelines = []string{
	"*2\r\n$4\r\nINCR\r\n$5\r\nphoto\r\n", "*1\r\n$4\r\nPING\r\n", "PING\r\n", "incr photo\n", "\r\n", "*0\r\n", "*-1\r\n",
	"*2\r\n$4\r\nINCR\r\n$5\r\nphoto\r\n*2\r\n$4\r\nINCR\r\n$5\r\nph", "*1\r\n$0\r\n\r\n", "*3\r\n$5\r\nHELLO\r\n$1\r\n3\r\n",
	"*1025\r\n", "*1\r\n$16385\r\n", "*1\r\n$-1\r\n", "*99999999999999999999\r\n", "*1\r\nx", "*1\n", "*1\r$", "POST / HTTP/1.1\r\n",
	"MULTI\r\nINCR photo\r\nEXEC\r\n", "CLIENT REPLY OFF\r\nINCR photo\r\nCLIENT REPLY ON\r\nINCR photo\r\n", "FIRN.NEXT photo 3\r\nFIRN.RANGE photo 3\r\nINCRBY photo 2\r\n",
	"AUTH x\r\nRESET\r\nCOMMAND\r\nCONFIG GET *\r\nFIRN.DECODE 12345\r\nQUIT\r\n",
}

// What parse finds is within what was sent, the same when it comes in pieces, and the
// same when it is written again.
func FuzzParse(f *testing.F) {
	for _, p := range pipelines {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 256
		used, args, err := parse(b, nil, limit)
		if err != nil {
			if used != 0 {
				t.Fatalf("%d bytes used with %v", used, err)
			}
			if errors.Is(err, errPartial) && len(b) >= limit && !bytes.HasPrefix(b, []byte("*")) {
				t.Fatalf("%d bytes are no command, and more are wanted", len(b))
			}
			return
		}
		if used <= 0 || used > len(b) || len(args) > maxArgs {
			t.Fatalf("%d of %d bytes, %d arguments", used, len(b), len(args))
		}
		total := 0
		for _, a := range args {
			total += len(a)
		}
		if total > used || total > limit {
			t.Fatalf("arguments have %d bytes, of %d", total, used)
		}
		for i := range used {
			if n, _, err := parse(b[:i:i], nil, limit); n != 0 || !errors.Is(err, errPartial) {
				t.Fatalf("%q, the first %d bytes: %d used, %v", b[:used], i, n, err)
			}
		}
		if len(args) == 0 {
			return
		}
		again := appendCommand(nil, args)
		n, same, err := parse(again, nil, len(again))
		if err != nil || n != len(again) || len(same) != len(args) {
			t.Fatalf("written again, %q: %d, %v", again, n, err)
		}
		for i := range args {
			if !bytes.Equal(args[i], same[i]) {
				t.Fatalf("argument %d: %q, then %q", i, args[i], same[i])
			}
		}
	})
}

type counter struct{ n firn.ID }

func (c *counter) Next(context.Context) (firn.ID, error) { c.n++; return c.n, nil }

func (c *counter) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	for range n {
		c.n++
		dst = append(dst, c.n)
	}
	return dst, nil
}

// A connection answers anything with whole answers, the same however it is cut, and
// gives no number twice.
func FuzzConn(f *testing.F) {
	for _, p := range pipelines {
		f.Add([]byte(p), uint16(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		if bytes.Contains(bytes.ToUpper(b), []byte("INFO")) {
			return // it says how many commands there were before
		}
		whole := exchange(t, b)
		if at := int(cut); at < len(b) {
			if parts := exchange(t, b[:at], b[at:]); !bytes.Equal(whole, parts) {
				t.Fatalf("%q\nas a whole: %q\ncut at %d: %q", b, whole, at, parts)
			}
		}
	})
}

// exchange sends the parts, each when the one before has been read, and returns what
// is answered.
func exchange(t *testing.T, parts ...[]byte) []byte {
	src := &counter{}
	srv, err := server.New(nil, server.Numbers("photo", src, &server.SeriesOptions{
		Reserve: func(_ context.Context, n int) (firn.Range, error) {
			first := src.n + 1
			src.n += firn.ID(n)
			return firn.Range{First: first, Count: n, Step: 1}, nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	s := &listener{Options: (&Options{}).withDefaults(), server: srv, started: time.Now(), ctx: context.Background(), interval: interval, conns: map[*conn]struct{}{}}
	s.all.Add(1)
	go (&conn{listener: s, nc: ours, id: 1, began: time.Now(), protocol: 2}).run()
	done := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(theirs)
		done <- all
	}()
	for _, p := range append(parts, nil) { // nothing is taken when the rest was answered
		theirs.Write(p)
	}
	theirs.Close()
	s.all.Wait()
	return <-done
}
