package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// This file types commands of firn, as a person does after a move that failed: the command of the move
// again, and then what the hints of its error say.

// commands are those of a hint. What claims something that nobody knows here is not typed. What drops rows of a
// copy is: if one of them was of use, the comparison finds that it is lost.
var (
	commands = regexp.MustCompile(`(firn shard (?:move [\d,-]+ --to [ab]|(?:revert|abort) [\d,-]*\d|finish [\d,-]*\d(?: --drop-rows-of [ab])?|reopen [ab](?: --shards [\d,-]*\d)?|doctor(?: --clean)?|status)\b)((?: --[a-z-]+(?: '[^']*'| [^-\s;,.][^\s;,.]*)?)*)`)
	claims   = regexp.MustCompile(` --(incomplete|gone)`)
	// Of a source whose synchronous standby took its place this program does know: all acknowledged rows are there. The
	// copy may have others, because a server sends what it has committed before its standby has it.
	complete = regexp.MustCompile(`firn shard reopen a --shards [\d,-]*\d --incomplete\b`)
)

// build makes the command firn, once.
func (w *world) build(ctx context.Context) error {
	if w.program != "" {
		return nil
	}
	dir, err := testserver.MakeDir("moves")
	if err != nil {
		return err
	}
	w.tb.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "firn")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/firn-id/firn/cmd/firn").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build firn: %w: %s", err, out)
	}
	w.program = path
	return nil
}

// typed runs a command, with the servers' addresses.
func (w *world) typed(ctx context.Context, line string) (said string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	args := strings.Fields(line)[1:]
	for _, name := range []string{"a", "b"} {
		args = append(args, "--server", name+"="+w.urls[name])
		if address := w.addresses[name]; address != "" && slices.Contains([]string{"move", "revert"}, args[1]) {
			args = append(args, "--address", name+"="+address)
		}
	}
	if slices.Contains([]string{"finish", "reopen"}, args[1]) {
		args = append(args, "--yes")
	}
	cmd := exec.CommandContext(ctx, w.program, args...)
	cmd.Dir = filepath.Dir(w.program)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// lineOf is the command that does something with a shard.
func lineOf(do string, n int64) string {
	if do == "move" {
		return fmt.Sprintf("firn shard move %d --to b", n)
	}
	return fmt.Sprintf("firn shard %s %d", do, n)
}

// follow types the command, and what the hints say, until the command succeeds.
func (w *world) follow(ctx context.Context, do string, n int64, o *outcome) error {
	if err := w.build(ctx); err != nil {
		return err
	}
	first := lineOf(do, n)
	line, said, all := first, "", ""
	var since []string // typed since one worked
	for range 20 {
		since = append(since, line)
		o.Typed = append(o.Typed, line)
		var ok bool
		if said, ok = w.typed(ctx, line); ok && line == first {
			return nil
		}
		all += fmt.Sprintf("$ %s\n%s", line, said)
		asks := strings.HasSuffix(line, "status") || strings.HasSuffix(line, "doctor")
		if ok && !asks {
			since = nil
		}
		next := hinted(said, since)
		if known := complete.FindString(said); o.Promoted == "a" && known != "" && !slices.Contains(since, known) {
			next = known
		}
		switch {
		case next != "" && (!ok || asks):
			line = next
		case !ok && line == first:
			time.Sleep(time.Second) // a server may be starting
		default:
			line = first
		}
	}
	return fmt.Errorf("the hints lead nowhere:\n%s", all)
}

// hinted is the command to type next, or empty.
func hinted(said string, typed []string) string {
	for _, found := range commands.FindAllStringSubmatch(said, -1) {
		if line, flags := found[1], found[2]; !claims.MatchString(flags) && !slices.Contains(typed, line) {
			return line
		}
	}
	return ""
}
