package main

import (
	"strings"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
)

// This file says what to do where the pattern of a document has no room, or is another in the
// store. The store has one, and firn.yaml or a flag has one: the hints lead to the wider of
// the two, so that they never lead back.

// inFile returns the place in firn.yaml of a setting; "" where it is from elsewhere.
func (d *drawing) inFile(setting string) string {
	if from := d.From[setting]; strings.Contains(from, ":") {
		return from
	}
	return ""
}

// use is how a setting is given a value where it is from.
func (d *drawing) use(setting, value string) string {
	if at := d.inFile(setting); at != "" {
		return setting + ": " + phrase.ShellWord(value) + " at " + at
	}
	return "--" + setting + " " + phrase.ShellWord(value)
}

// changeTo is the command that gives the store a pattern and a zone. What firn.yaml says it
// reads itself.
func (d *drawing) changeTo(pattern, zone string) string {
	text := "firn series set " + phrase.ShellWord(d.Defined())
	if d.inFile("pattern") == "" || pattern != d.Options.Document.Pattern {
		text += " --pattern " + phrase.ShellWord(pattern)
	}
	if d.inFile("zone") == "" || zone != d.Options.Document.Zone {
		text += zoneFlag(zone)
	}
	return text
}

// hintUsed says what to do where a date, or a series without dates, has too few numbers left.
func (d *drawing) hintUsed(f *ui.Failure, e *document.EndError) *ui.Failure {
	if e.Left > 0 {
		f.HintFlag("count", "-n %d prints what is left", e.Left)
	}
	if !e.NextAt.IsZero() {
		unit := "date"
		if p, err := document.ParsePattern(e.Pattern); err == nil {
			unit = p.Unit()
		}
		f.Hint("the series continues with the next %s, from %s", unit, phrase.Instant(e.NextAt))
	}
	return d.hintDigits(f, e.Pattern)
}

// hintDigits says how a series whose pattern has no room gets more digits.
func (d *drawing) hintDigits(f *ui.Failure, pattern string) *ui.Failure {
	p, err := document.ParsePattern(pattern)
	if err != nil || p.Wider() == "" {
		return f
	}
	if d.inFile("pattern") != "" {
		return f.Hint("for more digits: write %s, then: %s", d.use("pattern", p.Wider()), d.changeTo(d.Options.Document.Pattern, d.Options.Document.Zone))
	}
	return f.Hint("for more digits: %s; then use that pattern everywhere", d.changeTo(p.Wider(), d.Options.Document.Zone))
}

// hintDefinition says what to do about a pattern or a zone that is another in the store.
func (d *drawing) hintDefinition(f *ui.Failure, e *document.DefinitionError) *ui.Failure {
	only, wider := e.OnlyWidth()
	switch {
	case !only:
		return f.Hint("to use the series that is there: %s. Other texts are a series of another name", d.use("pattern", e.HavePattern))
	case wider:
		f.Hint("the store has the wider counter, and a narrower one ends earlier, so use that pattern here: %s", d.use("pattern", e.HavePattern))
	case e.HavePattern != e.WantPattern:
		f.Hint("the store has the narrower counter: %s", d.changeTo(e.WantPattern, e.HaveZone))
	}
	if e.HaveZone != e.WantZone {
		f.Hint("to use the zone of the store: %s", d.use("zone", e.HaveZone))
		if !wider {
			f.Hint("only if the series is to have this zone from now on: %s", d.changeTo(e.WantPattern, e.WantZone))
		}
	}
	return f
}
