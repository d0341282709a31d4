package plan_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/plan"
)

var someDay = time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)

func randomInstant(r *rand.Rand) time.Time {
	day := time.Date(2026+r.IntN(40), 1, 1, 0, 0, 0, 0, time.UTC)
	switch r.IntN(3) {
	case 0:
		return day // the very beginning of a year
	case 1:
		return day.Add(time.Duration(r.Int64N(int64(2 * time.Minute))))
	}
	return day.Add(time.Duration(r.Int64N(int64(365 * 24 * time.Hour))))
}

// proposals are those of a need that may have none.
func proposals(t *testing.T, n plan.Need, now time.Time) ([]plan.Proposal, *plan.NoneError) {
	t.Helper()
	all, err := n.Proposals(now)
	var none *plan.NoneError
	if err != nil && !errors.As(err, &none) || (none == nil) != (len(all) > 0) {
		t.Fatalf("%+v: %d proposals, %v", n, len(all), err)
	}
	return all, none
}

// Every layout that is proposed has what was asked, by what it says of itself.
func TestHasWhatWasAsked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		n, now := plan.RandomNeed(r), randomInstant(r)
		all, _ := proposals(t, n, now)
		for _, p := range all {
			l := p.Layout
			check(t, n, p, now)
			if l.Name() == "" && (l.Bits() > 63 || p.Spare != 63-l.Bits()) {
				t.Errorf("%+v at %s: %s: %d bits, %d spare", n, now, l, l.Bits(), p.Spare)
			}
			again, err := firn.ParseLayout(l.String())
			if err != nil || again != l {
				t.Errorf("%s cannot be pasted: %v", l, err)
			}
		}
	}
}

func check(t *testing.T, n plan.Need, p plan.Proposal, now time.Time) {
	t.Helper()
	l := p.Layout
	years := l.End().Sub(now).Hours() / 24 / 365.2425
	if l.End().Year()-now.Year() > 290 { // more than a Duration has
		years = float64(l.End().Year() - now.Year() - 1)
	}
	switch {
	case l.Check(now) != nil:
		t.Errorf("%+v at %s: %s: %v", n, now, l, l.Check(now))
	case !l.Ordered():
		t.Errorf("%s does not sort by time", l)
	case l.Workers() < n.Workers:
		t.Errorf("%+v: %s has %d workers", n, l, l.Workers())
	case l.Rate()*float64(n.Workers) < n.Rate*(1-1e-9):
		t.Errorf("%+v: %s makes %g/s", n, l, l.Rate()*float64(n.Workers))
	case l.Rate() < n.WorkerRate:
		t.Errorf("%+v: a worker of %s makes %g/s", n, l, l.Rate())
	case years < min(n.Years, 290):
		t.Errorf("%+v at %s: %s ends on %s", n, now, l, l.End())
	case p.Room < 1:
		t.Errorf("%+v: %s has room %g", n, l, p.Room)
	}
	if n.Above == 0 {
		return
	}
	for _, at := range []time.Time{now, now.Add(-plan.Behind), now.Add(time.Hour)} {
		if first, _, err := l.Bounds(at, at); err != nil || first <= n.Above {
			t.Errorf("%+v: the first id of %s at %s is %d, %v", n, l, at, first, err)
		}
	}
}

// What is said to do does, and a little more does not.
func TestRelaxed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	hints := 0
	for range 2000 {
		n := plan.RandomNeed(r)
		_, none := proposals(t, n, someDay)
		if none == nil {
			continue
		}
		if none.Need != n {
			t.Errorf("%+v: the error is about %+v", n, none.Need)
		}
		for _, relaxed := range none.Relaxed {
			hints++
			v := relaxed.Most
			with, more := n, n
			switch relaxed.Requirement {
			case plan.Rate:
				with.Rate, more.Rate = v, v+1
			case plan.WorkerRate:
				with.WorkerRate, more.WorkerRate = v, min(v+1, n.Rate)
			case plan.Years:
				with.Years, more.Years = v, min(v+1, plan.MaxYears)
			case plan.Workers:
				with.Workers, more.Workers = int64(v), n.Workers
			}
			all, none := proposals(t, with, someDay)
			if none != nil {
				t.Errorf("%+v: %v does not do: %v", n, relaxed, none)
			}
			if _, none := proposals(t, more, someDay); none == nil && v+1 < n.Rate {
				t.Errorf("%+v: %v, and more would do", n, relaxed)
			}
			for _, p := range all {
				check(t, with, p, someDay)
			}
		}
	}
	if hints < 100 {
		t.Errorf("only %d hints", hints)
	}
}

func TestBestFirst(t *testing.T) {
	all, none := proposals(t, plan.Need{Rate: 20000, Workers: 500, Years: 50}, someDay)
	if none != nil || all[0].Layout != firn.Default() {
		t.Fatalf("the first is %v; %v", all, none)
	}
	for i := 2; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.Room < 2 && b.Room >= 2 || (a.Room >= 2) == (b.Room >= 2) && a.Layout.Unit() > b.Layout.Unit() {
			t.Errorf("%v before %v", a, b)
		}
	}
}

func TestRanges(t *testing.T) {
	good := plan.Need{Rate: 10, Workers: 2, Years: 5}
	for want, change := range map[plan.Requirement]func(n *plan.Need, bad float64){
		plan.Rate:       func(n *plan.Need, bad float64) { n.Rate = bad },
		plan.WorkerRate: func(n *plan.Need, bad float64) { n.WorkerRate = bad },
		plan.Years:      func(n *plan.Need, bad float64) { n.Years = bad },
		plan.Workers:    func(n *plan.Need, _ float64) { n.Workers = 0 },
	} {
		for _, bad := range []float64{-1, math.NaN(), math.Inf(1), 2 * plan.MaxRate} {
			n := good
			change(&n, bad)
			var outside *plan.RangeError
			if _, err := n.Proposals(someDay); !errors.As(err, &outside) || outside.Requirement != want {
				t.Errorf("%+v: %v, want an error about %s", n, err, want)
			}
		}
	}
}
