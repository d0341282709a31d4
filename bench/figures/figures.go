// Package figures sums up a benchmark in which contenders take turns, round by round: medians over
// its rounds, and the machine that it was made on.
package figures

import "slices"

// A Sample is what one contender took for one unit of work in one round, in nanoseconds.
type Sample struct{ CPU, Elapsed float64 }

func (s Sample) cpu() float64     { return s.CPU }
func (s Sample) elapsed() float64 { return s.Elapsed }

// CPU is the median of the processor time, and half the distance between the quartiles
// as a part of it.
func CPU(samples []Sample) (middle, spread float64) {
	v := sorted(samples, Sample.cpu)
	middle = Median(v)
	return middle, (v[len(v)*3/4] - v[len(v)/4]) / 2 / middle
}

// Elapsed is the median of the time that passed.
func Elapsed(samples []Sample) float64 { return Median(sorted(samples, Sample.elapsed)) }

// Ratio is the median of the rounds' ratios of processor time.
func Ratio(a, b []Sample) float64 {
	v := make([]float64, len(a))
	for i := range a {
		v[i] = a[i].CPU / b[i].CPU
	}
	slices.Sort(v)
	return Median(v)
}

// Median of what is sorted.
func Median(v []float64) float64 {
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

func sorted(samples []Sample, of func(Sample) float64) []float64 {
	v := make([]float64, len(samples))
	for i, s := range samples {
		v[i] = of(s)
	}
	slices.Sort(v)
	return v
}
