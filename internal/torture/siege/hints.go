//go:build linux

package siege

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/torture/ledger"
)

// An operator types what the errors of the command say, word by word, until ids are drawn
// or start later. An operator states nothing that is not so: not that a pool that was lost
// never existed, and not that a store that was lost was moved.
type operator struct {
	tb      testing.TB
	url     string           // of the store
	home    string           // of whoever types: a directory that was empty
	choose  func(n int) int  // which of n commands is typed
	stop    func()           // stops all processes, where a hint says so
	numbers func() int64     // more than a series has given out
	drew    func(ids Issuer) // what the commands draw
	lies    bool             // the fault: states that a lost pool never existed

	typed []string
	most  int // of how many commands one was chosen, at most
}

// draws is what an operator types to see whether all is well. It draws so many that a
// holder of the same worker would repeat some of them.
const draws = "firn next -n 100000"

// wrote is what a command wrote.
type wrote struct {
	out, errs string
	code      int
}

// follow types a command, and then what the hints of its error say, until ids are drawn or
// start later.
func (o *operator) follow(line string) {
	o.tb.Helper()
	for range 20 {
		r := o.types(line)
		switch {
		case r.code == 0 && line == draws, strings.Contains(r.errs, "--wait"):
			return
		case r.code == 0:
			line = draws
			continue
		}
		if path := removable.FindStringSubmatch(r.errs); path != nil {
			o.typed = append(o.typed, "rm "+path[1])
			if err := os.Remove(path[1]); err != nil {
				o.tb.Fatal(err)
			}
			continue
		}
		all := o.hinted(line, r.errs)
		if len(all) == 0 {
			o.tb.Errorf("the hints lead nowhere: typed %q; the last ended with %d: %s", o.typed, r.code, r.errs)
			return
		}
		o.most = max(o.most, len(all))
		line = all[min(o.choose(len(all)), len(all)-1)]
	}
	o.tb.Errorf("the hints go in a circle: typed %q", o.typed)
}

var (
	// commands are what a hint says to type, in its order. A file may be removed before one.
	commands = regexp.MustCompile(`(?:rm \S+; )?firn (?:pool|store)(?: [^\s;,.()]+(?:\.[^\s;,()]+)*)+`)

	// lostSeries is what a hint says to type of a series that was lost.
	lostSeries = regexp.MustCompile(`firn series create \S+ --kind sequence --first N`)

	// removable is a file that an error has removed.
	removable = regexp.MustCompile(`(/\S+?):? (?:.*remove it if nobody needs it|is beside the file, and may be another file's: .*remove it)`)

	// numbersIn is where a command leaves to a person how many numbers to leave out.
	numbersIn = regexp.MustCompile(`--numbers (\S+=)?N\b`)

	// claims are flags that state what is not so here.
	claims = regexp.MustCompile(`--(new|moved|gone|may-repeat)\b`)
)

// hinted returns the commands of the hints in what a command printed, those first that were
// not typed yet. A hint that begins with a flag is about the same command.
func (o *operator) hinted(line, errs string) (all []string) {
	if o.lies && strings.Contains(errs, "no pool") {
		return []string{"firn pool create default --new"}
	}
	for text := range strings.Lines(errs) {
		_, hint, ok := strings.Cut(text, "hint: ")
		if !ok {
			continue
		}
		if strings.HasPrefix(hint, "--numbers N") {
			return []string{fmt.Sprintf("%s --numbers %d", line, o.numbers())}
		}
		for _, command := range commands.FindAllString(hint, -1) {
			if numbersIn.MatchString(command) {
				command = numbersIn.ReplaceAllString(command, fmt.Sprintf("--numbers ${1}%d", o.numbers()))
			}
			if !claims.MatchString(command) {
				all = append(all, stops(hint)+strings.TrimSpace(command))
			}
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(o.typed, c) })
	if len(fresh) > 0 {
		return fresh
	}
	return all
}

// stopAll stands before a command that is to be typed when all processes are stopped.
const stopAll = "stop all; "

func stops(hint string) string {
	if strings.Contains(hint, "stop all") {
		return stopAll
	}
	return ""
}

// types runs a command of a hint.
func (o *operator) types(line string) wrote {
	o.tb.Helper()
	o.typed = append(o.typed, line)
	line, stop := strings.CutPrefix(line, stopAll)
	if stop {
		o.stop()
	}
	if text, ok := strings.CutPrefix(line, "rm "); ok {
		path, rest, _ := strings.Cut(text, "; ")
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			o.tb.Fatal(err)
		}
		line = rest
	}
	args := strings.Fields(strings.ReplaceAll(line, "'", ""))[1:]
	if i := slices.Index(args, "URL"); i > 0 { // a hint shows no password
		args[i] = o.url
	}
	if !slices.Contains(args, "--store") {
		args = append(args, "--store", o.url)
	}
	r := o.runs(args...)
	if args[0] == "next" {
		runs, err := parse(strings.NewReader(r.out))
		if err != nil {
			o.tb.Errorf("%q: %v", args, err)
		}
		who := Issuer{Name: fmt.Sprintf("operator, command %d", len(o.typed))}
		if line == draws {
			who.Hands = [][]ledger.Run{runs}
		} else {
			who.Numbers = runs
		}
		o.drew(who)
	}
	return r
}

// runs runs the command.
func (o *operator) runs(args ...string) (r wrote) {
	o.tb.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program(o.tb, "firn"), args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &errs, ownGroup()
	cmd.Env = append(os.Environ(), "HOME="+o.home, "XDG_STATE_HOME=")
	if err := cmd.Run(); err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0) {
		o.tb.Errorf("%s: %v\n%s", cmd, err, errs.String())
		return wrote{out.String(), errs.String(), -1}
	}
	return wrote{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// starts is when the pool's ids start, as the command says; ok is false where there is no
// pool.
func (o *operator) starts() (at time.Time, ok bool) {
	o.tb.Helper()
	r := o.runs("pool", "show", "--json", "--store", o.url)
	if r.code != 0 {
		return at, false
	}
	var line struct {
		StartsAt time.Time `json:"starts_at"`
	}
	if err := json.Unmarshal([]byte(r.out), &line); err != nil {
		o.tb.Fatal(err)
	}
	return line.StartsAt, true
}

// drawsFrom draws from the series, and begins it again if it was lost, as the hint says: above
// all numbers that it gave out.
func (o *operator) drawsFrom(series string) {
	o.tb.Helper()
	line := "firn next " + series + " --kind sequence" // without a kind a lost name is taken for one of ids
	r := o.types(line)
	if lost := lostSeries.FindString(r.errs); lost != "" {
		o.types(strings.TrimSuffix(lost, "N") + strconv.FormatInt(o.numbers(), 10))
		r = o.types(line)
	}
	if r.code != 0 {
		o.tb.Errorf("typed %q; the last ended with %d: %s", o.typed, r.code, r.errs)
	}
}
