package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
)

// plan says what is to be done, and what speaks against it.
func (o *shardsMove) plan(ctx context.Context, cmd *cobra.Command, jobs []move.Job) error {
	var refused []move.Refusal
	for _, l := range jobs {
		if o.dry {
			if err := printContinued(cmd.OutOrStdout(), l, wantsJSON(cmd)); err != nil {
				return err
			}
		}
		if len(l.New) == 0 {
			continue
		}
		p, err := move.NewPlan(ctx, l.Source, l.Target, l.New, false, &o.options)
		if err != nil {
			return moveFailure(err)
		}
		refused = append(refused, p.Refusals...)
		switch {
		case o.dry:
			err = printMovePlan(cmd.OutOrStdout(), p, wantsJSON(cmd))
		case !wantsJSON(cmd):
			err = printMovePlan(cmd.ErrOrStderr(), p, false)
		}
		if err != nil {
			return err
		}
	}
	if len(refused) > 0 {
		return &ui.Failure{Code: ui.ExitFound, Err: &move.RefusedError{Refusals: refused}}
	}
	return nil
}

// printContinued prints the shards of a job that are in a move already: the command copies nothing anew.
func printContinued(out io.Writer, l move.Job, asJSON bool) error {
	shards := slices.DeleteFunc(slices.Clone(l.Shards), func(n int64) bool { return slices.Contains(l.New, n) })
	switch {
	case len(shards) == 0:
		return nil
	case asJSON:
		return json.NewEncoder(out).Encode(movePlanLine{From: l.Source.Name, To: l.Target.Name, Shards: []shardMoveLine{}, Continued: shards})
	}
	_, err := fmt.Fprintf(out, "the move of shard %s from %s to %s is not finished: the command continues it\n", move.List(shards), l.Source.Name, l.Target.Name)
	return err
}

// printMovePlan prints what is to be moved.
func printMovePlan(out io.Writer, p *move.Plan, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(newMovePlanLine(p))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SHARD\tFROM\tTO\tTABLES\tROWS\tSIZE")
	for _, s := range p.Shards {
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\n", s.Shard, p.Source, p.Target, s.Tables, phrase.Count(s.Rows), phrase.Bytes(s.Bytes))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s to copy", phrase.Bytes(p.Bytes()))
	if len(p.Refusals) == 0 { // else nothing was measured
		fmt.Fprintf(out, "; %s writes %s of log a second; pause of each about %s", p.Source, phrase.Bytes(int64(p.WALRate)), p.Pause.Round(time.Millisecond))
	}
	fmt.Fprintln(out)
	for _, s := range p.Shards {
		for _, h := range s.Holders {
			fmt.Fprintf(out, "shard %d is in use by %s\n", s.Shard, h)
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(out, "look: %s (%s)\n", n, n.Do)
	}
	_, err := fmt.Fprintln(out)
	return err
}

// A movePlanLine is a plan as --json prints it.
type movePlanLine struct {
	From    string          `json:"from"`
	To      string          `json:"to"`
	Bytes   int64           `json:"bytes"`
	WALRate float64         `json:"wal_bytes_per_second"`
	Pause   float64         `json:"pause_ms"`
	Shards  []shardMoveLine `json:"shards"`
	Refused []string        `json:"refused,omitempty"`
	Notes   []string        `json:"notes,omitempty"` // what only a person can judge

	Continued []int64 `json:"continued,omitempty"` // shards that are in this move already
}

type shardMoveLine struct {
	Shard   int64    `json:"shard"`
	Schema  string   `json:"schema"`
	Tables  int64    `json:"tables"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	Holders []string `json:"holders,omitempty"`
}

func newMovePlanLine(p *move.Plan) movePlanLine {
	l := movePlanLine{From: p.Source, To: p.Target, Bytes: p.Bytes(), WALRate: p.WALRate, Pause: float64(p.Pause.Microseconds()) / 1000, Shards: []shardMoveLine{}}
	for _, s := range p.Shards {
		one := shardMoveLine{Shard: s.Shard, Schema: s.Schema, Tables: s.Tables, Rows: s.Rows, Bytes: s.Bytes}
		for _, h := range s.Holders {
			one.Holders = append(one.Holders, h.String())
		}
		l.Shards = append(l.Shards, one)
	}
	for _, r := range p.Refusals {
		l.Refused = append(l.Refused, r.String())
	}
	for _, n := range p.Notes {
		l.Notes = append(l.Notes, n.String())
	}
	return l
}
