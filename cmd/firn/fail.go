package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// report prints an error as a person wants it, and returns the exit code. Its hints are for
// the command that has failed, if there is one.
func report(w io.Writer, cmd *cobra.Command, err error) int {
	var e ui.Exit
	var f *ui.Failure
	switch {
	case err == nil || errors.Is(err, ui.ErrNoReader):
		return 0 // whoever read has had enough
	case errors.As(err, &e):
		return int(e)
	case !errors.As(err, &f):
		f = classify(err)
	}
	if server := awayServer(f.Err); server != "" {
		f = &ui.Failure{Code: f.Code, Err: f.Err, Place: f.Place, Hints: []ui.Hint{{Text: startHint(server)}}} // whatever was done when it went away
	} else if text := refusalHint(f.Err); text != "" && cmd != nil && flagOf(cmd, "server") != nil {
		f = &ui.Failure{Code: f.Code, Err: f.Err, Place: f.Place, Hints: []ui.Hint{{Text: text}}} // no command helps before
	}
	hintTimeout(cmd, f)
	ui.PrintFailure(w, f, hinter{cmd: cmd}.lines(f), factsOfError(f.Err))
	return f.Code
}

// classify finds the exit code and the hints of the libraries' errors.
func classify(err error) *ui.Failure {
	var syntax *firn.SyntaxError
	if errors.As(err, &syntax) {
		return syntaxFailure(syntax.Kind, syntax)
	}
	if f := settingFailure(nil, err); f != nil {
		return f
	}
	if f := poolFailure(err, poolPlace{}); f != nil {
		return f
	}
	f := ui.Failed("%w", ui.Rename(phrase.Reason(err), err))
	var ended *firn.EndError
	var early *firn.EpochError
	var ahead *lease.ClockError
	var away *lease.AwayError
	var noDir *sqlite.MissingDirectoryError
	var unfit *sqlite.UnfitFileError
	var damaged *store.FormatError
	switch {
	case errors.As(err, &damaged):
		return addHints(f, remedy.Damaged(damaged, ""))
	case errors.As(err, &noDir):
		return missingDirectory(noDir)
	case errors.As(err, &unfit) && unfit.Directory:
		return f.Hint("a directory at that path keeps the place of a file that was moved: leave the directory there, and give the new store: --store URL").
			Hint("only if no file was ever at that path, for all processes of this host: --store %s", hostStore)
	case errors.As(err, &ended):
		f.Code = ui.ExitUsage
		return f.Hint("to see when each layout ends: firn layout ls")
	case errors.As(err, &early):
		f.Code = ui.ExitUsage
		return f.Hint("is the clock right, or the epoch mistyped? %s", early.Layout)
	case errors.As(err, &ahead):
		return f.Hint("%s", remedy.WrongClock)
	case errors.As(err, &away) && !away.SaysWhatToDo():
		return f.Hint("check that the store runs and that this host reaches it")
	}
	return f
}

// shownLine is how much of a faulty text is shown around the fault, in bytes.
const shownLine = 100

// syntaxFailure shows a faulty text with a mark under the place of the fault.
func syntaxFailure(name string, e *firn.SyntaxError) *ui.Failure {
	f := ui.Bad("%s: %s", name, e.Reason)
	text, at := e.Text, e.Offset
	if len(text) > shownLine {
		from := max(0, min(at-shownLine/2, len(text)-shownLine))
		text, at = text[from:from+shownLine], at-from
	}
	// One column a byte, whatever the bytes are, so that the mark stands right.
	printable := []byte(text)
	for i, c := range printable {
		if c < ' ' || c > '~' {
			printable[i] = '?'
		}
	}
	if text != "" {
		f.Place = []string{string(printable), strings.Repeat(" ", at) + "^"}
	}
	if e.Kind == "layout" {
		f = f.Hint("to list the presets: firn layout ls")
	}
	return f
}
