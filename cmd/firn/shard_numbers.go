package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
