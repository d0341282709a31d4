package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
)

// This file composes hints. People type what a hint says, so each firn command in one has
// to mean the store, the pool and the config of the command that has failed. A command in a
// hint ends where the line does, at a parenthesis, or at one of ",;:.?" with a space after it.

// A hinter composes the hints of a command. Without one they stay as they are.
type hinter struct {
	cmd   *cobra.Command
	other bool // what the command says of its series is not true of the series of the hint
}

// lines are the hints of an error.
func (h hinter) lines(f *ui.Failure) []string {
	var all []string
	for _, one := range f.Hints {
		text := one.Text
		if h.cmd != nil && one.Flag != "" && flagOf(h.cmd, one.Flag) == nil {
			continue
		}
		if one.Script != "" && h.cmd != nil && ui.PersonAt(h.cmd) == nil {
			text = one.Script
		}
		if !one.Guess {
			text = hinter{h.cmd, one.OtherKind}.compose(text)
		}
		all = append(all, text)
	}
	return all
}

// line is all hints of an error in one line.
func (h hinter) line(f *ui.Failure) string { return strings.Join(h.lines(f), "; ") }

// mention finds what may be a command of firn's.
var mention = regexp.MustCompile(`\bfirn [a-z]`)

// composing is held while a hint is composed: looking through commands and flags sorts
// them, and a server composes hints in many goroutines.
var composing sync.Mutex

// compose completes the commands of a text.
func (h hinter) compose(text string) string {
	if h.cmd == nil {
		return text
	}
	composing.Lock()
	defer composing.Unlock()
	var b strings.Builder
	masked := false
	for rest := h.otherAddresses(h.addresses(text)); ; {
		at := mention.FindStringIndex(rest)
		if at == nil {
			b.WriteString(h.settings(rest))
			break
		}
		to, path := commandAt(h.cmd.Root(), rest[at[0]:])
		begin, end := at[0], at[0]+path
		b.WriteString(h.settings(rest[:begin]))
		if to == nil {
			b.WriteString(rest[begin:at[1]])
			rest = rest[at[1]:]
			continue
		}
		args := rest[end : end+commandEnd(rest[end:])]
		flags, hides := h.repeated(to, args)
		masked = masked || hides
		outage, said := h.outage(to, args+flags)
		flags += said
		args, behind, stop := strings.Cut(args, " -- ")
		if stop {
			behind = " -- " + behind
		}
		b.WriteString(rest[begin:end] + args + flags + behind)
		rest = rest[end+len(args)+len(behind):]
		if outage > 0 {
			next := len(rest)
			if at := mention.FindStringIndex(rest); at != nil {
				next = at[0]
			}
			rest = remedy.Outage(rest[:next], outage) + rest[next:]
		}
	}
	if !masked {
		return b.String()
	}
	line := strings.TrimRight(b.String(), "\n") // a text of whole lines stays one
	return line + remedy.MaskedNote + b.String()[len(line):]
}

// commandAt returns the command whose path a text begins with, and how long that is; nil
// for what only groups others, and for prose.
func commandAt(root *cobra.Command, text string) (to *cobra.Command, length int) {
	to, length = root, len("firn")
	for {
		word := commandWord.FindString(text[length:])
		i := slices.IndexFunc(to.Commands(), func(c *cobra.Command) bool { return word != "" && (c.Name() == word[1:] || c.HasAlias(word[1:])) })
		if i < 0 {
			break
		}
		to, length = to.Commands()[i], length+len(word)
	}
	if to == root || to.HasSubCommands() && to.Name() != "serve" {
		return nil, 0
	}
	return to, length
}

var commandWord = regexp.MustCompile(`^ [a-z][a-z-]*`)

// commandEnd is where the arguments end that a text begins with.
func commandEnd(text string) int {
	quote := rune(0)
	for i, c := range text {
		behind := text[i+len(string(c)):]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ')', c == '\n', strings.HasPrefix(text[i:], " ("), strings.HasPrefix(text[i:], " > "),
			strings.ContainsRune(",;:.?", c) && (behind == "" || behind[0] == ' '):
			return i
		}
	}
	return len(text)
}

// repeated are the flags that a command is to have besides those that the hint says, and
// whether one of them is not shown as it was given.
func (h hinter) repeated(to *cobra.Command, args string) (flags string, masked bool) {
	if strings.Contains(args, "--help") {
		return "", false
	}
	another := h.other || h.anotherSeries(args)
	h.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ofSeries := f.Value.(*seriesFlag); ofSeries && another {
			return
		}
		if !h.repeats(f, to) || strings.Contains(args+" ", " --"+f.Name+" ") {
			return
		}
		for _, value := range h.values(f) {
			if f.Name == "server" && strings.Contains(args, " --clean") && h.isGone(value) {
				continue // what is left is removed from the servers that are there
			}
			if f.Name == "config" && strings.Contains(args, phrase.ShellWord(value)) {
				continue // the config to check
			}
			shown := value
			if isAddress(f) {
				shown = remedy.WithoutPassword(value)
			}
			masked = masked || shown != value
			flags += " --" + f.Name + " " + phrase.ShellWord(shown)
		}
	})
	if to.Name() == "create" && to.Parent().Name() == "pool" && !strings.Contains(args, "--new") && ui.PersonAt(h.cmd) == nil {
		flags += " --new"
	}
	return flags, masked
}

// isGone reports whether a value of --server is that of a server which --gone names.
func (h hinter) isGone(value string) bool {
	gone := h.cmd.Flags().Lookup("gone")
	if gone == nil {
		return false
	}
	name, _, _ := strings.Cut(value, "=")
	return slices.Contains(h.values(gone), name)
}

// anotherSeries reports whether the arguments of a hint's command name another series than the command
// that has failed. What that one said of its series is not true of the other.
func (h hinter) anotherSeries(args string) bool {
	mine := h.cmd.Flags().Args()
	name, _, _ := strings.Cut(strings.TrimPrefix(args, " "), " ")
	return len(mine) > 0 && name != "" && !strings.HasPrefix(name, "-") && name != phrase.ShellWord(mine[0])
}

// outage returns the outage budget above 5 min that a command which makes a pool or a store safe
// has among its arguments, or that it is to have by the settings, with the flag for it. A log is
// read where other variables are set, so the hint says it. Zero: it has none.
func (h hinter) outage(to *cobra.Command, args string) (outage time.Duration, flag string) {
	safe := to.Name() == "recover" && to.Parent().Name() == "store" || to.Name() == "ensure" && to.Parent().Name() == "pool"
	if !safe {
		return 0, ""
	}
	if _, said, ok := strings.Cut(args, " --outage "); ok {
		said, _, _ = strings.Cut(said, " ")
		outage, err := time.ParseDuration(said)
		if err != nil || outage <= pool.DefaultOutage {
			return 0, ""
		}
		return outage, ""
	}
	set, err := loadSettings(h.cmd)
	if err != nil {
		return 0, ""
	}
	if outage = set.longestOutage(); outage <= pool.DefaultOutage {
		return 0, ""
	}
	return outage, " --outage " + phrase.Duration(outage)
}

// repeatable are flags, besides those of a pool and of a series, without which a command is
// about something else.
var repeatable = []string{"config", "store", "pool", "server", "address", "db", "shard", "may-repeat", "after", "resp", "http", "admin", "names"}

// repeats reports whether a hint's command is to have a flag that was given to this one.
// What a person claims or confirms is not repeated.
func (h hinter) repeats(f *pflag.Flag, to *cobra.Command) bool {
	there := flagOf(to, f.Name)
	if !saidBy(f) || there == nil || there.Hidden {
		return false
	}
	if f.Name == "outage" && to != h.cmd {
		// To a command that makes a pool safe, a short budget would say that no process
		// had a longer one.
		budget, err := time.ParseDuration(f.Value.String())
		return err == nil && budget > pool.DefaultOutage
	}
	_, ofPool := f.Value.(*knobFlag)
	_, ofSeries := f.Value.(*seriesFlag)
	return there.Value.Type() == f.Value.Type() && (ofPool || ofSeries || slices.Contains(repeatable, f.Name))
}

// flagOf is a command's flag of that name, its own or one of a command above it; nil if it
// has none. (*cobra.Command).Flag, which finds the same, writes to the flags that it looks
// through, while others read them.
func flagOf(cmd *cobra.Command, name string) *pflag.Flag {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f
	}
	for ; cmd != nil; cmd = cmd.Parent() {
		if f := cmd.PersistentFlags().Lookup(name); f != nil {
			return f
		}
	}
	return nil
}

// isAddress reports whether a flag may have a URL. Layouts, patterns and paths have none, though
// one with a colon and an @ looks like a URL with a password.
func isAddress(f *pflag.Flag) bool {
	switch f.Value.(type) {
	case *knobFlag, *seriesFlag:
		return false
	}
	return f.Name != "config"
}

// values are those that a flag was given.
func (h hinter) values(f *pflag.Flag) []string {
	if servers, err := h.cmd.Flags().GetStringToString(f.Name); err == nil {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			all = append(all, name+"="+servers[name])
		}
		return all
	}
	switch v := f.Value.(type) {
	case *serverFlag:
		return v.said
	case pflag.SliceValue:
		return v.GetSlice()
	}
	return []string{f.Value.String()}
}

// saidFlag finds a flag of the failed command with its value: "to wait: --wait 1m".
var saidFlag = regexp.MustCompile(`: --([a-z-]+) ([^\s,;:)]*[^\s,;:).])`)

// settings is a text without commands, for a command that takes settings of pools from
// firn.yaml only.
func (h hinter) settings(text string) string {
	return saidFlag.ReplaceAllStringFunc(text, func(found string) string {
		m := saidFlag.FindStringSubmatch(found)
		if flagOf(h.cmd, m[1]) != nil || m[1] != "pool" && !slices.Contains(config.KeyNames(config.LeaseKeys), m[1]) {
			return found
		}
		return ": " + m[1] + ": " + m[2] + " in firn.yaml"
	})
}
