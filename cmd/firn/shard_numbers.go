package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/topology"
)

// shardNumbers is the value of a flag that names shards: 17, or 0-9,12. None: all.
type shardNumbers struct{ ranges []shardRange }

// A shardRange is the shards from first to last.
type shardRange struct{ first, last int64 }

func (n *shardNumbers) Type() string { return "LIST" }

func (n *shardNumbers) String() string {
	texts := make([]string, len(n.ranges))
	for i, r := range n.ranges {
		texts[i] = strconv.FormatInt(r.first, 10)
		if r.last > r.first {
			texts[i] += "-" + strconv.FormatInt(r.last, 10)
		}
	}
	return strings.Join(texts, ",")
}

func (n *shardNumbers) Set(text string) error {
	n.ranges = nil
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		var r shardRange
		for _, end := range []struct {
			text string
			into *int64
		}{{first, &r.first}, {last, &r.last}} {
			v, err := strconv.ParseUint(end.text, 10, 31)
			if err != nil {
				return fmt.Errorf("%q is not the number of a shard, nor 0-9,12", text)
			}
			*end.into = int64(v)
		}
		if r.last < r.first {
			return fmt.Errorf("%q goes down", part)
		}
		n.ranges = append(n.ranges, r)
	}
	return nil
}

// has says whether a shard is meant.
func (n *shardNumbers) has(shard int64) bool {
	return len(n.ranges) == 0 || slices.ContainsFunc(n.ranges, func(r shardRange) bool { return r.first <= shard && shard <= r.last })
}

// beyond refuses numbers above the last shard of the cluster. Without that a command would do part of
// what was asked, and say nothing of the rest.
func (n *shardNumbers) beyond(m *topology.Map) error {
	last := m.Keys.Shards() - 1
	if len(m.Routes) > 0 { // ranges that were added are known to some servers before others
		last = max(last, m.Routes[len(m.Routes)-1].Shard)
	}
	var above shardNumbers
	for _, r := range n.ranges {
		if r.last > last {
			above.ranges = append(above.ranges, shardRange{max(r.first, last+1), r.last})
		}
	}
	if len(above.ranges) == 0 {
		return nil
	}
	return ui.Bad("there is no shard %s: the last shard is %d", &above, last).Hint("firn shard ls")
}

// unknown are the numbers that no server of a map knows, of those that it has a place for.
func (n *shardNumbers) unknown(m *topology.Map) (all []int64) {
	for number := range m.Keys.Shards() {
		if _, ok := m.Route(number); !ok && n.has(number) {
			all = append(all, number)
		}
	}
	return all
}
