package rebalance

import (
	"cmp"
	"fmt"
	"slices"
)

// Tolerance is the part of the mean load by which a server may lie above or below it
// without anything being moved.
const Tolerance = 0.05

// even returns moves after which the servers' loads are nearly equal: within
// [Tolerance] of the mean, or as near as whole shards allow. No shard is moved twice,
// and the difference between the most and the least loaded server does not grow. Bytes
// that are moved are few, not always the fewest: to find those is NP-hard. On small random
// cases they are about a quarter more.
//
// It returns an error where a shard is on none of the servers.
func even(servers []string, shards []Shard) ([]Move, error) {
	p, err := newSketch(servers, shards)
	if err != nil {
		return nil, err
	}
	mean := p.total() / float64(len(servers))
	for {
		from, to := p.most(), p.least()
		over, under := p.load[from]-mean, mean-p.load[to]
		if max(over, under) <= Tolerance*mean {
			return p.moves, nil
		}
		i := p.best(from, p.load[from]-p.load[to]-Tolerance*mean/2, min(over, under)+Tolerance*mean/2)
		if i < 0 {
			return p.moves, nil
		}
		p.move(i, to)
	}
}

// drain returns moves that empty a server: each of its shards, the heaviest first, to
// whichever of the others has the least to bear by then, and among equals the fewest bytes. It returns an error where there
// is no other, or a shard there is fixed.
func drain(servers []string, shards []Shard, server string) ([]Move, error) {
	p, err := newSketch(servers, shards)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(servers, server):
		return nil, fmt.Errorf("shard: there is no server %s", server)
	case len(servers) == 1:
		return nil, fmt.Errorf("shard: there is no other server than %s", server)
	}
	p.servers = slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return s == server })
	for i, s := range p.shards {
		switch {
		case s.Server == server && s.Fixed:
			return nil, fmt.Errorf("shard: shard %d stays on %s", s.Number, server)
		case s.Server == server:
			p.move(i, p.least())
		}
	}
	return p.moves, nil
}

// loadsAfter returns what each server bears after moves.
func loadsAfter(servers []string, shards []Shard, moves []Move) map[string]float64 {
	loads := map[string]float64{}
	for _, s := range servers {
		loads[s] = 0
	}
	for _, s := range shards {
		loads[s.Server] += s.Load
	}
	for _, m := range moves {
		loads[m.Server] -= m.Load
		loads[m.To] += m.Load
	}
	return loads
}

// A sketch is what was decided so far.
type sketch struct {
	servers []string
	shards  []Shard // the heaviest first
	moved   []bool
	load    map[string]float64
	bytes   map[string]int64
	moves   []Move
}

func newSketch(servers []string, shards []Shard) (*sketch, error) {
	if len(servers) == 0 {
		return nil, fmt.Errorf("shard: there is no server")
	}
	for _, s := range shards {
		if !slices.Contains(servers, s.Server) {
			return nil, fmt.Errorf("shard: shard %d is on %s, which is none of the servers", s.Number, s.Server)
		}
	}
	p := &sketch{servers: servers, shards: slices.Clone(shards), moved: make([]bool, len(shards)), load: loadsAfter(servers, shards, nil), bytes: make(map[string]int64)}
	for _, s := range shards {
		p.bytes[s.Server] += s.Bytes
	}
	slices.SortFunc(p.shards, func(a, b Shard) int {
		return cmp.Or(cmp.Compare(b.Load, a.Load), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Number, b.Number))
	})
	return p, nil
}

func (p *sketch) total() float64 {
	sum := 0.0
	for _, s := range p.servers {
		sum += p.load[s]
	}
	return sum
}

func (p *sketch) most() string {
	return slices.MaxFunc(p.servers, func(a, b string) int { return cmp.Compare(p.load[a], p.load[b]) })
}

func (p *sketch) least() string {
	return slices.MinFunc(p.servers, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.load[a], p.load[b]), cmp.Compare(p.bytes[a], p.bytes[b]))
	})
}

// best is the shard of a server to move, or -1. One that fits into what both sides lack,
// and a little more, since loads are measured, is the better the more load it carries for
// its bytes; where none fits, the lightest is taken, if it is below a limit: else the
// servers would only change places.
func (p *sketch) best(from string, limit, lack float64) int {
	fits, light := -1, -1
	for i, s := range p.shards {
		switch {
		case p.moved[i] || s.Fixed || s.Server != from || s.Load <= 0:
		case s.Load > lack:
			if s.Load < limit {
				light = i // they become lighter
			}
		case fits < 0 || perByte(s) > perByte(p.shards[fits]):
			fits = i
		}
	}
	if fits >= 0 {
		return fits
	}
	return light
}

func perByte(s Shard) float64 { return s.Load / float64(max(s.Bytes, 1)) }

func (p *sketch) move(i int, to string) {
	s := p.shards[i]
	p.moved[i] = true
	p.load[s.Server] -= s.Load
	p.load[to] += s.Load
	p.bytes[s.Server] -= s.Bytes
	p.bytes[to] += s.Bytes
	p.moves = append(p.moves, Move{s, to})
}
