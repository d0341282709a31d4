package setup

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// A formula is how a function makes ids, as it was published:
//
//	(floor(clock * rate) - epoch) << timeShift | shard << shardShift | nextval(sequence) % modulus << seqShift
type formula struct {
	rate                            int64 // ticks in a second
	epoch                           int64 // in ticks since 1970
	shard, modulus                  int64
	timeShift, shardShift, seqShift int64
	sequence                        string // as it is written
}

// A function is the text of one, as the catalog has it.
type function struct {
	language string
	source   string
	result   string // the name of its OUT parameter; empty: it has none
}

// formula reads how a function makes ids out of its text. It accepts nothing that it
// does not understand as a whole.
func (f function) formula() (formula, error) {
	result, err := f.value()
	if err != nil {
		return formula{}, err
	}
	var g formula
	var seen []string
	for _, term := range terms(result) {
		kind, err := g.take(term)
		if err != nil {
			return formula{}, err
		}
		if slices.Contains(seen, kind) {
			return formula{}, fmt.Errorf("there are two parts for the %s", kind)
		}
		seen = append(seen, kind)
	}
	for _, kind := range []string{"time", "shard", "sequence"} {
		if !slices.Contains(seen, kind) {
			return formula{}, fmt.Errorf("there is no part for the %s", kind)
		}
	}
	return g, nil
}

// terms are the parts that an id is put together of.
func terms(e *expression) []*expression {
	if e.op == "|" || e.op == "+" {
		return append(terms(e.args[0]), terms(e.args[1])...)
	}
	return []*expression{e}
}

// take reads one part.
func (g *formula) take(e *expression) (kind string, err error) {
	inner, shift := e, int64(0)
	if e.op == "<<" {
		by, ok := e.args[1].number()
		if !ok || by < 0 || by > 63 {
			return "", errors.New("a shift is not a number")
		}
		inner, shift = e.args[0], by
	}
	if n, ok := inner.number(); ok {
		g.shard, g.shardShift = n, shift
		return "shard", nil
	}
	if name, modulus, ok := inner.draw(); ok {
		g.sequence, g.modulus, g.seqShift = name, modulus, shift
		if modulus < 2 || bits.OnesCount64(uint64(modulus)) != 1 {
			return "", fmt.Errorf("the sequence is taken modulo %d, which is no power of two", modulus)
		}
		return "sequence", nil
	}
	clock := inner
	g.epoch = 0
	for clock.op == "-" {
		epoch, ok := clock.args[1].number()
		if !ok {
			return "", errors.New("the epoch is not a number")
		}
		clock, g.epoch = clock.args[0], g.epoch+epoch
	}
	if rate, ok := clock.clock(); ok {
		g.rate, g.timeShift = rate, shift
		return "time", nil
	}
	return "", fmt.Errorf("a part is neither time, shard nor sequence: %s", e)
}

// number is the value of an expression of numbers.
func (e *expression) number() (int64, bool) {
	if e.op == "number" {
		return e.value, true
	}
	if len(e.args) != 2 {
		return 0, false
	}
	a, okA := e.args[0].number()
	b, okB := e.args[1].number()
	if !okA || !okB {
		return 0, false
	}
	switch {
	case e.op == "+":
		return a + b, true
	case e.op == "-":
		return a - b, true
	case e.op == "*":
		return a * b, true
	case e.op == "%" && b != 0:
		return a % b, true
	case e.op == "<<" && b >= 0 && b < 63:
		return a << b, true
	}
	return 0, false
}

// draw recognizes nextval('sequence') % modulus, and the same as a mask.
func (e *expression) draw() (sequence string, modulus int64, ok bool) {
	if e.op != "%" && e.op != "&" && e.op != "mod" {
		return "", 0, false
	}
	n, ok := e.args[1].number()
	if !ok || e.args[0].op != "nextval" || e.args[0].args[0].op != "text" {
		return "", 0, false
	}
	if e.op == "&" {
		n++
	}
	return e.args[0].args[0].text, n, true
}

// clock recognizes floor(extract(epoch FROM clock_timestamp()) * rate).
func (e *expression) clock() (rate int64, ok bool) {
	if (e.op == "floor" || e.op == "trunc") && len(e.args) == 1 {
		e = e.args[0]
	}
	rate = 1
	if e.op == "*" {
		for i := range e.args {
			if n, ok := e.args[i].number(); ok {
				rate, e = n, e.args[1-i]
				break
			}
		}
	}
	return rate, e.op == "epoch" && rate > 0 && int64(time.Second)%rate == 0
}

// layout is the layout that the formula is one of.
func (g formula) layout() (firn.Layout, error) {
	type part struct {
		name  string
		shift int64
	}
	parts := []part{{"time", g.timeShift}, {"shard", g.shardShift}, {"seq", g.seqShift}}
	slices.SortFunc(parts, func(a, b part) int { return int(b.shift - a.shift) })
	var fields []string
	above := int64(64)
	for _, p := range parts {
		width := above - p.shift
		if p.name == "seq" && g.modulus != 1<<width {
			return firn.Layout{}, fmt.Errorf("the sequence is taken modulo %d, and has %d bits", g.modulus, width)
		}
		field := fmt.Sprintf("%s:%d", p.name, width)
		if p.name == "time" {
			field += "@" + (time.Second / time.Duration(g.rate)).String()
		}
		fields = append(fields, field)
		above = p.shift
	}
	if above != 0 {
		return firn.Layout{}, fmt.Errorf("the lowest %d bits are never used", above)
	}
	unit := int64(time.Second) / g.rate
	epoch := time.Unix(g.epoch/g.rate, g.epoch%g.rate*unit).UTC()
	return firn.ParseLayout(strings.Join(fields, ",") + ";epoch=" + epoch.Format(time.RFC3339Nano))
}
