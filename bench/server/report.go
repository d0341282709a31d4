package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A report is all that was measured. Times are nanoseconds for one request.
type report struct {
	Machine machine `json:"machine"`
	Rounds  int     `json:"rounds"`
	Rows    []row   `json:"rows"`
}

// A row is what came of one contender: medians over the rounds.
type row struct {
	Group   string  `json:"group"`
	Name    string  `json:"name"`
	CPU     float64 `json:"cpu_ns"`
	Spread  float64 `json:"spread"` // half the distance between the quartiles, as a part of CPU
	Elapsed float64 `json:"elapsed_ns"`
	Ratio   float64 `json:"peer_x,omitempty"` // processor time of the peer as a multiple of this one's
}

type machine struct {
	Date string `json:"date"`
	Go   string `json:"go"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Load string `json:"load"` // of the last minute, when the measurement began
}

func thisMachine() machine {
	m := machine{Date: time.Now().UTC().Format(time.DateTime), Go: runtime.Version(), Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(load), " ")
	}
	return m
}

// compare runs everything in turns and sums up. Who begins differs from round to round.
func (s *stage) compare(all []contender, rounds int) ([]row, error) {
	samples := make([][]sample, len(all))
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
		rows[i].CPU, rows[i].Spread = spread(samples[i], func(x sample) float64 { return x.cpu })
		rows[i].Elapsed, _ = spread(samples[i], func(x sample) float64 { return x.elapsed })
		for j, d := range all {
			if d.group == c.group && d.peer {
				rows[i].Ratio = ratio(samples[j], samples[i])
			}
		}
	}
	return rows, nil
}

// spread returns the median, and half the distance between the quartiles as a part of
// it.
func spread(samples []sample, of func(sample) float64) (middle, width float64) {
	v := make([]float64, len(samples))
	for i, x := range samples {
		v[i] = of(x)
	}
	slices.Sort(v)
	middle = median(v)
	return middle, (v[len(v)*3/4] - v[len(v)/4]) / 2 / middle
}

// ratio is the median of the rounds' ratios of processor time.
func ratio(a, b []sample) float64 {
	v := make([]float64, len(a))
	for i := range a {
		v[i] = a[i].cpu / b[i].cpu
	}
	slices.Sort(v)
	return median(v)
}

// median of what is sorted.
func median(v []float64) float64 {
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s, %s, %d processors, load %s, %d rounds\n", r.Machine.Date, r.Machine.Go, r.Machine.Arch, r.Machine.CPUs, r.Machine.Load, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	group := ""
	for _, x := range r.Rows {
		if x.Group != group {
			group = x.Group
			fmt.Fprintf(t, "\n%s\tcpu ns\t+-\telapsed ns\tpeer / this\t\n", group)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.0f %%\t%.1f\t%.2f\t\n", x.Name, x.CPU, 100*x.Spread, x.Elapsed, x.Ratio)
	}
	return t.Flush()
}
