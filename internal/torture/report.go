//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/firn-id/firn/internal/torture/siege"
)

// printOutcome prints what came of a siege, for people.
func printOutcome(out io.Writer, o *siege.Outcome) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(out, "  %-14s"+format+"\n", append([]any{label}, args...)...)
	}
	fmt.Fprintf(out, "%s: %s of %s and %s in %s, %s\n", o.Store, several(o.Repeats, "repeat"),
		several(o.IDs, "id"), several(o.Numbers, "number"), o.Lasted.Round(time.Second), o.Begun.Format(time.RFC3339))
	line("again", "%s", o.Command)
	who := several(int64(o.Processes), "process")
	if o.Terms > 0 { // what a store grants that forgets is not looked at
		who += fmt.Sprintf(", %s in %s", several(o.Workers, "worker"), several(o.Terms, "term"))
	}
	line("issued by", "%s", who)
	if o.Longest > 0 { // and nothing else was harmed meanwhile
		line("store away", "alone for %s at most; for %s at most while no call failed", o.Longest.Round(time.Millisecond), o.Survived.Round(time.Millisecond))
		line("", "calls failed in %s", several(int64(o.Beyond), "outage"))
	}
	line("pairs", "%s", met(o.Pairs))
	line("order", "%s", disorder(o.Order))
	line("clocks agree", "%s", disorder(o.Agreed))
	for i, command := range often(o.Typed) {
		line([]string{"hints typed", ""}[min(i, 1)], "%s, %s", command, several(int64(o.Typed[command]), "time"))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  FAULT\tTIMES\tALONE\tWELL AGAIN AFTER, MEDIAN\tWORST")
	for _, name := range often(o.Harms) {
		r := o.Recovery[name]
		fmt.Fprintf(w, "  %s\t%d\t%s\n", name, o.Harms[name], recovery(r))
	}
	fmt.Fprintf(w, "  %s\t\t%s\n", siege.Several, recovery(o.Recovery[siege.Several]))
	w.Flush()
	for i, key := range o.Stays {
		line([]string{"stays there", ""}[min(i, 1)], "%s", key)
	}
	for _, p := range o.Problems {
		fmt.Fprintln(out, "  PROBLEM ", p)
	}
	fmt.Fprintln(out)
}

// met says how many pairs of harms met, and names the first that did not.
func met(p siege.Pairs) string {
	const most = 5
	text := fmt.Sprintf("%d of %d pairs of faults met", p.Met, p.Of)
	if n := len(p.NotMet); n > most {
		return fmt.Sprintf("%s; not met: %s and %d more (--json lists all)", text, strings.Join(p.NotMet[:most], ", "), n-most)
	} else if n > 0 {
		return text + "; not met: " + strings.Join(p.NotMet, ", ")
	}
	return text
}

// often sorts names by how often they came.
func often(times map[string]int) []string {
	return slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b))
	})
}

func recovery(r siege.Recovery) string {
	if r.Times == 0 {
		return "0\t\t"
	}
	return fmt.Sprintf("%d\t%s\t%s", r.Times, r.Median.Round(time.Millisecond), r.Worst.Round(time.Millisecond))
}

// disorder says how many ids have an earlier time than one that another worker had issued
// before them.
func disorder(o siege.Order) string {
	text := fmt.Sprintf("%s of %s behind another worker's", count(o.Late), count(o.Compared))
	if o.Median > 0 {
		text += fmt.Sprintf(", median %s", o.Median.Round(time.Millisecond))
	}
	if o.Late > 0 {
		text += fmt.Sprintf(", worst %s", o.Worst.Round(time.Millisecond))
	}
	return text
}

// several writes how many there are of something.
func several(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return count(n) + " " + what + "es"
	}
	return count(n) + " " + what + "s"
}

// count writes a number with commas.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
