package term_test

import (
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
)

// A mutant breaks one rule. The zero mutant breaks none.
type mutant struct {
	name string

	rules  func(*term.Rules)
	action func(*process, term.Action) term.Action
	event  func(*process, term.Event) term.Event
	now    func(*process, term.Now, term.Event) term.Now
	grant  func(*process, term.Action, firn.Grant, bool) (firn.Grant, bool)
	last   func(*process, firn.Tick) firn.Tick

	oneSeed       bool
	openEnd       bool
	unfenced      bool
	ignoreVersion bool
	ignoreWithin  bool
	countVersions bool
	keepOwner     bool
	lowFloor      bool
}
