//go:build linux

package main

import (
	"context"
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
	ctx  context.Context // of the siege
	out  *os.File
	name string
	o    siege.Options
	quit chan struct{}
	end  sync.WaitGroup
}

func watch(ctx context.Context, out *os.File, name string, o siege.Options) *line {
	l := &line{ctx: ctx, out: out, name: name, o: o, quit: make(chan struct{})}
	l.end.Go(l.run)
	return l
}

func (l *line) run() {
	pause, show := time.Minute, func(text string) { fmt.Fprintln(l.out, text) }
	if fd := int(l.out.Fd()); term.IsTerminal(fd) {
		pause, show = 250*time.Millisecond, func(text string) { fmt.Fprint(l.out, "\r"+fitting(text, fd)+"\x1b[K") }
		defer show("")
	}
	for {
		select {
		case <-l.quit:
			return
		case <-time.After(pause):
			show(l.text())
		}
	}
}

// fitting cuts a line off where it would go on in the next one.
func fitting(text string, terminal int) string {
	if width, _, err := term.GetSize(terminal); err == nil && width > 0 {
		text = text[:min(len(text), width-1)]
	}
	return text
}

func (l *line) text() string {
	live := l.o.Live
	begun := live.Begun.Load()
	spent := time.Duration(ledger.Boot() - begun)
	switch {
	case l.ctx.Err() != nil:
		return l.name + ": stopped; what was issued is compared"
	case begun == 0:
		return l.name + ": programs are built, the store and the processes started"
	case spent > l.o.For:
		return l.name + ": the last faults are undone, and all ids compared"
	}
	text := fmt.Sprintf("%s: %s of %s, %s, %s, %s", l.name, spent.Round(time.Second), l.o.For,
		several(live.Repeats.Load(), "repeat"), several(live.IDs.Load(), "id"), several(live.Harms.Load(), "fault"))
	if doing, _ := live.Doing.Load().(string); doing != "" {
		text += ": " + doing
	}
	return text
}

// stop clears the line.
func (l *line) stop() {
	close(l.quit)
	l.end.Wait()
}
