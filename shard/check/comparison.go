package check

import (
	"cmp"
	"fmt"
	"strings"
)

// A Comparison says in how many rows two copies of a shard differ. Zero means that they are alike.
type Comparison struct {
	First, Second int64    // rows that only the first, and only the second copy has
	Differ        int64    // rows that have one key and are not alike
	Unlike        []string // tables whose columns are not alike: nobody compared their rows
	Example       string   // the table and key of a row that only the second copy has, or that differs; empty: none of a table with a key
}

// Lacks reports whether the second copy has anything that the first one lacks.
func (c Comparison) Lacks() bool { return c.Second > 0 || c.Differ > 0 || len(c.Unlike) > 0 }

// Swapped is the comparison of the second copy with the first.
func (c Comparison) Swapped() Comparison {
	c.First, c.Second = c.Second, c.First
	return c
}

// Text says what the second copy has that the first one lacks.
func (c Comparison) Text() string {
	var all []string
	for _, part := range []struct {
		n    int64
		text string
	}{{c.Second, ""}, {c.Differ, " with another content"}} {
		switch {
		case part.n == 1:
			all = append(all, "1 row"+part.text)
		case part.n > 1:
			all = append(all, fmt.Sprintf("%d rows%s", part.n, part.text))
		}
	}
	if len(c.Unlike) > 0 {
		all = append(all, "tables whose rows were not compared, as their columns differ ("+strings.Join(c.Unlike, ", ")+")")
	}
	return cmp.Or(strings.Join(all, " and "), "no row")
}
