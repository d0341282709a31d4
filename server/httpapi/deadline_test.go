package httpapi

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlines: a call ends when the last deadline that was asked for has come, and
// at no other time.
func TestDeadlines(t *testing.T) {
	long := time.Unix(1, 0)
	for name, tt := range map[string]struct {
		wants []time.Duration // from now on; 0: none; below: long ago
		ends  time.Duration   // 0: it does not
	}{
		"none":                  {nil, 0},
		"one":                   {[]time.Duration{time.Second}, time.Second},
		"later":                 {[]time.Duration{time.Second, 3 * time.Second, 2 * time.Second}, 2 * time.Second},
		"earlier":               {[]time.Duration{3 * time.Second, time.Second}, time.Second},
		"taken away":            {[]time.Duration{time.Second, 0}, 0},
		"broken off":            {[]time.Duration{time.Hour, -1}, time.Nanosecond},
		"broken off, and again": {[]time.Duration{time.Hour, -1, 0, 2 * time.Second}, 2 * time.Second},
		"forgiven":              {[]time.Duration{-1, 0}, 0},
	} {
		for _, call := range []struct {
			name string
			does func(net.Conn, []byte) (int, error)
			set  func(*conn, time.Time) error
		}{
			{"Read", net.Conn.Read, (*conn).SetReadDeadline},
			{"Write", net.Conn.Write, (*conn).SetWriteDeadline},
			{"Write, all", net.Conn.Write, (*conn).SetDeadline},
		} {
			t.Run(name+"/"+call.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					here, there := net.Pipe()
					defer there.Close()
					c := newConn(here)
					defer c.Close()
					start := time.Now()
					for _, after := range tt.wants {
						at := start.Add(after)
						if after == 0 {
							at = time.Time{}
						} else if after < 0 {
							at = long
						}
						if err := call.set(c, at); err != nil {
							t.Fatal(err)
						}
					}
					ended := make(chan error, 1)
					go func() {
						_, err := call.does(c, make([]byte, 1))
						ended <- err
					}()
					select {
					case err := <-ended:
						took := time.Since(start)
						if tt.ends == 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took != tt.ends.Truncate(time.Second) {
							t.Errorf("it ended after %s: %v", took, err)
						}
					case <-time.After(time.Minute):
						if tt.ends != 0 {
							t.Error("it did not end")
						}
					}
				})
			})
		}
	}
}

// TestDeadlineOfABlockedCall: a call that waits is ended by a deadline that is set
// meanwhile.
func TestDeadlineOfABlockedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := newConn(here)
		defer c.Close()
		c.SetReadDeadline(time.Now().Add(time.Hour))
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		c.SetReadDeadline(time.Unix(1, 0))
		start := time.Now()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > 0 {
			t.Errorf("it ended after %s: %v", time.Since(start), err)
		}
	})
}

// TestWriteGoesOn: what a deadline that is not wanted any more has cut in two is
// written to its end.
func TestWriteGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := newConn(here)
		defer c.Close()
		c.SetWriteDeadline(time.Now().Add(time.Second))
		c.SetWriteDeadline(time.Now().Add(time.Hour))
		got := make(chan string)
		go func() {
			var all []byte
			for range 3 {
				b := make([]byte, 1)
				there.Read(b)
				all = append(all, b...)
				time.Sleep(10 * time.Second)
			}
			got <- string(all)
		}()
		if n, err := c.Write([]byte("abc")); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if text := <-got; text != "abc" {
			t.Errorf("%q came", text)
		}
	})
}

// TestDeadlinesAreSeldomSet: what net/http wants for one request after another costs
// no timer but the first. Each time it breaks off a read that has not begun.
func TestDeadlinesAreSeldomSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		sent := make(chan error, 1)
		go func() {
			defer there.Close()
			for range 100 {
				time.Sleep(time.Millisecond)
				if _, err := there.Write([]byte("r")); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		c, set := newConn(here), 0
		c.reading.set = func(at time.Time) error {
			set++
			return here.SetReadDeadline(at)
		}
		b := make([]byte, 1)
		for range 100 {
			c.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := c.Read(b); err != nil {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Unix(1, 0))
			if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Time{})
			c.SetReadDeadline(time.Now().Add(time.Minute))
		}
		if err := <-sent; err != nil || set != 1 {
			t.Errorf("%d set: %v", set, err)
		}
	})
}
