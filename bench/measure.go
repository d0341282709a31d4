package main

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A contender is something that is compared.
type contender struct {
	group string
	name  string
	role  string      // peer or floor: the others of the group are compared with it
	part  int         // it makes so small a part of the ids of a round; 0 is 1
	make  func(n int) // makes n ids
}

// Roles of a contender.
const (
	peer  = "peer"
	floor = "floor"
)

// A sample is what one contender took for one id in one round.
type sample struct{ cpu, elapsed float64 } // nanoseconds

// compare runs everything in turns and sums up.
func compare(all []contender, rounds, ids int) []row {
	samples := make([][]sample, len(all))
	allocs := make([]float64, len(all))
	for i, c := range all { // warm up, and count allocations
		n := max(ids/max(c.part, 1)/10, 100)
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		c.make(n)
		runtime.ReadMemStats(&to)
		allocs[i] = float64(to.Mallocs-from.Mallocs) / float64(n)
	}
	for range rounds {
		for i, c := range all {
			n := max(ids/max(c.part, 1), 1)
			runtime.GC() // nobody pays for another one's garbage
			start, from := time.Now(), cpu()
			c.make(n)
			samples[i] = append(samples[i], sample{
				cpu:     float64(cpu()-from) / float64(n),
				elapsed: float64(time.Since(start)) / float64(n),
			})
		}
	}
	rows := make([]row, len(all))
	for i, c := range all {
		rows[i] = row{Group: c.group, Name: c.name, Allocs: allocs[i]}
		rows[i].CPU, rows[i].Spread = spread(samples[i], func(s sample) float64 { return s.cpu })
		rows[i].Elapsed, _ = spread(samples[i], func(s sample) float64 { return s.elapsed })
		for j, d := range all {
			if d.group == c.group && d.role == peer {
				rows[i].ToPeer = ratio(samples[i], samples[j])
			}
			if d.group == c.group && d.role == floor {
				rows[i].ToFloor = ratio(samples[i], samples[j])
			}
		}
	}
	return rows
}

// spread returns the median, and half the distance between the quartiles as a
// part of it.
func spread(samples []sample, of func(sample) float64) (middle, width float64) {
	v := make([]float64, len(samples))
	for i, s := range samples {
		v[i] = of(s)
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

// cpu is the processor time that the process has taken.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
