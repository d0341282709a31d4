package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/firn-id/firn/bench/figures"
)

// A report is all that was measured. Times are nanoseconds for one id.
type report struct {
	Machine figures.Machine `json:"machine"`
	Rounds  int             `json:"rounds"`
	IDs     int             `json:"ids"`
	Rows    []row           `json:"rows,omitempty"`
	Stay    string          `json:"stay"` // of each turn at the ceiling
	Ceiling []stay          `json:"ceiling,omitempty"`
}

// A row is what came of one contender: medians over the rounds.
type row struct {
	Group   string  `json:"group"`
	Name    string  `json:"name"`
	CPU     float64 `json:"cpu_ns"`
	Spread  float64 `json:"spread"` // half the distance between the quartiles, as a part of CPU
	Elapsed float64 `json:"elapsed_ns"`
	ToPeer  float64 `json:"x_peer,omitempty"`  // processor time as a multiple of bwmarrin's
	ToFloor float64 `json:"x_floor,omitempty"` // and of clock + add
	Allocs  float64 `json:"allocs"`
}

// print writes tables for people.
func (r report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, r.Machine)
	if len(r.Rows) > 0 {
		fmt.Fprintf(w, "medians of %d rounds of up to %d ids; ns for one id; ratios are of processor time\n", r.Rounds, r.IDs)
	}
	group := ""
	for _, row := range r.Rows {
		if row.Group != group {
			group = row.Group
			w.Flush()
			fmt.Fprintf(w, "\n%s\n", group)
			fmt.Fprintln(w, "cpu\t+-\telapsed\tx bwmarrin\tx clock+add\tallocs\t \t")
		}
		fmt.Fprintf(w, "%.2f\t%.0f%%\t%.2f\t%s\t%s\t%.0f\t  %s\n", row.CPU, row.Spread*100, row.Elapsed,
			times(row.ToPeer), times(row.ToFloor), row.Allocs, row.Name)
	}
	if len(r.Ceiling) > 0 {
		w.Flush()
		fmt.Fprintf(w, "\nat the ceiling of 41/10/12, %.0f ids per second and worker, %d times %s\n", usual.Rate(), turns, r.Stay)
		fmt.Fprintln(w, "reached\tat least\tcpu\tx bwmarrin\tprocessor\t \t")
	}
	for _, s := range r.Ceiling {
		fmt.Fprintf(w, "%.2f%%\t%.2f%%\t%.2f\t%s\t%.0f%%\t  %s\n", s.Share*100, s.Least*100, s.CPU, times(s.ToPeer), s.Busy*100, s.Name)
	}
	return w.Flush()
}

func times(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", ratio)
}
