// Package doctor checks what a process would find that makes ids: its settings, its store and
// what the store promises, the clock, the pools and the counters. Findings say what is wrong,
// and what to type. The command firn doctor prints them.
//
// Nothing is written: no pool and no file is created, and no worker is taken.
package doctor

import (
	"context"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/store"
)

// A Finding is what one check found.
type Finding struct {
	State State  `json:"state"`
	Check string `json:"check"` // what was checked, such as "store" or "pool web, workers"
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // what to do about it; "": nothing, or what Err says

	// Err is what failed; nil: nothing did.
	Err    error           `json:"-"`
	Series *config.Series  `json:"-"` // the series of the settings that Err is about, or nil
	Pool   *config.Leasing `json:"-"` // the pool that Err is about, or nil
}

// A State says how bad a finding is.
type State string

// The states of findings.
const (
	OK      State = "ok"
	Warning State = "warn"
	Bad     State = "bad" // ids or numbers cannot be made, or may repeat
)

// Options say how to check. A nil *Options is all defaults.
type Options struct {
	Hostname func() (string, error) // of this host; nil: os.Hostname

	now func() time.Time // nil: time.Now
}

// Config checks the settings and the store that they name, with its pools and counters. It
// opens the store, and each store of a ticket. A check follows when the finding before was
// taken. Where ctx has ended, there are no further findings.
func Config(ctx context.Context, cfg *config.Config, o *Options) iter.Seq[Finding] {
	return examination(ctx, cfg, o, (*exam).config)
}

// Store checks a store that is open, with its pools and counters. There is nothing that they
// are compared with. Where ctx has ended, there are no further findings.
func Store(ctx context.Context, st store.Store, o *Options) iter.Seq[Finding] {
	return examination(ctx, config.New(nil, nil), o, func(e *exam, ctx context.Context) { e.opened(ctx, st) })
}

// An exam is one run of the checks.
type exam struct {
	set      *config.Config
	hostname func() (string, error)
	now      func() time.Time
	url      string          // of the store; "": a program has opened it
	accepts  map[string]bool // of the counters of firn.yaml: whether numbers may repeat

	ended   func() error // not nil: nobody wants more findings
	yield   func(Finding) bool
	dismiss func() // nobody wants more
}

func examination(ctx context.Context, set *config.Config, o *Options, run func(*exam, context.Context)) iter.Seq[Finding] {
	e := exam{set: set, hostname: os.Hostname, now: time.Now}
	if o != nil && o.Hostname != nil {
		e.hostname = o.Hostname
	}
	if o != nil && o.now != nil {
		e.now = o.now
	}
	return func(yield func(Finding) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		e := e
		e.ended, e.yield, e.dismiss = ctx.Err, yield, cancel
		run(&e, ctx)
	}
}

// report hands out a finding.
func (e *exam) report(f Finding) {
	if e.ended() == nil && !e.yield(f) {
		e.dismiss()
	}
}

// say reports what a check found, without what to do where nothing is.
func (e *exam) say(state State, check, do, format string, args ...any) {
	e.report(Finding{State: state, Check: check, Text: fmt.Sprintf(format, args...), Do: do})
}

// fails reports an error.
func (e *exam) fails(check string, err error) {
	e.report(failure(check, err))
}

func failure(check string, err error) Finding {
	return Finding{State: Bad, Check: check, Text: phrase.Reason(err), Err: err}
}

// config makes all checks.
func (e *exam) config(ctx context.Context) {
	if file := e.set.File; file == nil {
		e.say(OK, "config", "", "there is no firn.yaml: flags, FIRN_ variables and defaults count")
	} else {
		e.say(OK, "config", "", "%s: %s, %d series", file.Path, phrase.Plural(len(file.Pools), "pool"), len(file.Series))
	}
	e.forms()
	e.spread(ctx)
	if e.onlySpread() {
		e.say(OK, "store", "", "the series of firn.yaml are in the stores above, and nothing uses the default file: it was not checked")
		return
	}
	if s := e.store(ctx); s != nil {
		defer s.Close()
		e.opened(ctx, s)
	}
}

// opened checks a store that answers.
func (e *exam) opened(ctx context.Context, s store.Store) {
	durability, ok := e.durability(ctx, s)
	if !ok {
		return
	}
	e.places(ctx, s)
	e.twins(ctx, s)
	e.missing(ctx, s, durability)
	e.records(ctx, s, durability)
}
