package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/firn-id/firn/bench/figures"
)

// A report is all that was measured. Times are nanoseconds for one request.
type report struct {
	Machine figures.Machine `json:"machine"`
	Rounds  int             `json:"rounds"`
	Rows    []row           `json:"rows"`
}

// A row is what came of one contender: medians over the rounds.
type row struct {
	Group   string  `json:"group"`
	Name    string  `json:"name"`
	CPU     float64 `json:"cpu_ns"`
	Spread  float64 `json:"spread"` // half the distance between the quartiles, as a part of CPU
	Elapsed float64 `json:"elapsed_ns"`
	Ratio   float64 `json:"peer_x,omitempty"`   // processor time of the peer as a multiple of this one's
	Before  float64 `json:"before_x,omitempty"` // processor time of the same server of the other checkout as a multiple of this one's
}

// compare runs everything in turns and sums up. Who begins differs from round to round.
func (s *stage) compare(all []contender, rounds int) ([]row, error) {
	samples := make([][]figures.Sample, len(all))
	for round := range rounds + 1 {
		for k := range all {
			i := (k + round) % len(all)
			select {
			case <-s.interrupted:
				return nil, fmt.Errorf("interrupted in round %d", round)
			default:
			}
			one, err := all[i].run()
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", all[i].group, all[i].name, err)
			}
			if round > 0 { // the first one warms up
				samples[i] = append(samples[i], one)
			}
		}
		fmt.Fprintf(os.Stderr, "\rround %d of %d", round, rounds)
	}
	fmt.Fprintln(os.Stderr)
	rows := make([]row, len(all))
	for i, c := range all {
		rows[i] = row{Group: c.group, Name: c.name}
		rows[i].CPU, rows[i].Spread = figures.CPU(samples[i])
		rows[i].Elapsed = figures.Elapsed(samples[i])
		for j, d := range all {
			if d.group == c.group && d.peer {
				rows[i].Ratio = figures.Ratio(samples[j], samples[i])
			}
			if d.group == c.group && d.past && c.name+pastName == d.name {
				rows[i].Before = figures.Ratio(samples[j], samples[i])
			}
		}
	}
	return rows, nil
}

func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d rounds\n", r.Machine, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	group := ""
	for _, x := range r.Rows {
		if x.Group != group {
			group = x.Group
			fmt.Fprintf(t, "\n%s\tcpu ns\t+-\telapsed ns\tpeer / this\tbefore / this\t\n", group)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.0f %%\t%.1f\t%.2f\t%s\t\n", x.Name, x.CPU, 100*x.Spread, x.Elapsed, x.Ratio, ratio(x.Before))
	}
	return t.Flush()
}

// ratio is empty where there is nothing to compare with.
func ratio(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", x)
}
