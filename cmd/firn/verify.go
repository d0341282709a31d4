package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
)

func newVerify() *cobra.Command {
	o := verification{layout: layoutFlag{firn.Default}}
	cmd := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Say whether any id repeats",
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

The exit code is 3 if an id repeats, if something is no id of the layout, or if there is no id. Ids that do
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
	t := newTally(o.layout.Layout, o.minutes)
	if err := o.read(cmd, names, t); err != nil {
		return err
	}
	makers := t.end()
	places, err := o.find(cmd, names, t.repeated)
	if err != nil {
		return err
	}
	print := t.print
	if wantsJSON(cmd) {
		print = t.printJSON
	}
	if err := print(cmd.OutOrStdout(), makers, places); err != nil {
		return err
	}
	switch {
	case t.repeats > 0:
		return &failure{code: exitFound, err: fmt.Errorf("%s", isAre(t.repeats, "id repeats", "ids repeat"))}
	case t.faults > 0:
		return &failure{code: exitFound, err: fmt.Errorf("%s no id of the layout", isAre(t.faults, "line is", "lines are"))}
	}
	if t.ids == 0 {
		return (&failure{code: exitFound, err: fmt.Errorf("there was no id to verify")}).hint("did what was to write the ids fail?")
	}
	return nil
}

func isAre(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// check makes one of the flags, and takes the layout of the pool.
func (o *verification) check(cmd *cobra.Command) error {
	if o.column != "" && !cmd.Flags().Changed("format") {
		o.format = formatCSV
	}
	switch {
	case !slices.Contains([]string{formatLines, formatCSV, formatBinary}, o.format):
		return bad("--format %q: it is lines, csv or binary", o.format)
	case o.format == formatCSV && o.column == "":
		return bad("--column is missing").hint("--column id, or its number: --column 1")
	case o.format != formatCSV && o.column != "":
		return bad("--column is for --format csv")
	case cmd.Flags().Changed("layout"):
		return nil
	}
	set, err := loadSettings(cmd)
	if err == nil && set.file != nil && len(set.file.pools) == 1 {
		o.layout.Layout = set.file.pools[0].layout()
	}
	return err
}

// read hands all ids to a sink.
func (o *verification) read(cmd *cobra.Command, names []string, to idSink) error {
	files, total, err := openInputs(names)
	if err != nil {
		return err
	}
	defer closeFiles(files)
	var read atomic.Int64
	p := showProgressOf("bytes", true, cmd.ErrOrStderr(), total, &read)
	defer p.stop()
	for i, f := range files {
		v := verifyInput{name: names[i], format: o.format, column: o.column, read: &read}
		if v.in = f; f == nil {
			v.name, v.in = "standard input", cmd.InOrStdin()
		}
		if err := v.each(to); err != nil {
			return err
		}
	}
	return nil
}

// find reads the files again for where the repeated ids stand. What came from a pipe is
// gone.
func (o *verification) find(cmd *cobra.Command, names []string, repeated []sighting) (map[firn.ID][]string, error) {
	f := &finder{make(map[firn.ID][]string)}
	again := true
	for _, name := range names {
		fi, err := os.Stat(name)
		again = again && name != "-" && err == nil && fi.Mode().IsRegular()
	}
	for _, s := range repeated {
		if f.places[s.id] = nil; !again {
			f.places[s.id] = []string{s.at + " (and before; a file could be read again for that)"}
		}
	}
	if len(repeated) == 0 || !again {
		return f.places, nil
	}
	return f.places, o.read(cmd, names, f)
}

func (t *tally) print(out io.Writer, makers []*maker, places map[firn.ID][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s of %s, layout %s\n", isAre(t.ids, "id", "ids"), plural(len(makers), "maker"), layoutName(t.layout))
	switch {
	case t.repeats > 0:
		fmt.Fprintln(w, isAre(t.repeats, "repeats", "repeat"))
	case t.ids > 0:
		fmt.Fprintln(w, "none repeats")
	}
	for _, id := range t.named() {
		for _, at := range places[id] {
			fmt.Fprintf(w, "  %d: %s\n", id, at)
		}
	}
	if t.faults > 0 {
		fmt.Fprintf(w, "%s no id of the layout\n", isAre(t.faults, "is", "are"))
	}
	for _, s := range t.malformed {
		fmt.Fprintf(w, "  %s: %s\n", s.at, s.text)
	}
	if len(makers) > 0 {
		fmt.Fprintln(w, "\nMADE BY\tIDS\tFROM\tTO\tPER SECOND\tMOST A MINUTE\tLONGEST GAP\tORDER")
	}
	for _, m := range makers {
		order := "increasing"
		if m.backwards > 0 {
			order = fmt.Sprintf("%s below the one before, first %d at %s", count(m.backwards), m.back.id, m.back.at)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.name(m), count(m.ids), instant(t.time(m.lowest)), instant(t.time(m.highest)),
			rate(t.perSecond(m)), count(m.most), t.span(m.gap), order)
	}
	if t.minutes && len(makers) > 0 {
		fmt.Fprintln(w, "\nMINUTE\tMADE BY\tIDS\tLONGEST GAP")
		for _, m := range makers {
			for _, minute := range m.minutesInOrder() {
				in := m.minutes[minute]
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", time.Unix(minute*60, 0).UTC().Format("2006-01-02T15:04Z"), t.name(m), count(in.ids), t.span(in.gap))
			}
		}
	}
	return w.Flush()
}

// rate writes ids per second: digits behind the point where few come.
func rate(perSecond float64) string {
	if perSecond < 100 {
		return fmt.Sprintf("%.3g", perSecond)
	}
	return count(int64(math.Round(perSecond)))
}

// named are the ids that repeat, each once.
func (t *tally) named() (ids []firn.ID) {
	for _, s := range t.repeated {
		if !slices.Contains(ids, s.id) {
			ids = append(ids, s.id)
		}
	}
	return ids
}

func (m *maker) minutesInOrder() []int64 {
	all := make([]int64, 0, len(m.minutes))
	for minute := range m.minutes {
		all = append(all, minute)
	}
	slices.Sort(all)
	return all
}

// What --json prints: one object.
type verifyJSON struct {
	Layout    string            `json:"layout"`
	IDs       int64             `json:"ids"`
	Repeats   int64             `json:"repeats"`
	Repeated  []repeatedJSON    `json:"repeated"` // the first of them
	Faults    int64             `json:"faults"`
	Malformed []malformedJSON   `json:"malformed"` // the first of them
	Makers    []verifyMakerJSON `json:"makers"`
}

type repeatedJSON struct {
	ID string   `json:"id"`
	At []string `json:"at"`
}

type malformedJSON struct {
	At  string `json:"at"`
	Why string `json:"why"`
}

type verifyMakerJSON struct {
	Shard      int64                       `json:"shard"`
	Worker     int64                       `json:"worker"`
	IDs        int64                       `json:"ids"`
	From       string                      `json:"from"`
	To         string                      `json:"to"`
	PerSecond  float64                     `json:"per_second"`
	MostMinute int64                       `json:"most_in_a_minute"`
	Gap        float64                     `json:"longest_gap_seconds"`
	GapAfter   string                      `json:"longest_gap_after,omitempty"`
	Backwards  int64                       `json:"backwards"` // ids below the one before
	Minutes    map[string]verifyMinuteJSON `json:"minutes,omitempty"`
}

type verifyMinuteJSON struct {
	IDs int64   `json:"ids"`
	Gap float64 `json:"longest_gap_seconds"` // after one of them
}

func (t *tally) printJSON(out io.Writer, makers []*maker, places map[firn.ID][]string) error {
	doc := verifyJSON{
		Layout: t.layout.String(), IDs: t.ids, Repeats: t.repeats, Faults: t.faults,
		Repeated: []repeatedJSON{}, Malformed: []malformedJSON{}, Makers: []verifyMakerJSON{},
	}
	for _, id := range t.named() {
		doc.Repeated = append(doc.Repeated, repeatedJSON{id.String(), places[id]})
	}
	for _, s := range t.malformed {
		doc.Malformed = append(doc.Malformed, malformedJSON{s.at, s.text})
	}
	for _, m := range makers {
		j := verifyMakerJSON{
			Shard: m.parts.Shard, Worker: m.parts.Worker, IDs: m.ids, From: instant(t.time(m.lowest)), To: instant(t.time(m.highest)),
			PerSecond: t.perSecond(m), MostMinute: m.most, Gap: t.span(m.gap).Seconds(), Backwards: m.backwards,
		}
		if m.gap > 0 {
			j.GapAfter = instant(t.layout.Time(m.gapAfter))
		}
		if t.minutes {
			j.Minutes = make(map[string]verifyMinuteJSON, len(m.minutes))
			for minute, in := range m.minutes {
				j.Minutes[time.Unix(minute*60, 0).UTC().Format("2006-01-02T15:04Z")] = verifyMinuteJSON{in.ids, t.span(in.gap).Seconds()}
			}
		}
		doc.Makers = append(doc.Makers, j)
	}
	return json.NewEncoder(out).Encode(doc)
}
