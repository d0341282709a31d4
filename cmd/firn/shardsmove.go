package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
)

func newShardsMove() *cobra.Command {
	var o shardsMove
	cmd := &cobra.Command{
		Use:   "move LIST --to SERVER",
		Short: "Move shards to another server while they are in use",
		Long: `Move shards to another server while they are in use. At any instant one server serves a
shard, or, while it changes over, none: firn shards status says which, how far the copy is,
and what to type.

Rows are copied by logical replication, the copy is compared with the original, and then each shard changes over:
for a moment, less than a tenth of a second as a rule, nobody can write to it. Programs
that use the library follow; what they were doing is done again on the new server.

A shard changes over only in a moment in which nobody has had a lock on its tables for
longer than 30 ms. If there is none within --lock-wait, it says who has.

Broken off at any instant, it goes on where it was when it is run again, from any host
that reaches both servers. Until a shard has changed over, firn shards abort gives the
move up. After that the old copy is kept up to date: firn shards revert goes back to it,
and firn shards finish drops it.

The exit code is 3 if something speaks against the move or rows differ, and 1 if it came to
no end. With --json there is an object for each shard that is where it was to go.

Needed: wal_level = logical on both servers, a superuser (or, from PostgreSQL 16 on, a
member of pg_create_subscription), pg_dump of the source's version or newer here, and
that the servers reach each other as this host reaches them, or as --reach says.`,
		Example: `  firn shards move 17 --to b --dry-run
  firn shards move 17-40,99 --to b
  firn shards move 17 --to b --reach a=postgres://firn@10.0.0.1/app --reach b=postgres://firn@10.0.0.2/app`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return o.run(ctx, cmd, args[0])
		},
	}
	addServers(cmd)
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.to, "to", "", "the server that they are to be on")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "say what would be done, and do nothing")
	return cmd
}

func newShardsRevert() *cobra.Command {
	var o shardsMove
	cmd := &cobra.Command{
		Use:   "revert LIST",
		Short: "Take shards back to the server that they were moved from",
		Long: `Take shards back to the server that they were moved from, with all that was written
since: its copy has been kept up to date. That takes a moment, and copies nothing. It
can be done until firn shards finish has dropped the copy, and moved again afterwards.

Broken off at any instant, it goes on when it is run again.`,
		Example: `  firn shards revert 17`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return o.revert(ctx, cmd, args[0])
		},
	}
	addServers(cmd)
	o.addFlags(cmd)
	return cmd
}

func newShardsAbort() *cobra.Command {
	var o shardsMove
	return o.ending(&cobra.Command{
		Use:   "abort LIST",
		Short: "Give up moves of shards that have not changed over",
		Long: `Give up moves of shards that have not changed over: what was copied is dropped, on both
servers nothing is left of the move, and the shards stay where they are, and serve
meanwhile. Shards that were moved together are given up together; those of them that have
changed over stay where they are now: firn shards revert takes them back.

Where the server that they were to come to is gone for good, --gone says so: the one that
has them does without it, and should it come back after all, it opens nothing. Nothing is
done while it answers.`,
		Example: `  firn shards abort 17
  firn shards abort 17 --gone b`,
	}, "given up", "the server that --gone names is gone for good", (*move.Mover).Abort)
}

func newShardsFinish() *cobra.Command {
	var o shardsMove
	return o.ending(&cobra.Command{
		Use:   "finish LIST",
		Short: "Drop the old copies of shards that have moved",
		Long: `Drop the copies that shards have left on the server that they moved from, which are kept
up to date until then. It says how large they are and asks, or wants --yes: afterwards the
shards cannot be taken back. A program that still reads the old copy gets an error.

Where that server is gone for good, --gone says so: nothing is kept for it any more.`,
		Example: `  firn shards finish 17
  firn shards finish 17-40 --yes
  firn shards finish 17 --gone a`,
	}, "finished", "the old copies are to be dropped", (*move.Mover).Finish)
}

type shardsMove struct {
	to      string
	gone    string
	dry     bool
	yes     bool
	options move.Options
}

func (o *shardsMove) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.options.LockWait, "lock-wait", time.Minute, "how long a shard may be in use by long transactions before it is given up")
	flags.DurationVar(&o.options.Stall, "stall", 2*time.Minute, "how long a copy may come no farther before it is given up")
	flags.StringSliceVar(&o.options.Consumers, "consumers-know", nil, "a `PUBLICATION` with tables of the shards whose consumers know of the move, and read from the other server too")
	o.addReach(cmd)
}

func (o *shardsMove) addReach(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&o.options.Addresses, "reach", nil, "how the other server reaches this one, as `SERVER=URL` (as this host does)")
	cmd.Flags().Lookup("reach").DefValue = "" // none is shown
}

// ending makes a command of one that ends moves.
func (o *shardsMove) ending(cmd *cobra.Command, what, yes string, end func(*move.Mover, context.Context, []int64) ([]int64, error)) *cobra.Command {
	cmd.Args = arguments(1, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		if o.gone != "" {
			return signalled(ctx, o.abandon(ctx, cmd, args[0], what))
		}
		return signalled(ctx, o.end(ctx, cmd, args[0], what, end))
	}
	addServers(cmd)
	cmd.Flags().StringVar(&o.gone, "gone", "", "the other server of the moves, which does not answer and is gone for good")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask: "+yes)
	return cmd
}

func (o *shardsMove) run(ctx context.Context, cmd *cobra.Command, list string) error {
	servers, shards, err := o.find(ctx, cmd, list)
	if err != nil {
		return signalled(ctx, err)
	}
	if o.to == "" {
		return bad("--to is missing").hint("firn shards move %s --to SERVER", list)
	}
	if !slices.ContainsFunc(servers, func(s shard.Server) bool { return s.Name == o.to }) {
		return unknownServer(o.to, servers)
	}
	legs, err := move.Legs(ctx, servers, shards, o.to)
	if err != nil {
		return signalled(ctx, moveFailure(err))
	}
	if err := o.plan(ctx, cmd, legs); err != nil || o.dry {
		return signalled(ctx, err)
	}
	moved, err := o.each(ctx, cmd, inParts(legs), (*move.Mover).Move)
	if ctx.Err() != nil {
		defer sayBrokenOff(ctx, cmd, servers, shards, "firn shards move "+list+" --to "+o.to)
	} else if err != nil {
		warnNowhere(ctx, cmd, servers, shards)
	}
	return o.report(ctx, cmd, list, moved, err, "firn shards move "+list+" --to "+o.to)
}

func (o *shardsMove) revert(ctx context.Context, cmd *cobra.Command, list string) error {
	servers, shards, err := o.find(ctx, cmd, list)
	if err != nil {
		return signalled(ctx, err)
	}
	legs, err := move.Under(ctx, servers, shards)
	if err != nil {
		return signalled(ctx, moveFailure(err))
	}
	if len(legs) == 0 {
		return failed("no move of shard %s is there to be taken back", list).hint("firn shards status; where a move was finished, move it back: firn shards move %s --to SERVER", list)
	}
	moved, err := o.each(ctx, cmd, legs, (*move.Mover).Revert)
	if ctx.Err() != nil {
		defer sayBrokenOff(ctx, cmd, servers, shards, "firn shards revert "+list)
	} else if err != nil {
		warnNowhere(ctx, cmd, servers, shards)
	}
	return o.report(ctx, cmd, list, moved, err, "firn shards revert "+list)
}

// find are the servers, and the shards of a list.
func (o *shardsMove) find(ctx context.Context, cmd *cobra.Command, list string) ([]shard.Server, []int64, error) {
	var asked shardNumbers
	if err := asked.Set(list); err != nil {
		return nil, nil, bad("%w", err).hint("firn shards %s 17, or 17-40,99", cmd.Name())
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return nil, nil, err
	}
	for name := range o.options.Addresses {
		if !slices.ContainsFunc(servers, func(s shard.Server) bool { return s.Name == name }) {
			return nil, nil, unknownServer(name, servers)
		}
	}
	m, err := mapOf(ctx, servers)
	if err != nil {
		return nil, nil, err
	}
	var shards []int64
	for _, r := range m.Routes {
		if asked.has(r.Shard) {
			shards = append(shards, r.Shard)
		}
	}
	if len(shards) == 0 {
		return nil, nil, bad("there is no shard %s", &asked).hint("firn shards ls")
	}
	return servers, shards, nil
}

// mapOf is what all servers say of their shards.
func mapOf(ctx context.Context, servers []shard.Server) (*shard.Map, error) {
	views := make(map[string]*shard.View)
	for _, a := range shard.Ask(ctx, servers) {
		if a.Err != nil {
			return nil, a.Err
		}
		views[a.Server.Name] = a.View
	}
	return shard.MapOf(views)
}

// plan says what is to be done, and what speaks against it.
func (o *shardsMove) plan(ctx context.Context, cmd *cobra.Command, legs []move.Leg) error {
	var refused []move.Refusal
	for _, l := range legs {
		if len(l.New) == 0 { // it goes on
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
		return &failure{code: exitFound, err: &move.RefusedError{Refusals: refused}}
	}
	return nil
}

// together is how many shards one move takes: all are copied before the first changes over,
// and all their tables are locked when it begins, for which a server has room.
const together = 32

// inParts are legs again, of which none begins to move more shards than that.
func inParts(legs []move.Leg) []move.Leg {
	var parts []move.Leg
	for _, l := range legs {
		goOn := slices.DeleteFunc(slices.Clone(l.Shards), func(n int64) bool { return slices.Contains(l.New, n) })
		if len(goOn) > 0 {
			parts = append(parts, move.Leg{Source: l.Source, Target: l.Target, Shards: goOn})
		}
		for some := range slices.Chunk(l.New, together) {
			parts = append(parts, move.Leg{Source: l.Source, Target: l.Target, Shards: some, New: some})
		}
	}
	return parts
}

// each moves the shards of all legs, one after the other.
func (o *shardsMove) each(ctx context.Context, cmd *cobra.Command, legs []move.Leg, way func(*move.Mover, context.Context, []int64) ([]move.Moved, error)) ([]movedLine, error) {
	var all []movedLine
	shards := 0
	for _, l := range legs {
		shards += len(l.Shards)
	}
	for _, l := range legs {
		var far atomic.Pointer[move.Progress]
		far.Store(&move.Progress{Phase: move.Preparing, Shards: shards, Done: len(all)})
		show := showLine(true, cmd.ErrOrStderr(), func(time.Duration) string { return moveLine(*far.Load()) })
		options := o.options
		options.Progress = func(p move.Progress) {
			p.Shards, p.Done = shards, p.Done+len(all)
			far.Store(&p)
		}
		m := move.New(l.Source, l.Target, &options)
		moved, err := way(m, ctx, l.Shards)
		m.Close()
		show.stop()
		from, to := l.Source.Name, l.Target.Name
		if o.to == "" {
			from, to = to, from
		}
		for _, one := range moved {
			all = append(all, newMovedLine(one, from, to))
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// A movedLine is a shard that has moved, as --json prints it.
type movedLine struct {
	Shard int64   `json:"shard"`
	From  string  `json:"from"`
	To    string  `json:"to"`
	Rows  int64   `json:"rows"`
	Pause float64 `json:"pause_ms"` // 0: another run let it go
}

func newMovedLine(m move.Moved, from, to string) movedLine {
	l := movedLine{Shard: m.Shard, From: from, To: to, Pause: float64(m.Pause.Microseconds()) / 1000}
	for _, n := range m.Rows {
		l.Rows += n
	}
	return l
}

// report prints what has moved, and what to type next.
func (o *shardsMove) report(ctx context.Context, cmd *cobra.Command, list string, moved []movedLine, err error, again string) error {
	out := cmd.OutOrStdout()
	if wantsJSON(cmd) {
		enc := json.NewEncoder(out)
		for _, l := range moved {
			if err := enc.Encode(l); err != nil {
				return err
			}
		}
	} else if len(moved) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SHARD\tFROM\tTO\tROWS\tPAUSE")
		for _, l := range moved {
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%.0f ms\n", l.Shard, l.From, l.To, l.Rows, l.Pause)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		f := moveFailure(err)
		if ctx.Err() != nil {
			return signalled(ctx, f)
		}
		if f.code == exitFailed && !errors.As(err, new(*move.NoWayBackError)) && !errors.As(err, new(*move.StuckError)) {
			f = f.hint("to go on: %s; to give up what has not changed over: firn shards abort %s", again, list)
		}
		return f
	case wantsJSON(cmd):
		return nil
	case len(moved) == 0:
		_, err = fmt.Fprintln(out, "there is nothing to do: they are there")
	case o.to == "":
		_, err = fmt.Fprintf(out, "\n%s\n", hinter{cmd}.compose(fmt.Sprintf("To drop the other copy: firn shards abort %s; to go there again: firn shards move %[1]s --to %s", list, moved[0].From)))
	default:
		_, err = fmt.Fprintf(out, "\n%s\n", hinter{cmd}.compose(fmt.Sprintf("To drop the old copy: firn shards finish %s; to go back to it: firn shards revert %[1]s", list)))
	}
	return err
}

// end ends moves.
func (o *shardsMove) end(ctx context.Context, cmd *cobra.Command, list, what string, end func(*move.Mover, context.Context, []int64) ([]int64, error)) error {
	servers, shards, err := o.find(ctx, cmd, list)
	if err != nil {
		return err
	}
	legs, err := move.Under(ctx, servers, shards)
	if err != nil {
		return moveFailure(err)
	}
	if cmd.Name() == "finish" {
		if err := o.askToDrop(ctx, cmd, legs); err != nil {
			return err
		}
	}
	if len(legs) == 0 {
		if err := move.Sweep(ctx, servers); err != nil {
			return moveFailure(err)
		}
	}
	var all []int64
	for _, l := range legs {
		m := move.New(l.Source, l.Target, &o.options)
		ended, err := end(m, ctx, l.Shards)
		m.Close()
		all = append(all, ended...)
		if ctx.Err() != nil {
			printWarning(cmd.ErrOrStderr(), "it was broken off, and the shards serve where they are; to go on: %s", hinter{cmd}.compose(fmt.Sprintf("firn shards %s %s", cmd.Name(), list)))
		}
		if errors.As(err, new(*move.StuckError)) { // it says what to do instead
			return moveFailure(err)
		} else if err != nil {
			return moveFailure(err).hint("to go on: firn shards %s %s", cmd.Name(), list)
		}
	}
	return printEnded(cmd, all, what)
}

// askToDrop says which copies are dropped, and asks. Where one of the shards has no old copy
// that may be dropped, it refuses before anything is done.
func (o *shardsMove) askToDrop(ctx context.Context, cmd *cobra.Command, legs []move.Leg) error {
	var drops []string
	for _, l := range legs {
		m := move.New(l.Source, l.Target, &o.options)
		old, err := m.OldCopies(ctx, l.Shards)
		m.Close()
		if err != nil {
			return moveFailure(err)
		}
		if len(old) == 0 {
			continue
		}
		bytes, err := check.CopyBytes(ctx, l.Source, old)
		if err != nil {
			return err
		}
		copies := "copy of shard "
		if len(old) > 1 {
			copies = "copies of shards "
		}
		drops = append(drops, fmt.Sprintf("the old %s%s on %s (%s)", copies, ranges(old), l.Source.Name, byteText(bytes)))
	}
	if len(drops) == 0 || o.yes {
		return nil
	}
	question := "This drops " + strings.Join(drops, " and ") + ". Afterwards firn shards revert cannot take them back. Drop them?"
	return mustAsk(ctx, cmd, question, "the same command with --yes")
}

// printEnded prints the shards whose moves have ended.
func printEnded(cmd *cobra.Command, all []int64, what string) error {
	out := cmd.OutOrStdout()
	if wantsJSON(cmd) {
		enc := json.NewEncoder(out)
		for _, n := range all {
			if err := enc.Encode(struct {
				Shard int64 `json:"shard"`
			}{n}); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := fmt.Fprintf(out, "%s %s\n", plural(len(all), "move"), what)
	return err
}

// moveFailure is an error of package move with what to do about it.
func moveFailure(err error) *failure {
	f := failed("%w", err)
	var wrong *move.WrongError
	var different *move.DifferentError
	var under *move.UnderwayError
	var held *move.HoldersError
	var behind *move.StandbyError
	var unreached *move.UnreachedError
	var backless *move.NoWayBackError
	var stuck *move.StuckError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, new(*move.RefusedError)):
		f.code = exitFound
		return f
	case errors.As(err, &stuck) && stuck.Do != "":
		return f.hint("%s", stuck.Do)
	case errors.As(err, &unreached):
		return f.hint("--reach %s=postgres://USER@HOST/DATABASE says how %s reaches it; its pg_hba.conf, and firewalls between the two, have to allow that", unreached.Other, unreached.Server)
	case errors.As(err, &behind):
		return f.hint("wait for it; or, if that standby is not needed, end it")
	case errors.As(err, &wrong):
		f.code = exitFound
		return f.hint("to take it back to the copy that it came from: firn shards revert %d", wrong.Shard)
	case errors.As(err, &different):
		f.code = exitFound
		return f.hint("something has written to the copy: firn shards abort LIST, and move it again")
	case errors.As(err, &under):
		return f.hint("firn shards finish %d, or firn shards revert %[1]d, or firn shards abort %[1]d", under.Shard)
	case errors.As(err, &held):
		return f.hint("end them, or give them more time: --lock-wait 10m")
	case errors.Is(err, move.ErrNoMember):
		return f.hint("to make it one of the cluster: firn shards add-server NAME=postgres://USER@HOST/DATABASE")
	case errors.As(err, &backless):
		return withDetail(err).hint("firn shards finish %d, then firn shards move %[1]d --to %s", backless.Shard, backless.Server)
	case errors.As(err, &pg) && pg.Code == "ID008" && pg.Hint == "":
		return f.hint("--reach SERVER=postgres://USER@HOST/DATABASE says how the other server reaches one; without it, that is as this host does")
	case errors.As(err, &pg) && pg.Code == "ID008":
		return withDetail(err).hint("%s", pg.Hint)
	case errors.As(err, &pg) && pg.Code == "2BP01":
		return f.hint("%s", pg.Hint)
	case errors.As(err, &pg) && pg.Code == "42501": // its publications and subscriptions are another role's
		return f.hint("by the role that began the move: --server SERVER=postgres://ROLE@HOST/DATABASE")
	case errors.Is(err, move.ErrNoDump):
		return f.hint("apt-get install postgresql-client, in that version")
	}
	return f
}

// withDetail is a server's error with its detail: which lines of two schemas differ.
func withDetail(err error) *failure {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Detail == "" {
		return failed("%w", err)
	}
	return failed("%w\n%s", err, pg.Detail)
}

// printMovePlan prints what is to be moved.
func printMovePlan(out io.Writer, p *move.Plan, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(newMovePlanLine(p))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SHARD\tFROM\tTO\tTABLES\tROWS\tSIZE")
	for _, s := range p.Shards {
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\n", s.Shard, p.Source, p.Target, s.Tables, count(s.Rows), byteText(s.Bytes))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s to copy", byteText(p.Bytes()))
	if len(p.Refusals) == 0 { // else nothing was measured
		fmt.Fprintf(out, "; %s writes %s of log a second; pause of each about %s", p.Source, byteText(int64(p.WALRate)), p.Pause.Round(time.Millisecond))
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

// moveLine says how far a move is, in less than 80 characters.
func moveLine(p move.Progress) string {
	return fmt.Sprintf("%d of %s moved; %s", p.Done, plural(p.Shards, "shard"), phaseLine(p))
}

// phaseLine says how far the phase of a move is, what matters most first.
func phaseLine(p move.Progress) string {
	var b strings.Builder
	b.WriteString(string(p.Phase))
	if p.BytesTotal > 0 { // both are estimates
		fmt.Fprintf(&b, " %d %% of %s", min(100, 100*p.Bytes/p.BytesTotal), byteText(p.BytesTotal))
	}
	if p.Left > 0 {
		fmt.Fprintf(&b, ", %s left", p.Left.Round(time.Second))
	}
	if p.Lag > 0 {
		fmt.Fprintf(&b, ", %s behind", byteText(p.Lag))
	}
	switch {
	case p.Rows > 0 && p.Phase == move.Verifying:
		fmt.Fprintf(&b, ", %s rows compared", count(p.Rows))
	case p.Rows > 0:
		fmt.Fprintf(&b, ", %s rows", count(p.Rows))
	}
	return b.String()
}
