//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/firn-id/firn/internal/torture/siege"
)

// printOutcome prints what came of a siege, for people.
func printOutcome(out io.Writer, o *siege.Outcome) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tseed %d, %s\n", o.Store, o.Seed, o.Lasted.Round(time.Second))
	fmt.Fprintf(w, "  issued\t%s ids and %s numbers, by %s processes", count(o.IDs), count(o.Numbers), count(int64(o.Processes)))
	if o.Terms > 0 { // what a store grants that forgets is not looked at
		fmt.Fprintf(w, " with %s workers in %s terms", count(o.Workers), count(o.Terms))
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "  repeats\t%s\n", count(o.Repeats))
	fmt.Fprintf(w, "  store away\tfor %s at most, and for %s while no call failed; calls failed %d times, and succeeded again\n",
		o.Longest.Round(time.Millisecond), o.Survived.Round(time.Millisecond), o.Beyond)
	fmt.Fprintf(w, "  order\t%s\n", disorder(o.Order))
	fmt.Fprintf(w, "    where clocks agree\t%s\n", disorder(o.Agreed))
	fmt.Fprintln(w, "  FAULT\tTIMES\tALONE\tWELL AGAIN AFTER, MEDIAN\tWORST")
	harms := slices.SortedFunc(maps.Keys(o.Harms), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.Harms[b], o.Harms[a]), cmp.Compare(a, b))
	})
	for _, name := range harms {
		r := o.Recovery[name]
		fmt.Fprintf(w, "  %s\t%d\t%s\n", name, o.Harms[name], recovery(r))
	}
	fmt.Fprintf(w, "  %s\t\t%s\n", siege.Several, recovery(o.Recovery[siege.Several]))
	w.Flush()
	for _, p := range o.Problems {
		fmt.Fprintln(out, "  PROBLEM ", p)
	}
	fmt.Fprintln(out)
}

func recovery(r siege.Recovery) string {
	if r.Times == 0 {
		return "0\t\t"
	}
	return fmt.Sprintf("%d\t%s\t%s", r.Times, r.Median.Round(time.Millisecond), r.Worst.Round(time.Millisecond))
}

func disorder(o siege.Order) string {
	if o.Late == 0 {
		return fmt.Sprintf("none of %s ids compared is behind one of another worker that was issued before it", count(o.Compared))
	}
	text := fmt.Sprintf("%s of %s ids compared are behind one of another worker that was issued before them, by %s at most",
		count(o.Late), count(o.Compared), o.Worst.Round(time.Millisecond))
	if o.Median > 0 {
		text += ", " + o.Median.Round(time.Millisecond).String() + " in the median"
	}
	return text
}

// count writes a number with commas.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
