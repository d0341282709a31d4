package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

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

// A carried is what became of shards that were to move.
type carried struct {
	servers []topology.Server
	shards  []int64
	list    string // those of them that are in moves
	again   string // the command
	moved   []movedLine
	err     error
}

// report prints what has moved, and what to type next.
func (o *shardsMove) report(ctx context.Context, cmd *cobra.Command, c carried) error {
	if ctx.Err() != nil {
		defer sayBrokenOff(ctx, cmd, c.servers, c.shards, c.again)
	}
	out := cmd.OutOrStdout()
	err := printMoved(out, c.moved, wantsJSON(cmd))
	switch {
	case err != nil:
		return err
	case c.err != nil && ctx.Err() != nil:
		return moveFailure(c.err)
	case c.err != nil:
		return c.failure(ctx, cmd)
	case wantsJSON(cmd):
		return nil
	case len(c.moved) == 0:
		_, err = fmt.Fprint(out, "there is nothing to do: they are there\n", hinter{cmd: cmd}.compose(c.left(ctx, o.to == "")))
	case o.to == "":
		_, err = fmt.Fprintf(out, "\n%s\n", hinter{cmd: cmd}.compose(fmt.Sprintf("To drop the other copy: firn shard abort %s; to go there again: firn shard move %[1]s --to %s", c.list, c.moved[0].From)))
	default:
		_, err = fmt.Fprintf(out, "\n%s\n", hinter{cmd: cmd}.compose(fmt.Sprintf("To drop the old copy: firn shard finish %s; to go back to it: firn shard revert %[1]s", c.list)))
	}
	return err
}

// left says what the moves of shards have left that are where they were to be.
func (c carried) left(ctx context.Context, back bool) string {
	moves, err := move.Moves(ctx, c.servers)
	if err != nil {
		return ""
	}
	return arrivedText(slices.DeleteFunc(moves, func(f move.Move) bool {
		return !slices.ContainsFunc(f.Shards, func(n int64) bool { return slices.Contains(c.shards, n) })
	}), c.shards, back)
}

func printMoved(out io.Writer, moved []movedLine, asJSON bool) error {
	if len(moved) == 0 {
		return nil
	}
	return ui.Emit(out, asJSON, []string{"SHARD", "FROM", "TO", "ROWS", "PAUSE"}, moved, func(l movedLine) []any {
		return []any{l.Shard, l.From, l.To, l.Rows, fmt.Sprintf("%.0f ms", l.Pause)}
	})
}

// failure is the error with what to type. Where a shard was let go, nothing but its opening helps:
// nobody can give the move up.
func (c carried) failure(ctx context.Context, cmd *cobra.Command) *ui.Failure {
	f := moveFailure(c.err)
	waiting, unknown := warnNowhere(ctx, cmd, c.servers, c.shards)
	var ended *move.EndedError
	var parted *move.PartedError
	switch {
	case errors.As(c.err, &parted) && !errors.As(c.err, new(*move.NoWayBackError)): // what status says
		if one := oneWay(ctx, c.servers, parted.Shard); one != nil {
			f = withDetail(c.err).Hint("%s", nextText(*one))
		}
	case errors.As(c.err, &ended):
		again := c.again
		if strings.Contains(again, " revert ") { // whoever ended the move may have dropped the old copy
			again = "firn shard move " + c.list + " --to SERVER"
		}
		f = f.Hint("to see which server serves it: firn shard status").Hint("to move it all the same: %s", again)
	case f.Code != ui.ExitFailed || errors.As(c.err, new(*move.OtherMoveError)) || ofPause(c.err) || ofCopy(c.err) || errors.As(c.err, new(*move.NoWayBackError)) || errors.As(c.err, new(*move.StuckError)), errors.As(c.err, new(*move.InWayError)), ofChange(c.err): // it says what to do
	case len(waiting) == 0 && lacksRight(c.err): // nothing else helps this role
	case len(waiting) > 0:
		for _, one := range waiting {
			f = f.Hint("%s", nextText(one))
		}
	case unknown != nil:
		f = f.Hint("to continue: %s; to see which server serves the shards: firn shard status", c.again)
	default:
		if one := oneWay(ctx, c.servers, c.shards...); one != nil {
			return f.Hint("%s", nextText(*one))
		}
		f = f.Hint("to continue: %s; to abort what has not changed over: firn shard abort %s", c.again+whichAddress(c.err), c.list)
	}
	return f
}

// whichAddress is what the command that continues a move says in place of the address that has failed.
func whichAddress(err error) string {
	var unreached *move.UnreachedError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &unreached):
		return fmt.Sprintf(" --address %s=postgres://USER@HOST/DATABASE", unreached.Other)
	case errors.As(err, &pg) && pg.Code == "ID008":
		return " --address SERVER=postgres://USER@HOST/DATABASE"
	}
	return ""
}

// A moveDoer is an error about rows, a [move.WrongError] or [move.SurplusError], that says what to do.
type moveDoer interface {
	error
	Do() string
}

// moveFailure is an error of package move with what to do about it.
func moveFailure(err error) *ui.Failure {
	f := ui.Failed("%w", err)
	var rows moveDoer
	var different *move.DifferentError
	var under *move.UnderwayError
	var other *move.OtherMoveError
	var held *move.HoldersError
	var behind *move.StandbyError
	var unreached *move.UnreachedError
	var backless *move.NoWayBackError
	var stuck *move.StuckError
	var way *move.InWayError
	var refused *move.RefusedError
	var unasked *move.UnaskedError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &unasked):
		return f.Hint("%s", check.UnaskedDo([]string{unasked.Server})).Hint("if it is permanently lost: %s", lostPage)
	case ofPause(err):
		return pauseHints(f, err)
	case errors.As(err, &way):
		return f.Hint("to end the move, which leaves that schema as it is: firn shard abort %d", way.Shard).Hint("then, before the shard is moved again: %s", way.Do)
	case errors.As(err, &refused):
		return refusedMove(refused, "")
	case errors.As(err, &stuck) && stuck.Do != "":
		return f.Hint("%s", stuck.Do)
	case errors.As(err, &unreached):
		return f.Hint("the same command with --address %s=postgres://USER@HOST/DATABASE, an address at which server %s reaches server %[1]s; pg_hba.conf of %[1]s, and firewalls between the two, must allow that", unreached.Other, unreached.Server)
	case errors.As(err, &behind):
		return f.Hint("wait for it; or, if that standby is not needed, end it")
	case errors.As(err, &rows):
		f.Code = ui.ExitFound
		return f.Hint("%s", rows.Do())
	case errors.As(err, &backless):
		f := withDetail(err)
		if errors.As(err, &different) {
			f.Code = ui.ExitFound
		}
		return f.Hint("firn shard finish %d, then firn shard move %[1]d --to %s", backless.Shard, backless.Server)
	case errors.As(err, &different):
		f.Code = ui.ExitFound
		return f.Hint("something has written to the copy: firn shard abort LIST, and move it again")
	case errors.As(err, &other):
		return f.Hint("to see how far it is: firn shard status").
			Hint("to continue it, if no other process does: firn shard move %d --to %s; to abort it instead: firn shard abort %[1]d", other.Shard, other.Target)
	case errors.As(err, &under):
		return f.Hint("to see what ends it: firn shard status")
	case autovacuumDo(err) != "":
		return f.Hint("%s", autovacuumDo(err)).Hint("or wait until it has ended: --lock-wait 10m")
	case errors.As(err, &held):
		return f.Hint("end them, or give them more time: --lock-wait 10m")
	case ofCopy(err):
		var of *topology.ServerError
		errors.As(err, &of)
		return f.Hint("%s. Then, to see what comes next: firn shard status", check.ReopenCopy(of.Server))
	case errors.As(err, &pg) && pg.Code == "ID008" && !ofChange(err):
		return f.Hint("the same command with --address SERVER=postgres://USER@HOST/DATABASE, an address at which the other server reaches SERVER; without it, the other server takes the address that this command takes")
	case ofChange(err):
		return withDetail(err).Hint("%s", pg.Hint)
	case errors.As(err, &pg) && pg.Code == "2BP01":
		return f.Hint("%s", pg.Hint)
	case errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "XX000"): // what it was at work on is gone
		return f.Hint("another command may have ended the move meanwhile; to see how it stands: firn shard status")
	case errors.As(err, &pg) && pg.Code == "42501": // its publications and subscriptions are another role's
		return f.Hint(whoseMove + ": " + sameCommand)
	case errors.Is(err, move.ErrNoDump):
		return f.Hint("apt-get install postgresql-client, in that version")
	}
	return f
}

// autovacuumDo is what to do about an autovacuum that is in the way of a move, or "" where none is.
func autovacuumDo(err error) string {
	var held *move.HoldersError
	var busy *move.BusyError
	switch {
	case errors.As(err, &held):
		return held.Do
	case errors.As(err, &busy):
		return busy.Do
	}
	return ""
}

// ofCopy reports whether a server has refused because it is a copy: to go on, or to give up, helps
// only when it was reopened.
func ofCopy(err error) bool {
	var of *topology.ServerError
	var pg *pgconn.PgError
	return errors.As(err, &of) && errors.As(of.Err, &pg) && pg.Code == "ID003"
}

// ofChange reports whether a server has refused because the schema was changed since the copy began:
// the same move would be refused again.
func ofChange(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "ID008" && pg.Hint != ""
}

// withDetail is a server's error with its detail: which lines of two schemas differ.
func withDetail(err error) *ui.Failure {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Detail == "" {
		return ui.Failed("%w", err)
	}
	return ui.Failed("%w\n%s", err, pg.Detail)
}

// moveLine says how far a move is, in less than 80 characters.
func moveLine(p move.Progress) string {
	return fmt.Sprintf("%d of %s moved; %s", p.Done, phrase.Plural(p.Shards, "shard"), phaseLine(p))
}

// phaseLine says how far the phase of a move is, what matters most first.
func phaseLine(p move.Progress) string {
	var b strings.Builder
	b.WriteString(string(p.Phase))
	if p.BytesTotal > 0 { // both are estimates
		fmt.Fprintf(&b, " %d %% of %s", min(100, 100*p.Bytes/p.BytesTotal), phrase.Bytes(p.BytesTotal))
	}
	if p.Left > 0 {
		fmt.Fprintf(&b, ", %s left", p.Left.Round(time.Second))
	}
	if p.Unapplied > 0 {
		fmt.Fprintf(&b, ", %s behind", phrase.Bytes(p.Unapplied))
	}
	switch {
	case p.Rows > 0 && p.Phase == move.Verifying:
		fmt.Fprintf(&b, ", %s compared", phrase.Counted(p.Rows, "row", "rows"))
	case p.Rows > 0:
		fmt.Fprintf(&b, ", %s", phrase.Counted(p.Rows, "row", "rows"))
	}
	return b.String()
}
