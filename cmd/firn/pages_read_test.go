//go:build !windows

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A page is a page of documentation whose commands are run: what happens on it, in
// order. docs/internals.md says how one is written.
type page struct {
	lines  []string
	steps  []step
	today  string // the date that the page was written on, as 20261122; empty: it names none
	zone   string // of that date
	faults []string
}

// A step is one thing that happens on a page.
type step struct {
	does   stepKind
	line   int    // of the page, from 1 on
	text   string // of the command, the SQL, the file
	at     string // the URL of the SQL, the name of the file
	varies []string
	exits  int
	answer string // to what the command asks at a terminal
	stays  bool   // the command does not end: a reader leaves it running
	from   int    // the lines of the page that say what a command prints, [from, to)
	to     int
}

type stepKind int

const (
	doCommand stepKind = iota
	doHidden           // the same, and the reader does not see it
	doSQL
	doFile
	doServer // stops or starts the server that at names
)

// variants are the parts that differ from run to run, by the name that "varies" has
// for each.
var variants = map[string]string{
	"id":       `\b[1-9]\d{14,18}\b`,
	"time":     `\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`,
	"process":  `[\w.-]*[A-Za-z][\w.-]*:\d{1,7}\b`,
	"duration": `\b(\d+(\.\d+)?(h|m|s|ms|us|µs|ns))+\b`,
	"rate":     `\b\d+(\.\d+)?/s`,
}

var (
	directive   = regexp.MustCompile(`^<!-- (run|file|varies|exits|answers|stays|not run|run by|sh|server|today):(.*)$`)
	changes     = regexp.MustCompile(`^((stop|start) \w+://\S+|(copy|promote) postgres://\S+ postgres://\S+( \w+=\w+)*)$`)
	typed       = regexp.MustCompile(`^\s*(\$ |firn )`)
	typedFirn   = regexp.MustCompile(`^\s*(\$ +)?firn `)
	todayFormat = regexp.MustCompile(`^\d{8}( \S+)?$`)
)

// readPage reads a page. What is wrong with it is in its faults.
func readPage(text string) *page {
	p := &page{lines: strings.Split(text, "\n")}
	said := map[string]string{} // the directives before a block
	for i := 0; i < len(p.lines); i++ {
		line := p.lines[i]
		switch {
		case strings.HasPrefix(line, "<!--"):
			i = p.comment(i, said)
		case strings.HasPrefix(line, "```"):
			end := i + 1
			for end < len(p.lines) && !strings.HasPrefix(p.lines[end], "```") {
				end++
			}
			p.block(strings.TrimPrefix(line, "```"), i+1, end, said)
			clear(said)
			i = end
		case strings.TrimSpace(line) != "":
			p.unused(i, said)
		}
	}
	p.unused(len(p.lines)-1, said)
	if !slices.ContainsFunc(p.steps, func(s step) bool { return s.does == doCommand }) {
		p.fault(0, "no command is run: a page shows some, each after a $ in a console block")
	}
	return p
}

func (p *page) fault(i int, format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf("%d: %s", i+1, fmt.Sprintf(format, args...)))
}

// unused reports directives that no block followed before line i.
func (p *page) unused(i int, said map[string]string) {
	for word := range said {
		p.fault(i, "no block follows what is said: %s", word)
	}
	clear(said)
}

// comment reads a comment that begins at line i, and returns its last line.
func (p *page) comment(i int, said map[string]string) int {
	end := i
	for end < len(p.lines)-1 && !strings.HasSuffix(p.lines[end], "-->") {
		end++
	}
	text := strings.TrimSuffix(strings.Join(p.lines[i:end+1], "\n"), "-->")
	first, rest, _ := strings.Cut(text, "\n")
	m := directive.FindStringSubmatch(first)
	switch {
	case m == nil:
		p.fault(i, "a comment is one of run, file, varies, exits, answers, stays, not run, run by, sh, server, today and a colon")
	case m[1] == "sh":
		p.steps = append(p.steps, step{does: doHidden, line: i + 1, text: strings.TrimSpace(m[2] + "\n" + rest)})
	case m[1] == "server":
		word, at, _ := strings.Cut(strings.TrimSpace(m[2]), " ")
		if !changes.MatchString(word + " " + at) {
			p.fault(i, "server is stop or start, and a URL of the server; or copy or promote, its URL and one of the new server")
		}
		p.steps = append(p.steps, step{does: doServer, line: i + 1, text: word, at: at})
	case m[1] == "today":
		if p.today, p.zone, _ = strings.Cut(strings.TrimSpace(m[2]), " "); !todayFormat.MatchString(strings.TrimSpace(m[2])) {
			p.fault(i, "today is a date such as 20261122, and a time zone if it is not UTC")
		}
	default:
		said[m[1]] = strings.TrimSpace(m[2])
	}
	return end
}

// block reads the block of lines [from, to).
func (p *page) block(language string, from, to int, said map[string]string) {
	s := step{line: from + 1, from: from, to: to, text: strings.Join(p.lines[from:to], "\n") + "\n"}
	uses := func(words ...string) {
		for word := range said {
			if !slices.Contains(words, word) {
				p.fault(from-1, "%s is not for this block", word)
			}
		}
	}
	why, left := said["not run"]
	_, elsewhere := said["run by"]
	switch s.at = said["file"]; {
	case elsewhere: // TestPagesOfOtherTests looks for the test
		uses("run by")
	case left:
		uses("not run")
		if why == "" || slices.ContainsFunc(p.lines[from:to], typedFirn.MatchString) {
			p.fault(from-1, "not run is for what is not firn's, and says why")
		}
	case s.at != "":
		uses("file")
		s.does = doFile
		p.steps = append(p.steps, s)
	case language == "console":
		uses("varies", "exits", "answers", "stays")
		p.commands(from, to, said)
	case language == "sql":
		uses("run")
		s.does, s.at = doSQL, said["run"]
		if s.at == "" {
			p.fault(from-1, "where is this SQL run? <!-- run: URL --> comes before it")
		}
		p.steps = append(p.steps, s)
	default:
		uses()
		if language == "sh" || slices.ContainsFunc(p.lines[from:to], typed.MatchString) {
			p.fault(from-1, "commands are in a console block, each after a $, so that they are run")
		}
	}
}

// commands reads a console block. A command goes on in the next line where its line
// ends in a backslash, and in lines that begin with "> ".
func (p *page) commands(from, to int, said map[string]string) {
	varies := strings.Fields(said["varies"])
	exits, err := strconv.Atoi(said["exits"])
	if _, ok := said["exits"]; ok && err != nil {
		p.fault(from-1, "exits is a code")
	}
	begun := len(p.steps)
	for i := from; i < to; i++ {
		text, ok := strings.CutPrefix(p.lines[i], "$ ")
		if !ok {
			if len(p.steps) == begun {
				p.fault(i, "a console block begins with a command, after a $")
				return
			}
			p.steps[len(p.steps)-1].to = i + 1
			continue
		}
		s := step{does: doCommand, line: i + 1, text: text, varies: varies, answer: said["answers"]}
		for i+1 < to && (strings.HasSuffix(p.lines[i], `\`) || strings.HasPrefix(p.lines[i+1], "> ")) {
			i++
			s.text += "\n" + strings.TrimPrefix(p.lines[i], "> ")
		}
		s.from, s.to = i+1, i+1
		p.steps = append(p.steps, s)
	}
	if len(p.steps) == begun {
		return
	}
	last := &p.steps[len(p.steps)-1]
	_, last.stays = said["stays"]
	last.exits = exits
	var printed []string
	for _, s := range p.steps[begun:] {
		printed = append(printed, p.lines[s.from:s.to]...)
	}
	for _, v := range varies {
		// Where nothing is printed yet, -update will tell.
		if re, err := variant(v); err != nil || printed != nil && !re.MatchString(strings.Join(printed, "\n")) {
			p.fault(from-1, "varies: %s: nothing on the page matches it (%v)", v, err)
		}
	}
}

// variant is what a word of "varies" stands for.
func variant(word string) (*regexp.Regexp, error) {
	if known, ok := variants[word]; ok {
		return regexp.Compile(known)
	}
	if pattern, ok := strings.CutPrefix(word, "/"); ok && strings.HasSuffix(pattern, "/") {
		return regexp.Compile(strings.TrimSuffix(pattern, "/"))
	}
	return nil, fmt.Errorf("it is one of id, time, process, duration, rate, or a /regular expression/")
}

// agree reports whether a command printed what the page says. A line ... on the page
// stands for any lines.
func agree(want, got, varies []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "..." {
		return agree(want[1:], got, varies) || len(got) > 0 && agree(want, got[1:], varies)
	}
	return len(got) > 0 && invariant(want[0], varies) == invariant(got[0], varies) && agree(want[1:], got[1:], varies)
}

// invariant is a line without what varies. Columns are as wide as what is in them, so
// spaces count as one.
func invariant(line string, varies []string) string {
	for _, v := range varies {
		if re, err := variant(v); err == nil {
			line = re.ReplaceAllString(line, "<"+v+">")
		}
	}
	if len(varies) > 0 {
		return strings.Join(strings.Fields(line), " ")
	}
	return strings.TrimRight(line, " \t")
}
