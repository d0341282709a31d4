package main

import (
	"runtime"
	"syscall"
	"time"

	"github.com/firn-id/firn/bench/figures"
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

// compare runs everything in turns and sums up.
func compare(all []contender, rounds, ids int) []row {
	samples := make([][]figures.Sample, len(all))
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
			samples[i] = append(samples[i], figures.Sample{
				CPU:     float64(cpu()-from) / float64(n),
				Elapsed: float64(time.Since(start)) / float64(n),
			})
		}
	}
	rows := make([]row, len(all))
	for i, c := range all {
		rows[i] = row{Group: c.group, Name: c.name, Allocs: allocs[i]}
		rows[i].CPU, rows[i].Spread = figures.CPU(samples[i])
		rows[i].Elapsed = figures.Elapsed(samples[i])
		for j, d := range all {
			if d.group == c.group && d.role == peer {
				rows[i].ToPeer = figures.Ratio(samples[i], samples[j])
			}
			if d.group == c.group && d.role == floor {
				rows[i].ToFloor = figures.Ratio(samples[i], samples[j])
			}
		}
	}
	return rows
}

// cpu is the processor time that the process has taken.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
