package client

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// only returns the servers of one script, as the fetcher has them.
func only(t *testing.T, s *script, o Options) *servers {
	t.Helper()
	all, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	found := newServers(address{hosts: []string{s.addr}}, "photo", &all)
	t.Cleanup(found.hangUp)
	return found
}

func noTime() time.Duration { return 1 }

// firsts are the first ids of blocks.
func firsts(blocks []*block) (ids []firn.ID) {
	for _, b := range blocks {
		ids = append(ids, b.id(0))
	}
	return ids
}

// A program that draws faster than a block comes has several sent together.
func TestSentTogether(t *testing.T) {
	give := counting(1)
	s := newScript(t, give)
	c, err := start(t, &Options{Prefetch: 10, MaxAge: -1}, s)
	if err != nil {
		t.Fatal(err)
	}
	last := firn.ID(0)
	eventually(t, func() bool {
		for range 1000 {
			id, err := c.Next(t.Context())
			if err != nil || id != last+1 {
				t.Fatalf("%d after %d: %v", id, last, err)
			}
			last = id
		}
		return s.together.Load() >= burst
	})
	if n, left := s.together.Load(), c.State().Left; n > burst || left > 2*burst*10 {
		t.Errorf("%d blocks together, %d ids in hand", n, left)
	}
}

// Where only the first answers to what was sent together come, their ids are handed
// out. A connection whose answers may be out of step is not used again.
func TestFirstOfABurst(t *testing.T) {
	for name, tt := range map[string]struct {
		fails string
		want  []firn.ID
	}{
		"hangs up":      {hangUp, []firn.ID{1, 11, 21}},
		"says nothing":  {"", []firn.ID{1, 11, 21}},
		"talks garbage": {"+PONG\r\n", []firn.ID{1, 11, 21}},
		"says half":     {"*3\r\n$1\r\n7\r\n$1\r\n", []firn.ID{1, 11, 21}},
		"has no ids":    {"-TRYAGAIN the store is away\r\n", []firn.ID{1, 11, 21, 31}},
	} {
		t.Run(name, func(t *testing.T) {
			give, asked := counting(1), 0
			s := newScript(t, func(words []string) string {
				if asked++; asked == 4 {
					return tt.fails
				} else if asked > 4 && tt.fails == "" {
					return ""
				}
				return give(words)
			})
			from := only(t, s, Options{Timeout: 200 * time.Millisecond})
			blocks, err := from.fetch(t.Context(), order{50, 10}, noTime)
			if got := firsts(blocks); err != nil || !slices.Equal(got, tt.want) {
				t.Fatalf("%d, %v; want %d", got, err, tt.want)
			}
			if from.conn != nil {
				t.Error("it would be asked again on the same connection")
			}
		})
	}
}

// A server that has become so slow that ids of several blocks are too old when the last
// is there is asked for one.
func TestSlowBurst(t *testing.T) {
	var slow atomic.Bool
	give := counting(1)
	s := newScript(t, func(words []string) string {
		if slow.Load() {
			time.Sleep(40 * time.Millisecond)
		}
		return give(words)
	})
	c, err := start(t, &Options{Prefetch: 10, MaxAge: 200 * time.Millisecond, Wait: 20 * time.Second}, s)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		for range 1000 {
			if _, err := c.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return s.together.Load() >= burst
	})
	slow.Store(true)
	for range 2 * burst * 10 { // more than was under way
		if _, err := c.Append(t.Context(), nil, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// A server says how many it gives at a time by a code and a number. It is asked
// again for as many only if they are fewer.
func TestLimit(t *testing.T) {
	for answer, want := range map[string]int{
		"-LIMIT 4 is the most\r\n":              4,
		"-LIMIT 4\r\n":                          4,
		"-LIMIT 100 is the most\r\n":            0,
		"-LIMIT 101 is the most\r\n":            0,
		"-LIMIT 0 is the most\r\n":              0,
		"-LIMIT -4 is the most\r\n":             0,
		"-LIMIT four\r\n":                       0,
		"-LIMIT\r\n":                            0,
		"-ERR n is 100: 1 to 4 at a time\r\n":   0,
		"-ERR 4 is the most\r\n":                0,
		"-TRYAGAIN LIMIT 4 is the most\r\n":     0,
		"-LIMIT 99999999999999999999 of it\r\n": 0,
	} {
		give := counting(1)
		s := newScript(t, func(words []string) string {
			if n, _ := strconv.Atoi(words[2]); n > 4 {
				return answer
			}
			return give(words)
		})
		from := only(t, s, Options{Timeout: time.Minute})
		blocks, err := from.fetch(t.Context(), order{200, 100}, noTime)
		var reply *Error
		switch {
		case want == 0 && (!errors.As(err, &reply) || s.asked.Load() != 2):
			t.Errorf("%q: %d blocks, %v, asked %d times", answer, len(blocks), err, s.asked.Load())
		case want > 0 && (err != nil || len(blocks) != burst || blocks[0].count != int64(want)):
			t.Errorf("%q: %d blocks, %v", answer, len(blocks), err)
		}
	}
}

// A server has its time for each answer of what was sent together.
func TestTimeOfEachAnswer(t *testing.T) {
	for took, want := range map[time.Duration]int{900 * time.Millisecond: 4, 2 * time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			c := &conn{server: "there", net: here, in: bufio.NewReader(here), timeout: time.Second}
			var server sync.WaitGroup
			server.Go(func() {
				defer there.Close()
				in, give := bufio.NewReader(there), counting(1)
				var asked [][]string
				for range 4 {
					words, err := readCommand(in)
					if err != nil {
						return
					}
					asked = append(asked, words)
				}
				for _, words := range asked {
					time.Sleep(took)
					if _, err := io.Copy(there, strings.NewReader(give(words))); err != nil {
						return
					}
				}
			})
			blocks, err := c.fetch(t.Context(), "photo", 1, 4, 0)
			if len(blocks) != want || (err == nil) != (want == 4) {
				t.Errorf("%s each: %d answers, %v", took, len(blocks), err)
			}
			here.Close()
			server.Wait()
		})
	}
}
