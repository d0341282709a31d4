package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// A serverLine is a server as --json prints it.
type serverLine struct {
	Server      string  `json:"server"`
	Error       string  `json:"error,omitempty"`
	Cluster     string  `json:"cluster,omitempty"`
	Version     string  `json:"version,omitempty"` // of PostgreSQL
	Standby     bool    `json:"standby,omitempty"`
	Serves      int     `json:"serves"`
	Closed      int     `json:"closed"`
	Moved       int     `json:"moved"`
	Bytes       int64   `json:"bytes"`
	ClockOffset float64 `json:"clock_offset_seconds"`

	Rate *float64 `json:"rows_written_per_second,omitempty"`
	Time string   `json:"time,omitempty"` // of the look, with --watch
}

func newServerLine(s *check.Server) serverLine {
	l := serverLine{Server: s.Name}
	if s.Err != nil {
		l.Error = phrase.WithoutPackage(s.Err.Error())
		return l
	}
	l.Cluster, l.Standby, l.Bytes = s.Cluster, s.Standby, s.Bytes
	l.Version = fmt.Sprintf("%d.%d", s.Version/10000, s.Version%10000)
	l.ClockOffset = s.Offset.Seconds()
	for _, row := range s.Shards {
		switch {
		case row.State == topology.StateMoved:
			l.Moved++
		case row.Serves():
			l.Serves++
		default:
			l.Closed++
		}
	}
	return l
}

// A moveStatus is a move as --json prints it.
type moveStatus struct {
	Move      string    `json:"move"` // its batch
	From      string    `json:"from"`
	To        string    `json:"to"`
	Phase     string    `json:"phase"`
	Shards    []int64   `json:"shards"`
	Moved     []int64   `json:"moved"`
	Rows      *int64    `json:"rows,omitempty"` // nil: nobody has said how many
	RowsTotal *int64    `json:"rows_total,omitempty"`
	Lag       *int64    `json:"lag_bytes,omitempty"`
	Since     time.Time `json:"since"`
	Problem   string    `json:"problem,omitempty"`
	Do        string    `json:"do"`
	Time      string    `json:"time,omitempty"` // of the look, with --watch
}

func newMoveStatus(f move.Move, h hinter) moveStatus {
	l := moveStatus{
		Move: f.Batch, From: f.Source, To: f.Target, Phase: string(f.Stage()), Shards: f.Shards, Moved: append([]int64{}, f.Moved...),
		Since: f.Began.UTC(), Problem: f.Problem, Do: h.next(f),
	}
	if rowsKnown(f) {
		l.Rows, l.RowsTotal = &f.Rows, &f.RowsTotal
	}
	if f.Unapplied >= 0 {
		l.Lag = &f.Unapplied
	}
	return l
}

// rowsKnown says whether both servers have said how many rows they have.
func rowsKnown(f move.Move) bool { return f.Phase != move.Unknown && f.Phase != move.HalfLeft }

// printMoves prints what is under way.
func printMoves(out io.Writer, moves []move.Move, h hinter) error {
	if len(moves) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nMOVING\tFROM\tTO\tPHASE\tROWS (ABOUT)\tBEHIND\tFOR\t")
	for _, f := range moves {
		phase, rows, behind := string(f.Stage()), "?", "?"
		if rowsKnown(f) {
			rows = fmt.Sprintf("%d of %d", f.Rows, f.RowsTotal)
		}
		if len(f.Moved) > 0 && len(f.Moved) < len(f.Shards) {
			phase += fmt.Sprintf(", %d of %d moved", len(f.Moved), len(f.Shards))
		}
		if f.Unapplied >= 0 {
			behind = phrase.Bytes(f.Unapplied)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", phrase.Numbers(f.Shards), f.Source, f.Target, phase, rows, behind,
			time.Since(f.Began).Round(time.Second), f.Problem)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range moves {
		if _, err := fmt.Fprintf(out, "%s\n  %s\n", standsText(f), h.next(f)); err != nil {
			return err
		}
	}
	return nil
}

// serverText is why a server is not in the table, with its name.
func serverText(s *check.Server) string {
	text := phrase.WithoutPackage(s.Err.Error())
	if !strings.HasPrefix(text, "server ") {
		text = "server " + s.Name + ": " + text
	}
	return text
}

func (st *status) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return st.printJSON(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "SERVER\tPOSTGRESQL\tSERVES\tCLOSED\tMOVED\tSIZE\tCLOCK"
	if st.time != "" {
		head += "\tWRITES"
	}
	fmt.Fprintln(w, head)
	for _, s := range st.seen {
		l := newServerLine(s)
		if s.Err != nil {
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\n", l.Server)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%+.3fs", l.Server, l.Version, l.Serves, l.Closed, l.Moved, phrase.Bytes(l.Bytes), l.ClockOffset)
		if rate, ok := st.rates[s.Name]; ok {
			fmt.Fprintf(w, "\t%.1f rows/s", rate)
		} else if st.time != "" {
			fmt.Fprint(w, "\t?")
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range st.seen {
		if s.Err == nil {
			continue
		}
		text := serverText(s)
		if do := serverCure(&topology.ServerError{Server: s.Name, Err: s.Err}); do != "" {
			text += "; " + st.hints.compose(do)
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", check.Bad, text); err != nil {
			return err
		}
	}
	if err := printMoves(out, st.moves, st.hints); err != nil {
		return err
	}
	if st.unseen != "" {
		if _, err := fmt.Fprintf(out, "%s: moves may be under way that this role cannot see: %s\n", check.Warn, st.hints.compose(st.unseen)); err != nil {
			return err
		}
	}
	for _, f := range st.together() {
		text := f.Text
		switch {
		case strings.HasPrefix(f.Do, "the same command, also with"):
			text += "; " + f.Do
		case f.Do == updateDo, strings.Contains(f.Do, "shard reopen "), strings.Contains(f.Do, "A server that was put back"), strings.HasPrefix(f.Do, "give the address"):
			text += "; " + st.hints.compose(f.Do)
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", f.Level, text); err != nil {
			return err
		}
	}
	return nil
}

func (st *status) printJSON(out io.Writer) error {
	var lines []any
	for _, s := range st.seen {
		l := newServerLine(s)
		l.Time = st.time
		if rate, ok := st.rates[s.Name]; ok {
			l.Rate = &rate
		}
		lines = append(lines, l)
	}
	for _, f := range st.moves {
		l := newMoveStatus(f, st.hints)
		l.Time = st.time
		lines = append(lines, l)
	}
	return ui.EmitJSON(out, lines...)
}
