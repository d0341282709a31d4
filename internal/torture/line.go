//go:build linux

package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/internal/torture/siege"
)

// A line says how far a siege is: on a terminal again and again in place, elsewhere once
// a minute.
type line struct {
	out  *os.File
	name string
	o    siege.Options
	quit chan struct{}
	end  sync.WaitGroup
}

func watch(out *os.File, name string, o siege.Options) *line {
	l := &line{out: out, name: name, o: o, quit: make(chan struct{})}
	l.end.Go(l.run)
	return l
}

func (l *line) run() {
	pause, before, after := time.Minute, "", "\n"
	if term.IsTerminal(int(l.out.Fd())) {
		pause, before, after = 250*time.Millisecond, "\r", "\x1b[K"
		defer fmt.Fprint(l.out, "\r\x1b[K")
	}
	for {
		select {
		case <-l.quit:
			return
		case <-time.After(pause):
			fmt.Fprint(l.out, before, l.text(), after)
		}
	}
}

func (l *line) text() string {
	begun := l.o.Live.Begun.Load()
	if begun == 0 {
		return l.name + ": the programs are built, and the store and the processes started"
	}
	return fmt.Sprintf("%s: %s ids, %s faults, %s repeats, %s of %s", l.name, count(l.o.Live.IDs.Load()), count(l.o.Live.Harms.Load()),
		count(l.o.Live.Repeats.Load()), time.Duration(ledger.Boot()-begun).Round(time.Second), l.o.For)
}

// stop clears the line.
func (l *line) stop() {
	close(l.quit)
	l.end.Wait()
}
