package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
)

// The answers of a command are what it says to each of any number of ids, in the
// memory of a few. What is no id is reported, and the others are answered all the
// same.
type answers struct {
	out    *bufio.Writer
	errs   io.Writer
	done   string                  // what is done to ids: decoded
	answer func(text []byte) error // answers one: it sets line
	line   []byte                  // the answer, one line or more

	total  *atomic.Int64 // ids
	faults int           // those that could not be answered
}

func newAnswers(out, errs io.Writer, done string, answer func(text []byte) error) answers {
	return answers{out: bufio.NewWriterSize(out, 64<<10), errs: errs, done: done, answer: answer, total: &atomic.Int64{}}
}

// tell says how many ids were answered, should a signal end the command.
func (a *answers) tell(ctx context.Context) {
	total, done := a.total, a.done
	ui.Tell(ctx, func() string { return phrase.Counted(total.Load(), "id was ", "ids were ") + done })
}

// all answers the arguments of the command.
func (a *answers) all(args []string) error {
	for i, text := range args {
		if err := a.next("argument", i+1, []byte(text)); err != nil {
			return err
		}
	}
	return a.end()
}

// maxLine is the longest line that is read. No id is nearly as long.
const maxLine = 4 << 10

// stream answers lines until the end of the input. A blank line is nothing.
func (a *answers) stream(in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		text, tooLong, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(ui.Failed("line %d: %w", n, err), a.out.Flush())
		}
		text = bytes.TrimSpace(text)
		switch {
		case tooLong:
			a.total.Add(1)
			a.fault("line", n, ui.Bad("longer than %d bytes", maxLine))
		case len(text) > 0:
			if err := a.next("line", n, text); err != nil {
				return err
			}
		}
		if err != nil {
			return a.end()
		}
		// Whoever types, or follows a log, wants to see each answer.
		if r.Buffered() == 0 {
			if err := a.out.Flush(); err != nil {
				return err
			}
		}
	}
}

// readLine returns the next line, which is valid until the next call. Of one
// that is too long it returns the beginning, and skips the rest.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	line, err = r.ReadSlice('\n')
	tooLong = len(line) > maxLine
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, tooLong, err
}

// next answers the n-th of several ids. Its error is one of writing.
func (a *answers) next(what string, n int, text []byte) error {
	a.total.Add(1)
	if err := a.answer(text); err != nil {
		a.fault(what, n, err)
		return nil
	}
	_, err := a.out.Write(a.line)
	return err
}

// fault reports an id that could not be answered.
func (a *answers) fault(what string, n int, err error) {
	a.faults++
	ui.PrintError(a.errs, fmt.Errorf("%s %d: %s", what, n, phrase.WithoutPackage(err.Error())))
}

// end flushes, and sums up the faults.
func (a *answers) end() error {
	if err := a.out.Flush(); err != nil {
		return err
	}
	if a.faults > 0 {
		return ui.Bad("%d of %d could not be %s", a.faults, a.total.Load(), a.done)
	}
	return nil
}
