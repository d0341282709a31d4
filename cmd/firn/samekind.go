package main

import (
	"slices"
	"strings"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
)

// This file is about series whose kind in firn.yaml is not that of the counter that the store
// has by their name. An id in the place of a number is wrong, however unique; and a counter of
// the other kind would hide the one that is there.

func zoneKey(zone string) string {
	if zone == "" {
		return ""
	}
	return ", zone: " + zone
}

// kindHints says what to write where the store has a counter of another kind.
func kindHints(f *ui.Failure, e *countername.KindError) *ui.Failure {
	switch {
	case e.Taken != "":
		return f.Hint("give the template a name that %s does not begin with", e.Taken)
	case e.Have.Template != "":
		return f.Hint("take a name that does not begin with %s", strings.TrimSuffix(e.Have.Template, "*"))
	case !e.Listed:
		return f.Hint("to serve this store: list the series of the server in firn.yaml, %s with kind: %s or not at all", e.Name, e.Have.Kind)
	case e.Have.Kind == config.Document:
		f.Hint("to draw from the counter, write in firn.yaml: %s: { kind: document, pattern: %q%s }", e.Name, e.Have.Pattern, zoneKey(e.Have.Zone))
	case e.Have.Stores > 1:
		f.Hint("to draw from the counter, write in firn.yaml: %s: { kind: sequence, stores: [URL, URL] }, with the stores that it was created with", e.Name)
	default:
		f.Hint("to draw from the counter, write in firn.yaml: %s: { kind: %s }", e.Name, e.Have.Kind)
	}
	return f.Hint("to have a %s beside it, give the series in firn.yaml another name", e.Want)
}

// hintNear says what to do where a new counter is probably another one of the store.
func (d *drawing) hintNear(f *ui.Failure, e *countername.NearNameError) *ui.Failure {
	return d.hintName(f, e.Near).Hint("only if %s never existed: %s", d.Name, d.createCommand())
}

// hintRenamed says what to do if a new sequence of firn.yaml is probably the new name of a sequence that this server
// has served.
func (d *drawing) hintRenamed(f *ui.Failure, e *countername.RenamedError) *ui.Failure {
	if len(e.Before) == 1 {
		d.hintName(f, e.Before[0])
	} else {
		f.Hint("if one of them was renamed or is mistyped: write its name in firn.yaml again, in place of %s. A counter keeps its name", d.Name)
	}
	return f.Hint("only if %s never existed: %s; then send SIGHUP to this server again", d.Name, d.createCommand())
}

// hintOverlap says what to do where a new document could repeat the texts of others.
func (d *drawing) hintOverlap(f *ui.Failure, e *document.OverlapError) *ui.Failure {
	d.hintName(f, e.Others[0]).Hint("to have texts that differ, give %s another pattern, such as one with another prefix", d.Name)
	claim := ""
	for _, other := range slices.Concat(d.Options.Document.MayEqual, e.Others) {
		claim += " --may-repeat " + phrase.ShellWord(other)
	}
	return f.Hint("only if the texts of both never meet in one table, queue or cache: %s%s", d.createCommand(), claim)
}

// hintName says how to draw from a counter that was probably meant.
func (d *drawing) hintName(f *ui.Failure, meant string) *ui.Failure {
	if d.Listed {
		return f.Hint("if %s was renamed or is mistyped: write %s in firn.yaml again, in place of %s. A counter keeps its name", meant, meant, d.Name)
	}
	return f.Hint("to draw from the counter that is there: firn next %s", drawWord(meant))
}

// createCommand is the command that creates the counter of a series.
func (d *drawing) createCommand() string {
	text := "firn series create " + phrase.ShellWord(d.Defined())
	switch {
	case d.Kind == config.Document && d.inFile("pattern") == "":
		return text + " --pattern " + phrase.ShellWord(d.Options.Document.Pattern) + zoneFlag(d.Options.Document.Zone)
	case !d.Listed && d.Kind == config.Sequence:
		return text + " --kind " + config.Sequence
	}
	return text
}
