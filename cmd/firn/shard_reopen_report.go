package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// A reopening is a plan as it is printed.
type reopening struct{ *setup.Reopening }

// print says which steps the plan has.
func (r *reopening) print(w io.Writer) {
	if len(r.Shards) > 0 {
		fmt.Fprintf(w, "%s to be opened on server %s: %s\n", phrase.Plural(len(r.Shards), "shard"), r.Server, shortNumbers(r.Shards))
	}
	why := make(map[string][]topology.Row)
	var whys []string
	for _, l := range r.Left {
		if why[l.Why] == nil {
			whys = append(whys, l.Why)
		}
		why[l.Why] = append(why[l.Why], topology.Row{Shard: l.Shard})
	}
	for _, text := range whys {
		reason := text
		if len(why[text]) > 1 { // the reason is of one shard
			if rest, ok := strings.CutPrefix(text, "it "); ok {
				reason = "each " + rest
			}
		}
		fmt.Fprintf(w, "%s will not be opened (%s): %s\n", phrase.Plural(len(why[text]), "shard"), reason, shortNumbers(why[text]))
	}
	for _, c := range r.Closed {
		fmt.Fprintf(w, "shard %d to be closed on server %s, which serves it too. Its rows on %[2]s stay in the schema %s there\n", c.Shard, c.Server, c.Schema)
	}
	if f := r.Forgotten(); len(f.Shards) > 0 {
		fmt.Fprintf(w, "on %s it is written that %s had %s at a later term than %[2]s knows: a reopen was broken off, or %[2]s was put back to an earlier state since. If it was put back, rows that were written to %[3]s since, on %[2]s or another server, are not there\n", strings.Join(f.By, " and "), r.Server, f.Text())
	}
	if r.Copy && len(r.Shards)+len(r.Told) == 0 {
		fmt.Fprintf(w, "server %s is a copy, or was promoted or restored: it has no shard to open, and can get shards again\n", r.Server)
	}
	if len(r.Told) > 0 {
		fmt.Fprintf(w, "server %s to be told who serves %s: what it knows is of what it is a copy of\n", r.Server, phrase.Plural(len(r.Told), "shard"))
	}
}

// printNowhere says what to type for shards that are left, and that no server serves.
func (r *reopening) printNowhere(cmd *cobra.Command) {
	nowhere, _ := r.StillServed()
	for _, f := range nowhere {
		ui.PrintNote(cmd.ErrOrStderr(), "%s; %s", f.Text, hinter{cmd: cmd}.compose(f.Do))
	}
}

// twice is the error of shards that are left, and that two servers serve: each may give what the
// other gives, until one of the copies is closed.
func (r *reopening) twice() error {
	var texts, hints []string
	_, twice := r.StillServed()
	for _, f := range twice {
		texts, hints = append(texts, f.Text), append(hints, f.Do)
	}
	if len(texts) == 0 {
		return nil
	}
	f := &ui.Failure{Code: ui.ExitFound, Err: errors.New(strings.Join(texts, "; "))}
	for _, do := range hints {
		f = f.Hint("%s", do)
	}
	return f
}

// shortNumbers are the numbers of rows, which are in order, as 0-9,12.
func shortNumbers(rows []topology.Row) string {
	var n shardNumbers
	for _, row := range rows {
		if last := len(n.ranges) - 1; last >= 0 && n.ranges[last].last == row.Shard-1 {
			n.ranges[last].last = row.Shard
		} else {
			n.ranges = append(n.ranges, shardRange{row.Shard, row.Shard})
		}
	}
	return n.String()
}

// fromCopy says whether shards are opened from a backup, a standby or the copy of a move, so that sequences of the
// application may be behind.
func (r *reopening) fromCopy() bool {
	return slices.ContainsFunc(r.Shards, func(row topology.Row) bool { return !row.Here || row.State != topology.StateClosed })
}

// warnSequences says what to do about sequences of the application before shards are opened.
func (r *reopening) warnSequences(cmd *cobra.Command) {
	if r.fromCopy() {
		ui.PrintWarning(cmd.ErrOrStderr(), "the application's own sequences on server %s may be behind, and numbers drawn from them may repeat: before the shards are opened, which programs write to at once, advance each above every number that was given: SELECT setval('SEQUENCE', NUMBER)", r.Server)
	}
}

// say prints what was done.
func (r *reopening) say(cmd *cobra.Command, dry bool) error {
	out := cmd.OutOrStdout()
	if wantsJSON(cmd) {
		type left struct {
			Shard int64  `json:"shard"`
			Why   string `json:"why"`
		}
		type closed struct {
			Shard  int64  `json:"shard"`
			Server string `json:"server"`
		}
		doc := struct {
			Server string   `json:"server"`
			DryRun bool     `json:"dry_run"`
			Opened []int64  `json:"opened"`
			Left   []left   `json:"left"`
			Told   []int64  `json:"told"`
			Closed []closed `json:"closed,omitempty"`
		}{Server: r.Server, DryRun: dry, Opened: []int64{}, Left: []left{}, Told: []int64{}}
		for _, row := range r.Shards {
			doc.Opened = append(doc.Opened, row.Shard)
		}
		for _, l := range r.Left {
			doc.Left = append(doc.Left, left(l))
		}
		for _, t := range r.Told {
			doc.Told = append(doc.Told, t.Shard)
		}
		for _, c := range r.Closed {
			doc.Closed = append(doc.Closed, closed{c.Shard, c.Server})
		}
		return json.NewEncoder(out).Encode(doc)
	}
	text := fmt.Sprintf("%s opened on server %s", phrase.Plural(len(r.Shards), "shard"), r.Server)
	switch {
	case len(r.Shards)+len(r.Told) == 0:
		text = "there is nothing to open on server " + r.Server
	case dry:
		text = "nothing was done"
	case len(r.Shards) == 0:
		text = fmt.Sprintf("server %s was told who serves %s", r.Server, phrase.Plural(len(r.Told), "shard"))
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
