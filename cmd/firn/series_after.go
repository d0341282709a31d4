package main

import (
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
)

// hintAfter says how to create a document whose earlier store gave out texts of later dates than
// today's, because a clock was ahead.
func (d *drawing) hintAfter(f *ui.Failure, e *document.AfterError) *ui.Failure {
	lossy := ""
	if d.Options.Document.MayRepeat && d.inFile("on-lossy-store") == "" {
		lossy = " --on-lossy-store may-repeat"
	}
	for _, other := range d.Options.Document.MayEqual {
		lossy += " --may-repeat " + phrase.ShellWord(other)
	}
	name := phrase.ShellWord(d.Name)
	return f.Hint("firn series create %s --pattern %s%s%s --after TEXT, where TEXT is the last text of %s. If there is none, TEXT is the last text of the latest earlier date. Then, before anything is started: firn series raise %[1]s %[6]s",
		name, phrase.ShellWord(d.Options.Document.Pattern), zoneFlag(d.Options.Document.Zone), lossy, e.Today, phrase.ShellWord(e.After)).
		Hint("to find TEXT: the texts in your rows, and firn series show %s --store URL, with URL the earlier store, if it is there. If texts of more dates after %s were given out, raise each of those dates too", name, e.Today).
		Hint("if it is %s already: the clock of the store is behind, or that date has just begun. Set the clock, or wait, and type the same command again", e.Period)
}
