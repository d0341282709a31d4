//go:build !windows

package readme

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// The README's program for many hosts, which draws until its context is done, gives its worker
// back after Ctrl-C and after SIGTERM.
func TestStopped(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			r := newReader(t)
			r.env = append(r.env, "FIRN_STORE=sqlite:"+r.home+"/ids.db")
			r.done(r.firn("pool", "create", "--new"))
			workers := func() string {
				ls := r.firn("worker", "ls", "--json")
				r.done(ls)
				return ls.stdout.String()
			}
			p := r.start(r.endless)
			for end := time.Now().Add(20 * time.Second); !strings.Contains(workers(), `"held"`); {
				if time.Now().After(end) {
					t.Fatalf("the program takes no worker: %s", p.stderr.String())
				}
				time.Sleep(20 * time.Millisecond)
			}
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			r.done(p)
			if all := workers(); !strings.Contains(all, `"free"`) || strings.Contains(all, `"held"`) {
				t.Errorf("after %v: %s", signal, all)
			}
		})
	}
}
