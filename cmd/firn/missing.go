package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
)

// This file says what to do about pools and counters that a store does not have. A counter
// that is created again begins at its first number and repeats all that was given out, and
// neither a store nor a clock can tell. So the likelier causes come first: a mistyped
// name, and a store that was restored.

// A missing is a pool or a counter that a store does not have.
type missing struct {
	name    string
	nearest string // a counter that was probably meant; "" if there is none
	create  string // the command for one that never existed
	begins  string // what that would give first
	again   string // the commands for one that did; "" of a pool
	where   string // what the values of again are
	other   string // asks whether the store is the one of other programs; "" where it has counters
	partly  string // what to do where other stores of a sequence have it; "" of any other
}

// missingOf returns what is missing, or nil if that is not what err says.
func (d *drawing) missingOf(err error) *missing {
	var noPool *lease.MissingPoolError
	var noSequence *sequence.MissingError
	var noDocument *document.MissingError
	name := phrase.ShellWord(d.Name)
	other := func(names []string) string {
		if len(names) > 0 || d.Across() {
			return ""
		}
		return "if " + poolPlace{url: whichstore.Text(d.URLs[0])}.other()
	}
	switch {
	case errors.As(err, &noPool) && !noPool.Creating:
		pool := phrase.ShellWord(noPool.Pool)
		return &missing{name: "pool " + noPool.Pool, create: "firn pool create " + pool, again: "firn pool ensure " + pool}
	case errors.As(err, &noSequence):
		return &missing{
			other: other(noSequence.Names), partly: d.partly(), name: d.Name, nearest: noSequence.Nearest, create: "firn series create " + name + " --kind sequence" + asNew(noSequence.MayBeLost), begins: d.Series.FirstNumber().String(),
			again: "firn series create " + name + " --kind sequence --first N", where: "N above every number in use",
		}
	case errors.As(err, &noDocument):
		create, where := "firn series create "+phrase.ShellWord(d.Defined()), "TEXT the last one given out"
		if template.Is(d.Defined()) {
			where = "TEXT the one with the highest count that any name gave out"
		}
		switch {
		case d.Options.Document.Pattern != "":
			create += " --pattern " + phrase.ShellWord(d.Options.Document.Pattern) + zoneFlag(d.Options.Document.Zone)
		case !d.Listed: // in firn.yaml, which says the pattern
			create += " --pattern PATTERN"
			where = "PATTERN that of its programs, such as 'INV-{yyyyMMdd}-{6}' with --zone Asia/Ho_Chi_Minh, and " + where
		}
		return &missing{
			other: other(noDocument.Names), name: d.Defined(), nearest: noDocument.Nearest, create: create + asNew(noDocument.MayBeLost), begins: "1",
			again: create + " --after TEXT", where: where,
		}
	}
	return nil
}

// asNew is the flag of a series that never existed, where the store may have lost it.
func asNew(lost bool) string {
	if lost {
		return " --new"
	}
	return ""
}

// partly says what to do about a sequence that one of its stores has lost, "" where it has one. Its
// numbers are shared out by store, so that one store alone cannot begin them again.
func (d *drawing) partly() string {
	if !d.Across() {
		return ""
	}
	return "if another store of " + d.Name + " still has it, it cannot be created again in this one: put back a backup of this store, then recover it by firn store recover; or, without a backup, stop every process that uses it, and write it with another name and first: N into firn.yaml, with N above every number in use, then: firn series create NEWNAME --kind sequence --new"
}

// missingHints are what to do about all that is missing, the safest first.
func missingHints(all []*missing) []string {
	var hints, again, where, create, begins []string
	for _, m := range all {
		if m.nearest != "" && len(all) == 1 {
			hints = append(hints, fmt.Sprintf("to use the counter that is there, write its name: %s", m.nearest))
		} else if m.nearest != "" {
			hints = append(hints, fmt.Sprintf("to use the counter that is there in place of %s, write its name: %s", m.name, m.nearest))
		}
		again, create = append(again, m.again), append(create, m.create)
		if m.other != "" && !slices.Contains(hints, m.other) {
			hints = append(hints, m.other)
		}
		if m.partly != "" {
			hints = append(hints, m.partly)
		}
		if m.where != "" {
			where = append(where, m.where)
		}
		if m.begins != "" {
			begins = append(begins, "a new counter "+m.name+" at "+m.begins)
		}
	}
	values, new := "", ""
	if len(where) > 0 {
		values = ", with " + strings.Join(unique(where), ", and ")
	}
	if len(begins) > 0 {
		new = " (begins " + strings.Join(begins, ", ") + ")"
	}
	it, they := "it", "it never existed"
	if len(all) > 1 {
		it, they = "one of them", "none of them ever existed"
	}
	return append(hints,
		fmt.Sprintf("if %s existed, or this store was restored or lost: %s%s, before anything is started", it, strings.Join(again, "; "), values),
		fmt.Sprintf("only if %s: %s%s", they, strings.Join(create, "; "), new))
}

// unique returns the texts, or hints, without those that came before.
func unique[T comparable](texts []T) []T {
	var all []T
	seen := map[T]bool{}
	for _, text := range texts {
		if !seen[text] {
			all = append(all, text)
		}
		seen[text] = true
	}
	return all
}

// withoutRepeats returns the errors without those whose text came before, as of a store that several
// series use.
func withoutRepeats(errs []error) []error {
	var all []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(all, func(e error) bool { return e.Error() == err.Error() }) {
			all = append(all, err)
		}
	}
	return all
}

// failedTogether makes one failure of the errors of several drawings: all that is wrong, and
// for what is missing all commands at once, in the order of the drawings.
func failedTogether(all []*drawing, errs []error) error {
	var lost []*missing
	var said []string
	whole := ui.Failed("")
	count := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		count++
		var f *ui.Failure
		if m := all[i].missingOf(err); m != nil {
			lost = append(lost, m)
		} else if errors.As(err, &f) {
			whole.Hints = append(whole.Hints, f.Hints...)
		}
		if errors.As(err, &f) {
			whole.Code = f.Code
		}
		said = append(said, err.Error())
	}
	if different := withoutRepeats(errs); len(lost) == 0 && len(different) < 2 || count < 2 {
		return errors.Join(different...)
	}
	if len(lost) == 1 { // its own hints say more
		for i, err := range errs {
			var f *ui.Failure
			if all[i].missingOf(err) != nil && errors.As(err, &f) {
				whole.Hints = append(whole.Hints, f.Hints...)
			}
		}
	} else if len(lost) > 1 {
		for _, text := range missingHints(lost) {
			whole.Hint("%s", text)
		}
	}
	whole.Hints = unique(whole.Hints)
	whole.Err = ui.Rename(strings.Join(unique(said), "\n"), errors.Join(errs...))
	return whole
}
