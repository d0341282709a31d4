//go:build linux

package siege

import (
	"math/rand/v2"
	"slices"
)

// A part is what a harm is done to.
type part string

const (
	aProcess    part = ""
	theServer   part = "the server"
	connections part = "new connections"
	allBytes    part = "all bytes"
	requests    part = "requests"
	replies     part = "replies"
	fileLock    part = "the lock of the file"
	wholeStore  part = "the whole store"
)

// exclusive says for each part why two harms to it never overlap. Two harms to processes
// overlap, and so do harms to different parts, but for one to the whole store: it overlaps
// harms to processes only. Losses are no harms: a loss ends the grants of all processes,
// so a siege has each of them alone.
var exclusive = map[part]string{
	theServer:   "a server that is dead cannot be killed or frozen, and a frozen one that is killed is a dead one",
	connections: "connections are refused already",
	allBytes:    "no byte passes already",
	requests:    "the proxy counts the requests that it still has to lose: a second harm is a higher count",
	replies:     "the proxy counts the replies that it still has to lose: a second harm is a higher count",
	fileLock:    "a SQLite file has one lock",
	wholeStore:  "the harm stops, replaces or promotes servers itself, and nobody may reach the store meanwhile",
}

// overlap reports whether one harm can strike while the other lasts.
func overlap(a, b *harm) bool {
	switch {
	case a.part == aProcess || b.part == aProcess:
		return true
	case a.part == wholeStore || b.part == wholeStore:
		return false
	}
	return a.part != b.part
}

// A pair is the names of two harms, in the order of the alphabet. Two of one name are a
// pair where both are done to processes.
type pair [2]string

func pairOf(a, b string) pair { return pair{min(a, b), max(a, b)} }

func (p pair) String() string { return p[0] + " + " + p[1] }

// A deck is what is done to a store: the harms one at a time, and those that can overlap
// in pairs. What was done less often comes first.
type deck struct {
	harms []harm
	alone []harm       // those that come alone before any comes alone again
	all   []pair       // those that can overlap
	met   map[pair]int // how often each of them did
}

func newDeck(harms []harm) *deck {
	d := &deck{harms: harms, met: map[pair]int{}}
	for i := range harms {
		for j := range harms[:i+1] {
			if overlap(&harms[i], &harms[j]) {
				d.all = append(d.all, pairOf(harms[i].name, harms[j].name))
			}
		}
	}
	return d
}

// deal returns the harms of a round: one, so that it is known what the processes recover
// from, or four to six that overlap.
func (d *deck) deal(random *rand.Rand) []harm {
	if len(d.all) == 0 || random.IntN(4) == 0 {
		return []harm{d.one(random)}
	}
	return d.several(random, 4+random.IntN(3))
}

func (d *deck) one(random *rand.Rand) harm {
	if len(d.alone) == 0 {
		d.alone = slices.Clone(d.harms)
		random.Shuffle(len(d.alone), func(i, j int) { d.alone[i], d.alone[j] = d.alone[j], d.alone[i] })
	}
	h := d.alone[0]
	d.alone = d.alone[1:]
	return h
}

// several returns harms that can all overlap, n or fewer: a pair that met least often, those
// that complete the most of such pairs, and where none completes one, another such pair.
func (d *deck) several(random *rand.Rand, n int) (harms []harm) {
	least := d.least()
	random.Shuffle(len(least), func(i, j int) { least[i], least[j] = least[j], least[i] })
	order := random.Perm(len(d.harms))
	for len(harms) < n {
		more := d.completes(harms, order, least)
		if more == nil && len(harms)+2 <= n {
			more = d.another(harms, least)
		}
		if more == nil {
			break
		}
		harms = append(harms, more...)
	}
	// One that waits until all are well comes before the others.
	slices.SortStableFunc(harms, func(a, b harm) int {
		switch {
		case a.first == b.first:
			return 0
		case a.first:
			return -1
		}
		return 1
	})
	return harms
}

// completes returns the harm that makes the most of the wanted pairs with others, or nil.
func (d *deck) completes(others []harm, order []int, wanted []pair) []harm {
	best, most := -1, 0
	for _, i := range order {
		if gain := d.gain(others, &d.harms[i], wanted); gain > most {
			best, most = i, gain
		}
	}
	if best < 0 {
		return nil
	}
	return []harm{d.harms[best]}
}

// another returns the first of the wanted pairs that can overlap others and has not met
// among them, or nil.
func (d *deck) another(others []harm, wanted []pair) []harm {
	made := pairsOf(others)
	for _, p := range wanted {
		a, b := d.named(p[0]), d.named(p[1])
		if !made[p] && d.gain(others, a, nil) >= 0 && d.gain(others, b, nil) >= 0 {
			return []harm{*a, *b}
		}
	}
	return nil
}

func (d *deck) named(name string) *harm {
	return &d.harms[slices.IndexFunc(d.harms, func(h harm) bool { return h.name == name })]
}

// pairsOf returns the pairs of harms that overlap.
func pairsOf(harms []harm) map[pair]bool {
	made := map[pair]bool{}
	for i := range harms {
		for j := range i {
			made[pairOf(harms[i].name, harms[j].name)] = true
		}
	}
	return made
}

// least returns the pairs that met least often.
func (d *deck) least() (least []pair) {
	fewest := d.met[d.all[0]]
	for _, p := range d.all {
		fewest = min(fewest, d.met[p])
	}
	for _, p := range d.all {
		if d.met[p] == fewest {
			least = append(least, p)
		}
	}
	return least
}

// gain is how many of the wanted pairs a harm adds to others; -1 where it cannot overlap
// one of them.
func (d *deck) gain(others []harm, h *harm, wanted []pair) (n int) {
	for i := range others {
		if !overlap(&others[i], h) {
			return -1
		}
	}
	made := pairsOf(others)
	for i := range others {
		p := pairOf(others[i].name, h.name)
		if !made[p] && slices.Contains(wanted, p) {
			made[p] = true
			n++
		}
	}
	return n
}

// strikes notes that a harm is done while others last.
func (d *deck) strikes(name string, lasting []string) {
	for _, other := range lasting {
		d.met[pairOf(name, other)]++
	}
}

// Pairs says which harms met: one struck while the other lasted.
type Pairs struct {
	Met    int      `json:"met"`
	Of     int      `json:"of"` // how many can meet
	NotMet []string `json:"not_met"`
}

func (d *deck) pairs() Pairs {
	p := Pairs{Of: len(d.all), NotMet: []string{}}
	for _, q := range d.all {
		if d.met[q] > 0 {
			p.Met++
		} else {
			p.NotMet = append(p.NotMet, q.String())
		}
	}
	return p
}

// add adds the pairs of a store.
func (p *Pairs) add(store string, other Pairs) {
	p.Met, p.Of = p.Met+other.Met, p.Of+other.Of
	for _, text := range other.NotMet {
		p.NotMet = append(p.NotMet, store+": "+text)
	}
}
