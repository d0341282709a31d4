package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/verify"
)

func (o *verification) print(out io.Writer, r *verify.Report, places verify.Places) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s of %s, layout %s\n", phrase.Counted(r.IDs, "id", "ids"), phrase.Plural(len(r.Makers), "maker"), layoutName(r.Layout))
	switch {
	case r.Repeats > 0:
		fmt.Fprintln(w, phrase.Counted(r.Repeats, "id repeats an earlier one", "ids repeat earlier ones"))
	case r.IDs > 0:
		fmt.Fprintln(w, "none repeats")
	}
	for _, id := range distinct(r.Repeated) {
		for _, at := range places[id] {
			fmt.Fprintf(w, "  %d: %s\n", id, at)
		}
	}
	if r.Faults > 0 {
		fmt.Fprintln(w, o.faults(r))
	}
	for _, f := range r.Faulty {
		fmt.Fprintf(w, "  %s: %s\n", f.At, faultText(f.Err))
	}
	if len(r.Makers) > 0 {
		fmt.Fprintln(w, "\nMADE BY\tIDS\tFROM\tTO\tPER SECOND\tMOST A MINUTE\tLONGEST GAP\tORDER")
	}
	for _, m := range r.Makers {
		order := "increasing"
		if m.Backwards > 0 {
			order = fmt.Sprintf("%s below the one before, first %d at %s", phrase.Count(m.Backwards), m.FirstBack.ID, m.FirstBack.At)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", makerName(r.Layout, &m), phrase.Count(m.IDs), phrase.Instant(m.From), phrase.Instant(m.To),
			phrase.Rate(m.Rate), phrase.Count(m.MostInMinute), m.LongestGap, order)
	}
	if o.minutes && len(r.Makers) > 0 {
		fmt.Fprintln(w, "\nMINUTE\tMADE BY\tIDS\tLONGEST GAP")
		for _, m := range r.Makers {
			for in := range m.Minutes() {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", in.Start.Format(minuteForm), makerName(r.Layout, &m), phrase.Count(in.IDs), in.LongestGap)
			}
		}
	}
	return w.Flush()
}

// faults says how much of the input is no id.
func (o *verification) faults(r *verify.Report) string {
	one, several := "line is", "lines are"
	if o.format == formatBinary {
		one, several = "value is", "values are"
	}
	return phrase.Counted(r.Faults, one, several) + " no id of the layout"
}

// faultText says what is wrong with an input. The place in a text is that of a character: a column is one
// of a CSV here.
func faultText(err error) string {
	text := phrase.WithoutPackage(err.Error())
	var syntax *firn.SyntaxError
	if !errors.As(err, &syntax) {
		return text
	}
	begin, ok := strings.CutSuffix(text, fmt.Sprintf(", column %d: %s", syntax.Offset+1, syntax.Reason))
	if !ok {
		return text
	}
	return fmt.Sprintf("%s, character %d: %s", begin, utf8.RuneCountInString(syntax.Text[:syntax.Offset])+1, syntax.Reason)
}

const minuteForm = "2006-01-02T15:04Z"

// makerName is what a person calls a maker.
func makerName(l firn.Layout, m *verify.Maker) string {
	_, shard := l.Field("shard")
	switch {
	case shard && l.Workers() > 1:
		return fmt.Sprintf("shard %d worker %s", m.Shard, l.WorkerText(m.Worker))
	case shard:
		return fmt.Sprintf("shard %d", m.Shard)
	default:
		return "worker " + l.WorkerText(m.Worker)
	}
}

// distinct are the ids that repeat, each once.
func distinct(repeated []verify.Sighting) (ids []firn.ID) {
	for _, s := range repeated {
		if !slices.Contains(ids, s.ID) {
			ids = append(ids, s.ID)
		}
	}
	return ids
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
	Fields     fields                      `json:"fields,omitempty"`
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

func (o *verification) printJSON(out io.Writer, r *verify.Report, places verify.Places) error {
	doc := verifyJSON{
		Layout: r.Layout.String(), IDs: r.IDs, Repeats: r.Repeats, Faults: r.Faults,
		Repeated: []repeatedJSON{}, Malformed: []malformedJSON{}, Makers: []verifyMakerJSON{},
	}
	for _, id := range distinct(r.Repeated) {
		doc.Repeated = append(doc.Repeated, repeatedJSON{id.String(), places[id]})
	}
	for _, f := range r.Faulty {
		doc.Malformed = append(doc.Malformed, malformedJSON{f.At, faultText(f.Err)})
	}
	for _, m := range r.Makers {
		j := verifyMakerJSON{
			Shard: m.Shard, Worker: m.Worker, Fields: workerFields(r.Layout, m.Worker), IDs: m.IDs, From: phrase.Instant(m.From), To: phrase.Instant(m.To),
			PerSecond: m.Rate, MostMinute: m.MostInMinute, Gap: m.LongestGap.Seconds(), Backwards: m.Backwards,
		}
		if m.LongestGap > 0 {
			j.GapAfter = phrase.Instant(m.GapAfter)
		}
		if o.minutes {
			j.Minutes = make(map[string]verifyMinuteJSON)
			for in := range m.Minutes() {
				j.Minutes[in.Start.Format(minuteForm)] = verifyMinuteJSON{in.IDs, in.LongestGap.Seconds()}
			}
		}
		doc.Makers = append(doc.Makers, j)
	}
	return json.NewEncoder(out).Encode(doc)
}
