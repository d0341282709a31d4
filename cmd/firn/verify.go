package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/verify"
)

func newVerify() *cobra.Command {
	o := verification{layout: layoutFlag{firn.Default()}}
	cmd := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Find duplicate ids in files",
		Long: `Say of any number of ids whether one of them repeats, whether each worker's (or
shard's) increase in the order in which they are read, which are malformed or not of
the layout, and how many each made, how fast, and after which gap.

Ids are read from files, or from standard input where there are none or "-": decimal,
one a line; or with --column a column of a CSV file, by its name or number; or with
--format binary 8 bytes each, the highest first, as the HTTP server gives them.

All ids read are compared, over all files, in whatever order they come. That takes a
bit of memory for each id of a generator at its ceiling, 5 bytes where it makes one a
millisecond or less, and 12 to 20 where it makes a few an hour. --minutes takes 300 more
for each minute in which a generator made one.

The exit code is 3 if an id repeats, if something is no id of the layout, or if there is
no id. A warning says so if the ids are probably of another layout: of a time to come, or
all of the first day of its time. Ids that do
not increase are counted, and no error: programs with several threads write them down
in another order than they drew them.`,
		Example: `  firn next -n 1000000 | firn verify
  firn verify --layout instagram --column photo_id photos.csv
  firn verify --minutes ids-*.txt --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	addLayout(cmd, &o.layout, "the layout of the ids: a preset or a spec; that of the pool if firn.yaml has one")
	cmd.Flags().StringVar(&o.format, "format", formatLines, "lines, csv or binary")
	cmd.Flags().StringVar(&o.column, "column", "", "the column of a CSV, by its name or its number from 1 on")
	cmd.Flags().BoolVar(&o.minutes, "minutes", false, "show how many ids are of each minute, and the longest gap after one of them")
	return cmd
}

type verification struct {
	layout         layoutFlag
	format, column string
	minutes        bool
}

func (o *verification) run(cmd *cobra.Command, names []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	// What is kept has no pointers, so that to collect garbage often costs little.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	t := verify.NewTally(o.layout.Layout)
	if err := o.read(cmd, names, t); err != nil {
		return err
	}
	ui.Tell(cmd.Context(), func() string { return "all input was read; whether an id repeats was not printed" })
	r := t.Report()
	places, err := o.find(cmd, names, r.Repeated)
	if err != nil {
		return err
	}
	print := o.print
	if wantsJSON(cmd) {
		print = o.printJSON
	}
	if err := print(ui.Verdict{Writer: cmd.OutOrStdout()}, r, places); err != nil {
		return err
	}
	if text := doubt(r, time.Now()); text != "" {
		ui.WarnHinting(cmd.ErrOrStderr(), []string{"to see which layouts an id makes sense in: firn decode ID; then: firn verify --layout LAYOUT"}, "%s", text)
	}
	return o.verdict(names, r)
}

// doubt says why the ids are probably of another layout; "" where nothing says so.
func doubt(r *verify.Report, now time.Time) string {
	var newest time.Time
	for _, m := range r.Makers {
		if m.To.After(newest) {
			newest = m.To
		}
	}
	const day = 24 * time.Hour // clocks differ
	switch {
	case r.IDs == 0:
		return ""
	case newest.After(now.Add(day)):
		return fmt.Sprintf("read in layout %s, the newest id is of %s, which is to come: the ids are probably of another layout", layoutName(r.Layout), phrase.Instant(newest))
	case newest.Sub(r.Layout.Epoch()) < day:
		return fmt.Sprintf("read in layout %s, all ids are of the first day of its time, %s: they are plain numbers, or of another layout", layoutName(r.Layout), phrase.Instant(newest))
	}
	return ""
}

// verdict is the exit code.
func (o *verification) verdict(names []string, r *verify.Report) error {
	switch {
	case r.Repeats > 0:
		return &ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("%s", phrase.Counted(r.Repeats, "id repeats an earlier one", "ids repeat earlier ones"))}
	case r.Faults > 0:
		files := ""
		for _, name := range names {
			files += " " + phrase.ShellWord(name)
		}
		f := &ui.Failure{Code: ui.ExitFound, Err: errors.New(o.faults(r))}
		if o.format == formatLines && slices.ContainsFunc(r.Faulty, likeCSV) {
			return f.Hint(hintCSV, files)
		}
		return f
	}
	if r.IDs == 0 {
		return (&ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("there was no id to verify")}).Hint("did what was to write the ids fail?")
	}
	return nil
}

const (
	standardInput = "standard input"
	hintCSV       = "if this is a CSV, name the column of the ids: firn verify --column NAME%s"
)

// likeCSV reports whether a fault looks like one of a CSV: the line has separators, or it is the first, which has the
// names of the columns.
func likeCSV(f verify.Fault) bool {
	return strings.HasSuffix(f.At, ":1") || strings.ContainsAny(f.Err.Error(), ";\t") || strings.Count(f.Err.Error(), ",") > 1
}

// check makes one of the flags, and takes the layout of the pool.
func (o *verification) check(cmd *cobra.Command) error {
	if o.column != "" && !cmd.Flags().Changed("format") {
		o.format = formatCSV
	}
	switch {
	case !slices.Contains([]string{formatLines, formatCSV, formatBinary}, o.format):
		return ui.Bad("--format %q: it is lines, csv or binary", o.format)
	case o.format == formatCSV && o.column == "":
		return ui.Bad("--column is missing").Hint("--column id, or its number: --column 1")
	case o.format != formatCSV && o.column != "":
		return ui.Bad("--column is for --format csv")
	case cmd.Flags().Changed("layout"):
		return nil
	}
	set, err := loadSettings(cmd)
	if err == nil && set.File != nil && len(set.File.Pools) == 1 {
		o.layout.Layout = set.File.Pools[0].Layout()
	}
	return err
}

// The forms of input.
const (
	formatLines  = "lines"
	formatCSV    = "csv"
	formatBinary = "binary"
)

// read hands all ids to a sink.
func (o *verification) read(cmd *cobra.Command, names []string, to verify.Sink) error {
	files, total, err := openInputs(names)
	if err != nil {
		return err
	}
	defer closeFiles(files)
	var read atomic.Int64
	ui.Tell(cmd.Context(), func() string {
		of := ""
		if total > 0 {
			of = " of " + phrase.Bytes(total)
		}
		return phrase.Bytes(read.Load()) + of + " were read; whether an id repeats is not known"
	})
	p := ui.ShowProgressOf("bytes", true, cmd.ErrOrStderr(), total, &read)
	defer p.Stop()
	for i, f := range files {
		name, in := names[i], io.Reader(ui.Input{Reader: f, Context: cmd.Context()})
		if f == nil {
			name, in = standardInput, cmd.InOrStdin()
		}
		if err := o.readOne(&countedReader{in, &read}, name, to); err != nil {
			return err
		}
	}
	return nil
}

func (o *verification) readOne(in io.Reader, name string, to verify.Sink) error {
	switch o.format {
	case formatBinary:
		return verify.ReadBinary(in, name, to)
	case formatCSV:
		err := verify.ReadCSV(in, name, o.column, to)
		var missing *verify.ColumnError
		if errors.As(err, &missing) {
			return ui.Bad("%w", err).Hint("its columns are %s; --column takes a number too", strings.Join(missing.Columns, ", "))
		}
		var broken *csv.ParseError
		if errors.As(err, &broken) {
			return ui.Bad("%s:%d, byte %d of the line: this is no CSV: %w", name, broken.Line, broken.Column, broken.Err)
		}
		return err
	}
	first := &noID{Reader: in, Sink: to}
	err := verify.ReadLines(first, name, first)
	if !first.ended {
		return err
	}
	f := &ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("%s: none of its first %d lines is an id, and the rest was not read", name, first.faults)}
	if name == standardInput {
		name = "-"
	}
	return f.Hint(hintCSV, " "+phrase.ShellWord(name))
}

// noID ends what is read if it begins with many lines and no id: it is a CSV, or no file of ids.
type noID struct {
	io.Reader
	verify.Sink
	faults int
	found  bool // an id
	ended  bool
}

func (f *noID) Read(b []byte) (int, error) {
	if !f.found && f.faults >= 1000 {
		f.ended = true
		return 0, errors.New("no id")
	}
	return f.Reader.Read(b)
}

func (f *noID) Add(id firn.ID, at func() string) {
	f.found = true
	f.Sink.Add(id, at)
}

func (f *noID) Fault(err error, at func() string) {
	f.faults++
	f.Sink.Fault(err, at)
}

type countedReader struct {
	r    io.Reader
	read *atomic.Int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// openInputs opens files by name, and says how long they are in all; 0: nobody knows.
func openInputs(names []string) (files []*os.File, total int64, err error) {
	for _, name := range names {
		if name == "-" {
			files = append(files, nil)
			total = math.MinInt64 // it stays below 0
			continue
		}
		f, err := os.Open(name)
		if err == nil {
			var fi os.FileInfo
			if fi, err = f.Stat(); err == nil && fi.IsDir() {
				err = fmt.Errorf("%s is a directory", name)
			} else if err == nil {
				total += fi.Size()
			}
		}
		if err != nil {
			closeFiles(files)
			return nil, 0, ui.Bad("%w", err)
		}
		files = append(files, f)
	}
	return files, max(total, 0), nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// find reads the files again for where the repeated ids stand. What came from a pipe is
// gone.
func (o *verification) find(cmd *cobra.Command, names []string, repeated []verify.Sighting) (verify.Places, error) {
	places := verify.Places{}
	again := true
	for _, name := range names {
		fi, err := os.Stat(name)
		again = again && name != "-" && err == nil && fi.Mode().IsRegular()
	}
	for _, s := range repeated {
		if places[s.ID] = nil; !again {
			places[s.ID] = []string{s.At + " and before; to see both lines, give a file in place of standard input"}
		}
	}
	if len(repeated) == 0 || !again {
		return places, nil
	}
	return places, o.read(cmd, names, places)
}
