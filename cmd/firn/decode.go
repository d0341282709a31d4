package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
)

func newDecode() *cobra.Command {
	var layout layoutFlag
	cmd := &cobra.Command{
		Use:   "decode [ID... | -]",
		Short: "Say what is in an id",
		Long: `Say what is in ids: when each was made, by which worker, and which of its ids of
that tick it is.

Ids are arguments, or lines of standard input where there are none or "-". With
--layout they are read in that layout, and without in that of the pool if firn.yaml
has one pool. Else there is a line for every known layout in which the id makes
sense, those of the pools first and then the most plausible: an id does not say
which layout it is of, so take the first line as a guess. UUIDs of version 1, 6
and 7, ULIDs and ObjectIds are known by their shape.

What is not an id is reported with its line on standard error. The others are
decoded all the same, and the exit code is 2.`,
		Example: `  firn decode 175928847299117063
  firn decode --layout discord --json 175928847299117063
  firn decode --layout 'time:41@1ms,shard:13,seq:10;epoch=2011-01-01T00:00:00Z' 2217813737473025833
  firn decode --layout twitter --json < ids.txt | jq -r .time`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := newDecoder(cmd.OutOrStdout(), cmd.ErrOrStderr(), time.Now())
			d.json = wantsJSON(cmd)
			if layout.IsValid() {
				d.known, d.insist = newLayoutReader(layout.Layout), true
			} else if err := d.fromConfig(cmd); err != nil {
				return err
			}
			if len(args) == 0 || len(args) == 1 && args[0] == "-" {
				return d.stream(cmd.InOrStdin())
			}
			return d.arguments(args)
		},
	}
	addLayout(cmd, &layout, "the layout the ids are of: a preset or a spec; firn layouts")
	return cmd
}

// A decoder decodes any number of ids in the memory of a few.
type decoder struct {
	out  *bufio.Writer
	errs io.Writer
	json bool

	known      *layoutReader   // of --layout, or of the only pool; nil: find out
	insist     bool            // it is of --layout: what cannot be read in it is an error
	pools      []*layoutReader // then these
	candidates []candidate     // and these

	alone   bool   // there is one id only, which need not be repeated on its lines
	certain bool   // the current id was read in known
	line    []byte // what is written of the current id
	reading reading
	guesses []guess

	total  int // ids
	faults int // ids that could not be read
}

func newDecoder(out, errs io.Writer, now time.Time) *decoder {
	return &decoder{out: bufio.NewWriterSize(out, 64<<10), errs: errs, candidates: newCandidates(now)}
}

// fromConfig takes the layouts of the pools of firn.yaml.
func (d *decoder) fromConfig(cmd *cobra.Command) error {
	set, err := loadSettings(cmd)
	if err != nil || set.file == nil {
		return err
	}
	var seen []firn.Layout
	for i := range set.file.pools {
		l := set.file.pools[i].layout()
		if !slices.Contains(seen, l) {
			seen = append(seen, l)
			d.pools = append(d.pools, newLayoutReader(l))
		}
	}
	if len(set.file.pools) == 1 {
		d.known, d.pools = d.pools[0], nil
	}
	d.candidates = slices.DeleteFunc(d.candidates, func(c candidate) bool { return slices.Contains(seen, c.layout) })
	return nil
}

// arguments decodes the arguments of the command. One id alone has room for a
// field a line.
func (d *decoder) arguments(args []string) error {
	if len(args) == 1 && !d.json {
		d.alone = true
		if err := d.single(args[0]); err != nil {
			return err
		}
		return d.out.Flush()
	}
	for i, text := range args {
		if err := d.next("argument", i+1, []byte(text)); err != nil {
			return err
		}
	}
	return d.end()
}

// maxLine is the longest line that is read. No id is nearly as long.
const maxLine = 4 << 10

// stream decodes lines until the end of the input. A blank line is nothing.
func (d *decoder) stream(in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		text, tooLong, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(failed("line %d: %w", n, err), d.out.Flush())
		}
		text = bytes.TrimSpace(text)
		switch {
		case tooLong:
			d.total++
			d.fault("line", n, bad("longer than %d bytes", maxLine))
		case len(text) > 0:
			if err := d.next("line", n, text); err != nil {
				return err
			}
		}
		if err != nil {
			return d.end()
		}
		// Whoever types, or follows a log, wants to see each answer.
		if r.Buffered() == 0 {
			if err := d.out.Flush(); err != nil {
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

// next decodes the n-th of several ids. Its error is one of writing: what could
// not be read is reported, and the others follow.
func (d *decoder) next(what string, n int, text []byte) error {
	d.total++
	if err := d.decode(text); err != nil {
		d.fault(what, n, err)
		return nil
	}
	_, err := d.out.Write(d.line)
	return err
}

// decode writes to d.line what an id says, one line for each reading.
func (d *decoder) decode(text []byte) error {
	d.line, d.certain = d.line[:0], false
	var id firn.ID
	if err := id.UnmarshalText(text); err != nil {
		return d.foreign(text, err)
	}
	if d.known != nil {
		err := d.known.read(id, &d.reading)
		if err == nil {
			d.certain = true
			d.append(text, false)
		}
		if err == nil || d.insist {
			return err
		}
	}
	for _, r := range d.pools {
		if err := r.read(id, &d.reading); err == nil {
			d.append(text, true)
		}
	}
	d.guesses = appendGuesses(d.guesses[:0], d.candidates, id)
	if len(d.guesses) == 0 && len(d.line) == 0 {
		return bad("%s makes sense in no known layout", text)
	}
	for _, g := range d.guesses {
		if err := g.read(id, &d.reading); err != nil {
			return err
		}
		d.append(text, true)
	}
	return nil
}

// foreign is decode for what is not an id of ours, which err says.
func (d *decoder) foreign(text []byte, err error) error {
	ok, foreignErr := readForeign(string(text), &d.reading)
	switch {
	case !ok:
		return err
	case foreignErr != nil:
		return foreignErr
	case d.insist:
		return bad("%s is of the form %s, not of layout %s", text, d.reading.layout, d.known.name)
	}
	d.append(text, true)
	return nil
}

// layoutColumn is the width of the longest preset's name, and a gap.
const layoutColumn = 16

// append appends the reading to d.line as the flags ask for it.
func (d *decoder) append(id []byte, withLayout bool) {
	if d.json {
		d.line = d.reading.appendJSON(d.line, id)
		return
	}
	if !d.alone {
		d.line = append(append(d.line, id...), "  "...)
	}
	if withLayout {
		d.line = append(d.line, d.reading.layout...)
		for n := len(d.reading.layout); n < layoutColumn; n++ {
			d.line = append(d.line, ' ')
		}
	}
	d.line = append(d.reading.appendText(d.line), '\n')
}

// single decodes one id for a person.
func (d *decoder) single(text string) error {
	if err := d.decode([]byte(text)); err != nil {
		return d.advise(text, err)
	}
	if d.certain {
		return d.reading.print(d.out, text)
	}
	_, err := d.out.Write(d.line)
	return err
}

// advise adds what to do about an id that could not be read.
func (d *decoder) advise(text string, err error) error {
	var syntax *firn.SyntaxError
	if errors.As(err, &syntax) {
		return syntaxFailure("id", syntax)
	}
	f := bad("%w", err)
	if d.insist {
		return f.hint("firn decode %s shows which layouts it can be of", text)
	}
	return f.hint("firn decode --layout LAYOUT %s reads it in any layout", text)
}

// fault reports an id that could not be read.
func (d *decoder) fault(what string, n int, err error) {
	d.faults++
	fmt.Fprintf(d.errs, "firn: error: %s %d: %s\n", what, n, withoutPackage(err.Error()))
}

// end flushes, and sums up the faults.
func (d *decoder) end() error {
	if err := d.out.Flush(); err != nil {
		return err
	}
	if d.faults > 0 {
		return bad("%d of %d could not be decoded", d.faults, d.total)
	}
	return nil
}
