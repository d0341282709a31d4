package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
)

// This file says what to do where a sequence has come to its max. A counter keeps the max that it
// was created with, so larger numbers are those of another series, which begins above it.

// hintEnd says how to draw what is left, and how to have numbers above the max.
func (d *drawing) hintEnd(f *ui.Failure, e *sequence.EndError) *ui.Failure {
	if e.Left > 0 {
		f.HintFlag("count", "-n %d prints what is left", e.Left)
	}
	if e.Max == math.MaxInt64 {
		return f
	}
	next, first := successor(d.Name), e.Max+1
	const why = "a sequence keeps its max. For numbers above it, where your columns have room for them, "
	if d.Listed {
		return f.Hint(why+"list another series in firn.yaml, such as %s, with the settings of %s but first: %d, and a larger max or none; then: firn series create %[1]s", phrase.ShellWord(next), d.Name, first)
	}
	lossy := ""
	if d.Options.Sequence.MayRepeat {
		lossy = " --on-lossy-store may-repeat"
	}
	return f.Hint(why+"create another series with the other settings of %s (to see them: firn series show %s), and draw from that: firn series create %s --kind sequence --first %d%s",
		d.Name, phrase.ShellWord(d.Name), phrase.ShellWord(next), first, lossy)
}

var numbered = regexp.MustCompile(`^(.*)-([1-9][0-9]{0,8})$`)

// successor is a name for the series that continues where one has ended.
func successor(name string) string {
	if m := numbered.FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[2])
		return fmt.Sprintf("%s-%d", m[1], n+1)
	}
	return name + "-2"
}
