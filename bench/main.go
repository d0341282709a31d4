// Command bench compares firn with other generators of ids, and with the least
// that an id can cost: one reading of the monotonic clock and one atomic add.
//
// It makes what it compares take turns, round by round in one process, so that
// whatever else the machine does meets all of them; it counts the processor time
// of the process, which says how much work an id is even while others have the
// processor; and it prints medians of ratios within a round.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/firn-id/firn/bench/figures"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 15, "how often everything is run, 0 for the ceiling alone")
	ids := flag.Int("ids", 1_000_000, "ids in a round; what is slow makes a part of them")
	only := flag.String("only", "", "compare only what matches this regular expression, and what it is compared with")
	ceiling := flag.Duration("ceiling", 10*time.Second, "how long to stay at the layout's ceiling each of three times, 0 for not at all")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if flag.NArg() > 0 || *rounds < 0 || *ids < 1000 {
		return fmt.Errorf("usage: bench [-rounds N] [-ids N, at least 1000] [-only REGEXP] [-ceiling DURATION] [-json]")
	}

	defer cancel()
	r := report{Machine: figures.ThisMachine(), Rounds: *rounds, IDs: *ids, Stay: ceiling.String()}
	if *rounds > 0 {
		all, done, err := contenders()
		if err != nil {
			return err
		}
		r.Rows = compare(choose(all, match), *rounds, *ids)
		if err := done(); err != nil {
			return err
		}
	}
	if *ceiling > 0 {
		if r.Ceiling, err = atCeiling(*ceiling, match); err != nil {
			return err
		}
	}
	if *asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.print(os.Stdout)
}

// choose keeps what matches, and in each group what the others are compared with.
func choose(all []contender, match *regexp.Regexp) []contender {
	keep := map[string]bool{}
	for _, c := range all {
		if match.MatchString(c.name) {
			keep[c.group] = true
		}
	}
	var chosen []contender
	for _, c := range all {
		if keep[c.group] && (match.MatchString(c.name) || c.role != "") {
			chosen = append(chosen, c)
		}
	}
	return chosen
}
