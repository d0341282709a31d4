package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

func newNext() *cobra.Command {
	var o nextOptions
	cmd := &cobra.Command{
		Use:   "next [SERIES]",
		Short: "Print new ids, one a line",
		Long: `Print new ids, one a line. A worker number is leased for the time this takes, so
that nobody else on the same store makes the same ids. It is leased from the pool
of SERIES in firn.yaml, or the only one there, or without a config that of the
layout. Ids of two series of one pool are never equal either.

Without --store that store is a file in your state directory: the ids are unique
among the processes of this user on this host. In a container there is no such
default, because every container would have its own.

An interrupt, or a reader that closes the pipe, ends it at once: whole lines have
been printed, the worker is given back, and the exit code is 130 (143 when
terminated), or 0 for the pipe. Every printed id is used up, read or not.`,
		Example: `  firn next
  firn next -n 1000 > ids.txt
  firn next orders --store sqlite:/var/lib/app/ids.db --json`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			s, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			if o.leasing, err = s.leasing(strings.Join(args, "")); err != nil {
				return err
			}
			o.json = wantsJSON(cmd)
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Int64VarP(&o.count, "count", "n", 1, "how many")
	cmd.Flags().Int64("shard", 0, "the value of the layout's shard field")
	addStore(cmd)
	addPool(cmd)
	return cmd
}

type nextOptions struct {
	count   int64
	json    bool
	leasing *leasing
}

var seriesName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

const seriesNameRule = "a name has up to 64 of A-Z, a-z, 0-9, '_', '.', '-', and begins with a letter or digit"

func (o *nextOptions) validate(args []string) error {
	switch {
	case len(args) == 1 && !seriesName.MatchString(args[0]):
		return bad("series %q: %s", args[0], seriesNameRule)
	case o.count <= 0:
		return bad("-n %d: there is nothing to print", o.count).hint("firn next -n 10")
	}
	return nil
}

// run leases a worker, prints, and gives the worker back.
func (o *nextOptions) run(ctx context.Context, out, errs io.Writer) (err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	l := o.leasing
	s, err := openURL(ctx, l.url, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	l.options.Logger = warnings(errs)
	ids, err := lease.Open(ctx, s, l.pool, &l.options)
	if err != nil {
		return signalled(ctx, err)
	}
	p := newPrinter(out, l.options.Layout.Rate(), o.json)
	show := showProgress(out, errs, o.count, &p.written)
	err = p.runUntil(ctx, ids, o.count)
	show.stop()
	if closeErr := ids.Close(); err == nil && closeErr != nil {
		printWarning(errs, "the worker was not given back and falls free by itself: %s", withoutPackage(closeErr.Error()))
	}
	return signalled(ctx, err)
}

// An interrupted is the cause of a context that a signal ended.
type interrupted struct{ syscall.Signal }

func (i interrupted) Error() string { return i.String() }

// untilSignal returns a context that the first signal to stop ends. The second
// ends the process as if there were no first.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			if s, ok := s.(syscall.Signal); ok {
				cancel(interrupted{s})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// signalled returns the exit code of the signal that ended ctx, if one did, or
// err: whoever has stopped the command knows why it stopped.
func signalled(ctx context.Context, err error) error {
	var i interrupted
	if err != nil && errors.As(context.Cause(ctx), &i) {
		return exit(128 + int(i.Signal))
	}
	return err
}

// A printer prints ids as lines.
type printer struct {
	out     io.Writer
	json    bool
	batch   int          // ids a write
	written atomic.Int64 // ids

	ids  []firn.ID
	line []byte
}

// newPrinter makes the printer of ids that come at most at this rate.
func newPrinter(out io.Writer, rate float64, json bool) *printer {
	// A pipe takes so many bytes whole or not at all. So nobody ever reads half
	// an id, even if this process is killed while the reader is slow.
	atomically := 512 // what POSIX promises
	if runtime.GOOS == "linux" {
		atomically = 4096
	}
	longest := len("9223372036854775807\n")
	if json {
		longest += len(`{"id":""}`)
	}
	// A slow layout prints what it has 20 times a second.
	batch := max(1, int(min(float64(atomically/longest), math.Ceil(rate/20))))
	return &printer{out: out, json: json, batch: batch}
}

// stuck is how long a write may go on after a signal: longer means that nobody
// reads, and nobody may ever.
const stuck = 200 * time.Millisecond

// runUntil prints n ids, or fewer if ctx is done.
func (p *printer) runUntil(ctx context.Context, src firn.Source, n int64) error {
	done := make(chan error, 1)
	go func() { done <- p.print(ctx, src, n) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stuck):
		return ctx.Err()
	}
}

func (p *printer) print(ctx context.Context, src firn.Source, n int64) error {
	for left := n; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		p.ids, err = src.Append(ctx, p.ids[:0], int(min(left, int64(p.batch))))
		if err := p.write(); err != nil {
			if errors.Is(err, errNoReader) {
				return err
			}
			return p.incomplete(err, n)
		}
		if err != nil {
			return p.incomplete(err, n)
		}
		left -= int64(len(p.ids))
	}
	return nil
}

// incomplete adds to an error how many of n ids were written before it.
func (p *printer) incomplete(err error, n int64) error {
	f := classify(err)
	f.err = fmt.Errorf("%w; %s of %s ids were written", err, count(p.written.Load()), count(n))
	return f
}

// write prints p.ids, and counts those that went out whole.
func (p *printer) write() error {
	p.line = p.line[:0]
	for _, id := range p.ids {
		if p.json {
			p.line = append(p.line, `{"id":"`...)
			p.line = strconv.AppendInt(p.line, int64(id), 10)
			p.line = append(p.line, "\"}\n"...)
			continue
		}
		p.line = append(strconv.AppendInt(p.line, int64(id), 10), '\n')
	}
	k, err := p.out.Write(p.line)
	whole := int64(len(p.ids))
	if err != nil {
		whole = 0
		for _, c := range p.line[:k] {
			if c == '\n' {
				whole++
			}
		}
	}
	p.written.Add(whole)
	return err
}
