package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
)

// plan says which shards a move would move, and what prevents it.
func (o *shardsMove) plan(ctx context.Context, cmd *cobra.Command, jobs []move.Job, list string) error {
	var refused []*move.RefusedError
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
		var no *move.RefusedError
		if errors.As(p.Err(), &no) {
			refused = append(refused, no)
		}
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
		e := together(refused)
		return refusedMove(e, ". Nothing was changed").Hint("%s", fixObstacles(e.Obstacles, dryAgain(cmd, "firn shard move "+list)))
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
		return ui.EmitJSON(out, movePlanLine{From: l.Source.Name, To: l.Target.Name, Shards: []shardMoveLine{}, Continued: shards})
	}
	_, err := fmt.Fprintf(out, "the move of shard %s from %s to %s is not finished: the command continues it\n", phrase.Numbers(shards), l.Source.Name, l.Target.Name)
	return err
}

// together is one refusal of several moves.
func together(all []*move.RefusedError) *move.RefusedError {
	if len(all) == 1 {
		return all[0]
	}
	var one move.RefusedError
	for _, e := range all {
		one.Shards = append(one.Shards, e.Shards...)
		for _, o := range e.Obstacles {
			if !slices.Contains(one.Obstacles, o) { // the target's stand in the way of each
				one.Obstacles = append(one.Obstacles, o)
			}
		}
	}
	return &one
}

// fixObstacles is the hint of obstacles, with the command that checks again. Where only a superuser can move shards,
// the command names the servers with a superuser's name, and nothing is to do about that on the servers.
func fixObstacles(all []move.Obstacle, again string) string {
	needs := func(o move.Obstacle) bool { return strings.Contains(o.Fix, "postgres://SUPERUSER@") }
	others := slices.ContainsFunc(all, func(o move.Obstacle) bool { return !needs(o) })
	switch {
	case !slices.ContainsFunc(all, needs):
		return "fix these on the named servers, then check again: " + again
	case others:
		return "fix the others on the named servers, then check again with the name of a superuser: " + again + " " + asSuperuser
	}
	return "give the addresses with the name of a superuser: " + again + " " + asSuperuser
}

// refusedMove is the error of obstacles, with a table of them: what is wrong, and what to do.
func refusedMove(e *move.RefusedError, behind string) *ui.Failure {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, o := range e.Obstacles {
		where := o.Server
		if o.Shard >= 0 {
			where += fmt.Sprintf(", shard %d", o.Shard)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", where, o.Reason, o.Do())
	}
	w.Flush()
	f := &ui.Failure{Code: ui.ExitFound, Err: ui.Rename(e.Headline()+behind, e)}
	for line := range strings.Lines(b.String()) {
		f.Table = append(f.Table, strings.TrimRight(line, " \n"))
	}
	return f
}

// An obstacleLine is an obstacle as --json prints it.
type obstacleLine struct {
	Server string `json:"server"`
	Shard  *int64 `json:"shard,omitempty"` // none: whatever the shard
	Object string `json:"object"`
	Reason string `json:"reason"`
	Fix    string `json:"fix,omitempty"`
	Hosted string `json:"fix_on_rds,omitempty"` // where it differs
}

func obstacleLines(all []move.Obstacle) []obstacleLine {
	var lines []obstacleLine
	for _, o := range all {
		l := obstacleLine{Server: o.Server, Object: o.Object, Reason: o.Reason, Fix: o.Fix, Hosted: o.Hosted}
		if o.Shard >= 0 {
			l.Shard = &o.Shard
		}
		lines = append(lines, l)
	}
	return lines
}

// printMovePlan prints the shards that would move.
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
	if err := printEstimate(out, p); err != nil {
		return err
	}
	for _, s := range p.Shards {
		printHolders(out, s)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(out, "look: %s (%s)\n", n, n.Do())
	}
	_, err := fmt.Fprintln(out)
	return err
}

// printHolders says which transactions the cutover of a shard would wait for, as long as --lock-wait says. One that is
// younger than a second is a program at work, and is not said.
func printHolders(out io.Writer, s move.ShardPlan) {
	for _, h := range s.Holders {
		if h.Age >= time.Second {
			fmt.Fprintf(out, "shard %d is in use, which is no obstacle: its cutover waits until this ends, as long as --lock-wait says: %s\n", s.Shard, h)
		}
	}
}

// A movePlanLine is a plan as --json prints it.
type movePlanLine struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Bytes   int64   `json:"bytes"`
	WALRate float64 `json:"wal_bytes_per_second"`
	Pause   float64 `json:"pause_ms"`
	estimateFields
	Shards []shardMoveLine `json:"shards"`
	// What is in the way, and what may be: only a person can judge the notes.
	Obstacles []obstacleLine `json:"obstacles,omitempty"`
	Notes     []obstacleLine `json:"notes,omitempty"`

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
	l.estimateFields = newEstimateFields(p)
	l.Obstacles, l.Notes = obstacleLines(p.Obstacles), obstacleLines(p.Notes)
	return l
}
