package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/topology"
)

// applied is what a run did.
type applied struct {
	results []migrate.Result
	left    []migrate.Left
	inMoves bool // some are left because of their moves
	begun   int  // how many shards had something to get
	full    int  // how many had all files already
	servers []topology.Server
}

// An appliedLine is what became of a shard, as --json prints it.
type appliedLine struct {
	Shard   int64      `json:"shard"`
	Server  string     `json:"server,omitempty"`
	Applied []string   `json:"applied"`
	Error   *fileFault `json:"error,omitempty"`
}

// A fileFault is an error, and where it is as far as that is known.
type fileFault struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	SQLState string `json:"sqlstate,omitempty"`
	Message  string `json:"message"`
}

func faultOf(err error) *fileFault {
	f := fileFault{Message: err.Error()}
	var at *migrate.FileError
	if errors.As(err, &at) {
		f.File, f.Line, f.Message = at.File, at.Line, at.Err.Error()
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		f.SQLState, f.Message = pg.Code, pg.Message
	}
	return &f
}

// leaveMoving counts shards whose moves began meanwhile as left, unless they got a file before that.
func (a *applied) leaveMoving() {
	a.results = slices.DeleteFunc(a.results, func(r migrate.Result) bool {
		if !errors.Is(r.Err, migrate.ErrMoving) {
			return false
		}
		a.inMoves = true
		if len(r.Applied) > 0 {
			return false
		}
		a.left, a.begun = append(a.left, migrate.Left{Shard: r.Shard, Why: r.Err.Error()}), a.begun-1
		return true
	})
}

// print prints what was done, and returns an error if that was not all.
func (a *applied) print(ctx context.Context, cmd *cobra.Command) error {
	complete, last := 0, migrate.Result{}
	enc := json.NewEncoder(cmd.OutOrStdout())
	for _, r := range a.results {
		line := appliedLine{Shard: r.Shard, Server: r.Server, Applied: []string{}}
		for _, f := range r.Applied {
			line.Applied = append(line.Applied, f.Name)
		}
		switch {
		case r.Err == nil:
			complete++
		case ctx.Err() != nil:
			line.Error = &fileFault{Message: "interrupted"}
		default:
			last, line.Error = r, faultOf(r.Err)
			ui.PrintError(cmd.ErrOrStderr(), fmt.Errorf("shard %d on %s: %w", r.Shard, r.Server, r.Err))
		}
		if wantsJSON(cmd) {
			if err := enc.Encode(line); err != nil {
				return err
			}
		}
	}
	for _, text := range leftTexts(a.left) {
		ui.PrintError(cmd.ErrOrStderr(), errors.New(text))
	}
	for _, l := range a.left {
		if wantsJSON(cmd) {
			if err := enc.Encode(appliedLine{Shard: l.Shard, Applied: []string{}, Error: &fileFault{Message: l.Why}}); err != nil {
				return err
			}
		}
	}
	missing := a.begun - complete + len(a.left)
	if missing == 0 {
		return a.say(cmd.OutOrStdout(), wantsJSON(cmd))
	}
	why := "not served"
	if a.inMoves {
		why = "not served, or in moves"
	}
	if ctx.Err() != nil {
		ui.Tell(ctx, nil)
		ui.PrintInterrupted(cmd.ErrOrStderr(), fmt.Sprintf("%s complete, and %d left; the same command continues with these", shardsAre(a.full+complete), missing))
		return ctx.Err()
	}
	f := ui.Failed("%s complete; %s", shardsAre(a.full+complete), missingText(missing, len(a.results)-complete, len(a.left), why))
	if a.inMoves && (last.Err == nil || errors.Is(last.Err, migrate.ErrMoving)) {
		return f.Hint("run it again when the moves are finished; a rebalance finishes its own. To see the moves: firn shard status. To apply the files on these shards now: --moving")
	}
	if name := lacksGenerator(last.Err); name != "" {
		return a.generatorHint(ctx, f, last, name)
	}
	return applyHint(f, last.Err)
}

// missingText counts the shards that do not have all files: those where a file failed, those that were left out, and
// those that were not begun.
func missingText(missing, failed, left int, why string) string {
	switch {
	case failed == missing:
		return fmt.Sprintf("%d failed", failed)
	case left == missing:
		return fmt.Sprintf("%d left: %s", left, why)
	case left == 0:
		return fmt.Sprintf("%d left, of which %d failed", missing, failed)
	}
	return fmt.Sprintf("%d left, of which %d failed and %s %s", missing, failed, phrase.Counted(int64(left), "is", "are"), why)
}

// leftTexts says which shards are left, those with the same reason together: a server
// that is closed has thousands.
func leftTexts(left []migrate.Left) (texts []string) {
	byWhy := map[string][]int64{}
	var whys []string
	for _, l := range left {
		if byWhy[l.Why] == nil {
			whys = append(whys, l.Why)
		}
		byWhy[l.Why] = append(byWhy[l.Why], l.Shard)
	}
	for _, why := range whys {
		texts = append(texts, migrate.Ranges(byWhy[why])+": "+why)
	}
	return texts
}

// shardsAre begins a sentence about some shards.
func shardsAre(n int) string {
	if n == 1 {
		return "1 shard is"
	}
	return fmt.Sprintf("%d shards are", n)
}

// say says that all was done.
func (a *applied) say(out io.Writer, asJSON bool) error {
	files := map[string]bool{}
	for _, r := range a.results {
		for _, f := range r.Applied {
			files[f.Name] = true
		}
	}
	switch {
	case asJSON:
		return nil
	case a.begun == 0:
		_, err := fmt.Fprintln(out, "there is nothing to apply: all shards have all files")
		return err
	}
	_, err := fmt.Fprintf(out, "%s applied to %s\n", phrase.Plural(len(files), "file"), phrase.Plural(a.begun, "shard"))
	return err
}

// applyHint says what to do after an error of a shard, or where there was none and
// shards are left.
func applyHint(f *ui.Failure, err error) *ui.Failure {
	if err == nil {
		return f.Hint("to see what to do about what is not served: firn shard doctor; then run it again")
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "25001":
			return f.Hint("put it into a file of its own, whose first line is: -- firn: no transaction")
		case "55P03":
			return f.Hint("run it again when less is going on, or with a longer --lock-timeout")
		}
	}
	return f.Hint("put it right and run it again: it continues where it stopped; --status shows how far it is")
}

// An applyPlanLine says which shards are to get a file, as --json prints it.
type applyPlanLine struct {
	File   string  `json:"file"`
	Shards []int64 `json:"shards"`
}

// printApplyPlan prints what a run would do.
func printApplyPlan(cmd *cobra.Command, plan *migrate.Plan, files []migrate.File) error {
	var lines []applyPlanLine
	for _, f := range files {
		lines = append(lines, applyPlanLine{f.Name, plan.Shards(f)})
	}
	for _, text := range leftTexts(plan.Left) {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s", text)
	}
	return ui.Emit(cmd.OutOrStdout(), wantsJSON(cmd), []string{"FILE", "SHARDS TO GET IT"}, lines, func(l applyPlanLine) []any {
		return []any{l.File, len(l.Shards)}
	})
}

// A fileLine says which shards have a file, as --json prints it.
type fileLine struct {
	Number  int64   `json:"number"`
	File    string  `json:"file"`
	Applied int     `json:"applied"`
	Begun   []int64 `json:"begun,omitempty"`   // outside of a transaction, and did not end
	Changed []int64 `json:"changed,omitempty"` // had another text
	Left    []int64 `json:"left,omitempty"`
}

// printApplied prints which shards have which files.
func printApplied(cmd *cobra.Command, state *migrate.State, files []migrate.File, asked func(int64) bool) error {
	var lines []fileLine
	for _, f := range files {
		u := state.Uses(f, asked)
		lines = append(lines, fileLine{f.Number, f.Name, len(u.Applied), u.Begun, u.Changed, u.Left})
	}
	header := []string{"FILE", "APPLIED", "LEFT", "BEGUN", "CHANGED", "SHARDS LEFT"}
	return ui.Emit(cmd.OutOrStdout(), wantsJSON(cmd), header, lines, func(l fileLine) []any {
		return []any{l.File, l.Applied, len(l.Left), len(l.Begun), len(l.Changed), phrase.Numbers(l.Left)}
	})
}
