package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

var planDay = time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)

// randomNeed asks for anything between very little and too much.
func randomNeed(r *rand.Rand) need {
	scale := func(most float64) float64 { return math.Exp2(r.Float64() * math.Log2(most)) }
	n := need{rate: scale(1e11), workers: int64(scale(1e7)), years: scale(mostYears)}
	if r.IntN(4) == 0 {
		n.peak = n.rate * r.Float64()
	}
	if r.IntN(2) == 0 {
		n.above = firn.ID(scale(math.MaxInt64))
	}
	return n
}

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

// Every layout that is proposed has what was asked, by what it says of itself.
func TestPlanHasWhatWasAsked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		n, now := randomNeed(r), randomInstant(r)
		for _, p := range n.plan(now) {
			l := p.Layout
			checkProposal(t, n, p, now)
			if p.Name() == "" && (l.Bits() > 63 || p.spare != 63-l.Bits()) {
				t.Errorf("%+v at %s: %s: %d bits, %d spare", n, now, l, l.Bits(), p.spare)
			}
			again, err := firn.ParseLayout(l.String())
			if err != nil || again != l {
				t.Errorf("%s cannot be pasted: %v", l, err)
			}
		}
	}
}

func checkProposal(t *testing.T, n need, p proposal, now time.Time) {
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
	case l.Workers() < n.workers:
		t.Errorf("%+v: %s has %d workers", n, l, l.Workers())
	case l.Rate()*float64(n.workers) < n.rate*(1-1e-9):
		t.Errorf("%+v: %s makes %g/s", n, l, l.Rate()*float64(n.workers))
	case l.Rate() < n.peak:
		t.Errorf("%+v: a worker of %s makes %g/s", n, l, l.Rate())
	case years < min(n.years, 290):
		t.Errorf("%+v at %s: %s ends on %s", n, now, l, l.End())
	case p.room < 1:
		t.Errorf("%+v: %s has room %g", n, l, p.room)
	}
	if n.above == 0 {
		return
	}
	for _, at := range []time.Time{now, now.Add(-behind), now.Add(time.Hour)} {
		if first, _, err := l.Bounds(at, at); err != nil || first <= n.above {
			t.Errorf("%+v: the first id of %s at %s is %d, %v", n, l, at, first, err)
		}
	}
}

// Where nothing is proposed there is nothing: no division of 63 bits with the
// epoch at the beginning of any year does.
func TestPlanFindsWhatThereIs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	none := 0
	for range 400 {
		n := randomNeed(r)
		if len(n.plan(planDay)) > 0 {
			continue
		}
		none++
		if n.possible(planDay) {
			t.Errorf("%+v is possible, and nothing is proposed", n)
		}
		for range 2000 {
			unit := planUnits[r.IntN(len(planUnits))]
			worker, seq := n.least(unit)
			if worker+seq > 62 {
				continue
			}
			below := worker + seq + r.IntN(63-worker-seq)
			s := split{time: 63 - below, worker: worker, seq: below - worker, epoch: time.Date(1970+r.IntN(57), 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}
			if l, ok := s.layout(unit); ok && n.meets(l, planDay) {
				t.Errorf("%+v: %s does, and nothing is proposed", n, l)
			}
		}
	}
	if none < 20 {
		t.Errorf("only %d of the questions had no answer", none)
	}
}

// What is said to do does, and a little more does not.
func TestPlanRelaxed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	hints := 0
	for range 2000 {
		n := randomNeed(r)
		if n.possible(planDay) {
			continue
		}
		for _, flag := range n.relaxed(planDay) {
			hints++
			name, text, _ := strings.Cut(flag, " ")
			var v float64
			if _, err := fmt.Sscan(text, &v); err != nil {
				t.Fatal(flag)
			}
			with, more := n, n
			switch name {
			case "--rate":
				with.rate, more.rate = v, v+1
			case "--worker-rate":
				with.peak, more.peak = v, v+1
			case "--years":
				with.years, more.years = v, v+1
			case "--workers":
				with.workers, more.workers = int64(v), n.workers
			}
			if !with.possible(planDay) || more.possible(planDay) && v+1 < n.rate {
				t.Errorf("%+v: %s", n, flag)
			}
			for _, p := range with.plan(planDay) {
				checkProposal(t, with, p, planDay)
			}
		}
	}
	if hints < 100 {
		t.Errorf("only %d hints", hints)
	}
}

// The fewest bits are the fewest: one less and nothing does.
func TestPlanFewestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		n, now := randomNeed(r), randomInstant(r)
		for _, unit := range planUnits {
			if s, ok := n.fewest(unit, now); ok {
				if l, ok := n.roomiest(unit, s.bits(), now); !ok || l.Bits() != s.bits() {
					t.Errorf("%+v: %d bits do, and %s has them", n, s.bits(), l)
				}
				if l, ok := n.roomiest(unit, s.bits()-1, now); ok {
					t.Errorf("%+v: %d bits, and %s has fewer", n, s.bits(), l)
				}
			}
		}
	}
}

// An id of each layout that is proposed is above the one that was there.
func TestPlanAbove(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	for _, old := range []string{"twitter", "sonyflake", "js53", "uidgenerator;epoch=2020-01-01T00:00:00Z"} {
		last, errs, code := called(t, "encode", "--layout", old, "--time", "now", "--last")
		if code != 0 {
			t.Fatal(errs)
		}
		last = strings.TrimSpace(last)
		out, errs, code := called(t, "plan", "--rate", "100", "--workers", "4", "--years", "10", "--above", last, "--json")
		if code != 0 {
			t.Fatal(errs)
		}
		above, err := firn.ParseID(last)
		if err != nil {
			t.Fatal(err)
		}
		for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
			var p proposalLine
			if err := dec.Decode(&p); err != nil {
				t.Fatal(err)
			}
			next, errs, code := called(t, "next", "--layout", p.Spec, "--store", "sqlite:"+filepath.Join(t.TempDir(), "ids.db"))
			id, err := firn.ParseID(strings.TrimSpace(next))
			if code != 0 || err != nil || id <= above {
				t.Errorf("%s after %s: %s is not above %s: %s", p.Spec, old, next, last, errs)
			}
		}
	}
}

func TestPlanOrders(t *testing.T) {
	n := need{rate: 20000, workers: 500, years: 50}
	for order, value := range map[string]func(proposal) float64{
		"room":    func(p proposal) float64 { return -p.room },
		"bits":    func(p proposal) float64 { return float64(p.Bits()) },
		"tick":    func(p proposal) float64 { return float64(p.Unit()) },
		"years":   func(p proposal) float64 { return -float64(p.End().Unix()) },
		"rate":    func(p proposal) float64 { return -p.Rate() },
		"workers": func(p proposal) float64 { return -float64(p.Workers()) },
	} {
		all := n.plan(planDay)
		sortProposals(all, order)
		if !slices.IsSortedFunc(all, func(a, b proposal) int { return int(math.Copysign(1, value(a)-value(b))) }) {
			t.Errorf("not by %s", order)
		}
	}
	all := n.plan(planDay)
	sortProposals(all, "best")
	if all[0].Layout != firn.Default {
		t.Errorf("the first is %s", all[0])
	}
	for i := 2; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.room < roomy && b.room >= roomy || (a.room >= roomy) == (b.room >= roomy) && a.Unit() > b.Unit() {
			t.Errorf("%s before %s", a, b)
		}
	}
}
