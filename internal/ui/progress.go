package ui

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/firn-id/firn/internal/phrase"
)

// A Progress shows on a terminal how far long work is.
type Progress struct {
	w     io.Writer
	line  func(elapsed time.Duration) string
	begun time.Time
	shown bool

	quit chan struct{}
	end  sync.WaitGroup
}

// When progress is shown first, and how often.
const (
	patience = time.Second
	refresh  = 250 * time.Millisecond
)

// ShowProgress shows how many of total ids are done, if that takes a while and errs
// is a terminal. It is quiet where out is one too: its lines would be torn.
func ShowProgress(out, errs io.Writer, total int64, done *atomic.Int64) *Progress {
	return ShowProgressOf("ids", !IsTerminal(out), errs, total, done)
}

// ShowProgressOf shows how many of total are done, of something that is printed after
// all of it.
func ShowProgressOf(what string, shown bool, errs io.Writer, total int64, done *atomic.Int64) *Progress {
	return ShowLine(shown, errs, func(elapsed time.Duration) string { return progressLine(what, done.Load(), total, elapsed) })
}

// ShowLine shows a line that says how far something is.
func ShowLine(shown bool, errs io.Writer, line func(elapsed time.Duration) string) *Progress {
	p := &Progress{w: errs, line: line, begun: time.Now(), quit: make(chan struct{})}
	if IsTerminal(errs) && shown {
		p.end.Go(p.run)
	}
	return p
}

// IsTerminal reports whether what is written to w is shown on a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := file(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

func file(w io.Writer) (f *os.File, ok bool) {
	if counted, ok := w.(*countedOutput); ok {
		w = counted.Writer
	}
	switch wrapped := w.(type) {
	case *Output:
		w = wrapped.Writer
	case *Messages:
		w = wrapped.Writer
	}
	f, ok = w.(*os.File)
	return f, ok
}

// width is that of a terminal, in characters.
func width(w io.Writer) int {
	if f, ok := file(w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 1 {
			return n
		}
	}
	return 80
}

// cut is a line that goes on no other one.
func cut(line string, width int) string {
	if r := []rune(line); len(r) > width {
		return string(r[:width])
	}
	return line
}

// Stop clears the line.
func (p *Progress) Stop() {
	close(p.quit)
	p.end.Wait()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *Progress) run() {
	next := time.NewTimer(patience)
	defer next.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-next.C:
			p.shown = true
			fmt.Fprintf(p.w, "\r%s\x1b[K", cut(p.line(time.Since(p.begun)), width(p.w)-1))
			next.Reset(refresh)
		}
	}
}

// progressLine says how far it is, how fast, and how long it takes yet.
func progressLine(what string, done, total int64, elapsed time.Duration) string {
	rate := float64(done) / elapsed.Seconds()
	if total == 0 { // nobody knows
		return fmt.Sprintf("%s %s, %s/s", phrase.Count(done), what, phrase.Count(int64(rate)))
	}
	line := fmt.Sprintf("%s of %s %s (%.0f %%), %s/s", phrase.Count(done), phrase.Count(total), what, 100*float64(done)/float64(total), phrase.Count(int64(rate)))
	if rate > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		line += ", " + left.Round(time.Second).String() + " left"
	}
	return line
}
