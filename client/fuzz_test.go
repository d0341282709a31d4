package client

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A reader is a connection that takes everything, and says what it was told to.
type reader struct{ net.Conn }

func (reader) Write(b []byte) (int, error)     { return len(b), nil }
func (reader) SetDeadline(time.Time) error     { return nil }
func (reader) Close() error                    { return nil }
func (reader) SetReadDeadline(time.Time) error { return nil }

// Whatever a server answers, there are so many ids as were asked for and no others,
// or an error that says what is wrong.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		list(1, 3, 1), list(7, 2, 5), list(1, 2, 3), "-LIMIT 4 is the most\r\n", "-NOPERM\r\n", "-\r\n", "*3\r\n$1\r\n1\r\n$1\r\n", "$-1\r\n",
		list("9223372036854775807", "1", "1"), list("9223372036854775806", "3", "1"), "*-1\r\n", "*3\n", ":1\r\n", "*3\r\n$255\r\n1\r\n",
	} {
		f.Add([]byte(s+s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, answer []byte, lists bool) {
		const n = 3
		c := &conn{server: "there", net: reader{}, in: bufio.NewReader(bytes.NewReader(answer)), timeout: time.Minute, lists: lists}
		blocks, err := c.fetch(t.Context(), "photo", n, 2, 1)
		var refusal *Error
		var strange *AnswerError
		var down *downError
		if err == nil && len(blocks) != 2 || err != nil && !errors.As(err, &refusal) && !errors.As(err, &strange) && !errors.As(err, &down) {
			t.Fatalf("%d blocks, %v", len(blocks), err)
		}
		if most := allowed(err, n); most < 0 || most >= n {
			t.Fatalf("asks for %d instead of %d: %v", most, n, err)
		}
		for _, b := range blocks {
			ids, _ := b.take(nil, 2*n)
			if len(ids) < 1 || len(ids) > n || lists && len(ids) != n {
				t.Fatalf("%d ids", len(ids))
			}
			for i, id := range ids {
				if id < 1 || !c.lists && i > 0 && id <= ids[i-1] {
					t.Fatalf("ids %d", ids)
				}
				if c.lists && !bytes.Contains(answer, []byte("\r\n"+id.String()+"\r\n")) {
					t.Fatalf("%d is not in the answer", id)
				}
			}
		}
	})
}

// An address is one or an error that does not show the token.
func FuzzParseAddress(f *testing.F) {
	f.Add("redis://", "a:1,[::1]:2/0")
	f.Add("rediss://:", "@a:1")
	f.Add("redis://default:", "%2C@a:65535,b:1")
	f.Add("redis://:", "a:1")
	f.Fuzz(func(t *testing.T, before, after string) {
		const token = "s3cr3t"
		text := before + token + after
		a, err := parseAddress(text)
		if err != nil {
			if strings.Contains(err.Error(), token) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if len(a.hosts) < 1 || len(a.hosts) > maxHosts {
			t.Fatalf("%q has %d hosts", text, len(a.hosts))
		}
		for _, h := range a.hosts {
			if host, port, err := net.SplitHostPort(h); err != nil || host == "" || port == "" {
				t.Fatalf("%q: host %q, %v", text, h, err)
			}
		}
		again, err := parseAddress(text)
		if err != nil || again.token != a.token || !slices.Equal(again.hosts, a.hosts) {
			t.Fatalf("%q: %+v, then %+v, %v", text, a, again, err)
		}
	})
}
