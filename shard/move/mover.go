package move

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard"
)

// Options say how shards are moved. The zero value is the default.
type Options struct {
	// LockWait is how long a moment is waited for in which nobody has written to a
	// shard for longer than 30 ms (1 m).
	LockWait time.Duration

	// Lag is how far the copy may be behind when the source lets a shard go (50 ms).
	Lag time.Duration

	// Stall is for how long a copy may come no farther (2 m).
	Stall time.Duration

	// Patience is how long a server is waited for that does not answer (1 m).
	Patience time.Duration

	// Addresses are how a server is reached by the other one, by name, in the form of
	// libpq: of those that are reached otherwise than from here.
	Addresses map[string]string

	// Consumers are publications of others whose readers know that the shards go to
	// another server, and read from there too. Any other one that has tables of a shard
	// is refused.
	Consumers []string

	// Progress is told how far the work is, from one goroutine.
	Progress func(Progress)
}

func (o *Options) orDefault() Options {
	var v Options
	if o != nil {
		v = *o
	}
	v.LockWait = cmp.Or(v.LockWait, time.Minute)
	v.Lag = cmp.Or(v.Lag, 50*time.Millisecond)
	v.Stall = cmp.Or(v.Stall, 2*time.Minute)
	v.Patience = cmp.Or(v.Patience, defaultPatience)
	if v.Progress == nil {
		v.Progress = func(Progress) {}
	}
	return v
}

// Progress says how far a batch is.
type Progress struct {
	Phase  Phase
	Shards int // of the batch
	Done   int // that are where they are to be

	Rows, RowsTotal   int64 // copied or compared, and how many there are by an estimate
	Bytes, BytesTotal int64 // copied
	Lag               int64 // bytes of the log that the copy has not applied

	Left time.Duration // until all is copied, at the rate so far; 0: nobody knows
}

// A Phase is a part of a move, for people.
type Phase string

const (
	Preparing Phase = "prepare"
	Copying   Phase = "copy"
	Verifying Phase = "verify"
	Cutting   Phase = "cutover"
	Counting  Phase = "count"
	Cleaning  Phase = "clean up"
)

// A Moved is a shard that is where it was to go.
type Moved struct {
	Shard int64
	Pause time.Duration    // for which nobody could write; zero: it was let go by another run
	Rows  map[string]int64 // by table, as counted on both; nil where nobody could count
}

// A Mover moves batches of shards from a source to a target. It is for one goroutine.
type Mover struct {
	source, target *end
	batch          string // that it is at work on
	options        Options

	progress Progress
	since    time.Time      // this phase began
	begun    map[int64]bool // by this run
	verified map[int64]bool
	slotless map[string]time.Time // copies without their slots, and since when
	far      reach
	moved    []Moved
	wrong    []error
}

// An end is one of the two servers.
type end struct {
	shard.Server
	given shard.Server
	conn  *pgx.Conn
	try   time.Duration // how long writers may be kept waiting by a try to let a shard go
}

// newEnd is a server that is told what to do in one message each.
func newEnd(s shard.Server) *end {
	config := s.Config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return &end{Server: shard.Server{Name: s.Name, Config: config}, given: s, try: lockTime}
}

// New makes a mover. Source and target are those of the move, also where it is to be
// taken back.
func New(source, target shard.Server, o *Options) *Mover {
	return &Mover{
		source: newEnd(source), target: newEnd(target), options: o.orDefault(),
		verified: make(map[int64]bool), slotless: make(map[string]time.Time),
	}
}

// Close ends its connections.
func (m *Mover) Close() {
	for _, e := range []*end{m.source, m.target} {
		if e.conn != nil {
			e.conn.Close(context.Background())
		}
	}
}

// newWord is a word that there never was, of 12 letters and digits.
func newWord() string {
	b := make([]byte, 6)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// Move moves shards to the target, or goes on with that. It returns those that are there;
// of them some may have moved before.
func (m *Mover) Move(ctx context.Context, shards []int64) ([]Moved, error) {
	return m.carry(ctx, goal{}, shards)
}

// Revert moves shards back to the source, whose copies the streams have kept up to date.
func (m *Mover) Revert(ctx context.Context, shards []int64) ([]Moved, error) {
	return m.carry(ctx, goal{back: true}, shards)
}

// carry brings shards to where they are to be.
func (m *Mover) carry(ctx context.Context, g goal, shards []int64) ([]Moved, error) {
	m.moved, m.wrong = nil, nil
	g.attempt, m.begun = newWord(), make(map[int64]bool)
	var stale *staleError
	err := m.try(ctx, g, shards)
	for begun := time.Now(); errors.As(err, &stale) && time.Since(begun) < m.options.Patience; {
		if err = pause(ctx, retryPause); err == nil {
			err = m.try(ctx, g, shards)
		}
	}
	return m.moved, errors.Join(append(m.wrong, err)...)
}

func (m *Mover) try(ctx context.Context, g goal, shards []int64) error {
	batches, err := m.batches(ctx, shards)
	if err != nil {
		return err
	}
	for _, b := range batches {
		if b.toward != "" && b.toward != m.target.Name {
			return &OtherMoveError{b.shards[0], m.source.Name, b.toward}
		}
		m.batch = cmp.Or(b.name, newWord())
		if err := m.carryBatch(ctx, g, b.shards); err != nil {
			return err
		}
	}
	return nil
}

// A batch is shards of one move.
type batch struct {
	name   string // empty: they are in none yet
	toward string // the target of that move
	shards []int64
}

// batches are the shards by the moves that they are in.
func (m *Mover) batches(ctx context.Context, shards []int64) ([]batch, error) {
	shards = slices.Compact(slices.Sorted(slices.Values(shards)))
	var f *facts
	if err := m.patiently(ctx, func() (err error) { f, err = m.look(ctx, shards); return err }); err != nil {
		return nil, err
	}
	var all []batch
	for _, p := range f.shards {
		name := cmp.Or(p.source.batch, p.target.batch)
		i := slices.IndexFunc(all, func(b batch) bool { return b.name == name })
		if i < 0 {
			i, all = len(all), append(all, batch{name: name, toward: cmp.Or(p.source.toward, p.target.toward)})
		}
		all[i].shards = append(all[i].shards, p.shard)
	}
	return all, nil
}

// whole are the facts of all shards of the batch.
func (m *Mover) whole(ctx context.Context, f *facts) (*facts, error) {
	all := numbers(f.shards)
	for _, e := range []*end{m.source, m.target} {
		var more []int64
		if err := e.conn.QueryRow(ctx, "SELECT coalesce(array_agg(shard), '{}') FROM firn.move WHERE batch = $1", m.batch).Scan(&more); err != nil {
			return nil, e.fault(err)
		}
		all = append(all, more...)
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) == len(f.shards) {
		return f, nil
	}
	return m.look(ctx, all)
}

// carryBatch does what comes next, until nothing does. What is copied is copied of all
// shards of a batch.
func (m *Mover) carryBatch(ctx context.Context, g goal, shards []int64) error {
	m.progress, m.far = Progress{Shards: len(shards)}, reach{}
	m.say(Progress{Phase: Preparing})
	for {
		var s step
		err := m.patiently(ctx, func() error {
			f, err := m.look(ctx, shards)
			if err == nil && !g.back && f.streams() != toCut {
				f, err = m.whole(ctx, f)
			}
			if err != nil {
				return err
			}
			if err := m.endedOf(g, f); err != nil {
				return err
			}
			if s, err = next(g, f); err != nil || s.do == toEnd {
				if err == nil {
					m.dropFences(ctx, g, f.shards)
				}
				return m.cure(f, err)
			}
			return m.whyNot(ctx, g, shards, m.do(ctx, g, f, s))
		})
		if err != nil || s.do == toEnd {
			return err
		}
	}
}

// An OtherMoveError says that a shard is in a move to another server, which began first.
type OtherMoveError struct {
	Shard          int64
	Source, Target string // of that move
}

func (e *OtherMoveError) Error() string {
	return fmt.Sprintf("shard %d is in another move, from %s to %s, which began first", e.Shard, e.Source, e.Target)
}

// An EndedError says that a move which this mover began was ended by somebody else. The mover does
// not begin it again: whoever gave it up was told so.
type EndedError struct{ Shard int64 }

func (e *EndedError) Error() string {
	return fmt.Sprintf("the move of shard %d was ended by another command meanwhile", e.Shard)
}

// endedOf is the error of a shard whose move has ended since this mover began it, or nil.
func (m *Mover) endedOf(g goal, f *facts) error {
	for _, p := range f.shards {
		if from, to := p.sides(g); m.begun[p.shard] && from.batch != m.batch && !to.serves() {
			return &EndedError{p.shard}
		}
	}
	return nil
}

// whyNot is the error of a step, or that the move has ended meanwhile, which may be why.
func (m *Mover) whyNot(ctx context.Context, g goal, shards []int64, err error) error {
	if err == nil || away(err) || ctx.Err() != nil {
		return err
	}
	if f, asked := m.look(ctx, shards); asked == nil {
		return cmp.Or(m.endedOf(g, f), err)
	}
	return err
}

// cure is the error of a shard that is stuck, with the command that opens it if no move can.
func (m *Mover) cure(f *facts, err error) error {
	var stuck *StuckError
	if !errors.As(err, &stuck) {
		return err
	}
	for _, p := range f.shards {
		if o, lost := m.lost(p); lost && p.shard == stuck.Shard {
			return &StuckError{stuck.Shard, stuck.Why, o.Text()}
		}
		if do := m.copyDo(p); do != "" && p.shard == stuck.Shard {
			return &StuckError{stuck.Shard, stuck.Why, do}
		}
	}
	return err
}

// do does one step.
func (m *Mover) do(ctx context.Context, g goal, f *facts, s step) error {
	switch s.do {
	case toBegin:
		return m.begin(ctx, g, s.shards)
	case toClaim:
		return m.claim(ctx, g, s.shards, true)
	case toLoad:
		return m.load(ctx, s.shards)
	case toSpeak:
		return m.speak(ctx, m.source)
	case toKeep:
		return m.keep(ctx, m.source, m.forth())
	case toListen:
		return m.listen(ctx, m.target, m.source, f.source.published)
	case toHear:
		return m.hear(ctx, m.target)
	case toSpeakBack:
		return m.speak(ctx, m.target)
	case toListenBack:
		return m.listen(ctx, m.source, m.target, f.target.published)
	case toMute:
		return m.target.call(ctx, "SELECT firn.mute($1)", m.batch)
	case toKeepBack:
		return m.keep(ctx, m.target, m.back())
	case toHearBack:
		return m.hear(ctx, m.source)
	case toWait:
		return m.wait(ctx, s.shards)
	case toCut:
		return m.verifyAndCut(ctx, g, s.shards[0])
	case toTake:
		return m.take(ctx, g, s.shards)
	case toNote:
		return m.note(ctx, g, s.shards)
	}
	return fmt.Errorf("shard: no step %s", s.do)
}

// verifyAndCut moves a shard over whose copy was compared. What has come back by the
// stream that served it is not compared again.
func (m *Mover) verifyAndCut(ctx context.Context, g goal, p pairOf) error {
	if !g.back && !m.verified[p.shard] {
		m.say(Progress{Phase: Verifying})
		// Rows of a table that was changed cannot be compared.
		if _, err := m.compareSchemas(ctx, g, p); err != nil {
			return err
		}
		o := VerifyOptions{Stream: m.forth(), Done: func(rows int64) {
			m.progress.Rows += rows
			m.options.Progress(m.progress)
		}}
		if _, err := Verify(ctx, m.source.given, m.target.given, p.source.schema, o); err != nil {
			return fmt.Errorf("shard %d: %w", p.shard, err)
		}
		m.verified[p.shard] = true
	}
	return m.backless(g, p.shard, m.cut(ctx, g, p))
}

// A NoWayBackError says that a shard does not go back to the copy that it came from, which
// is not what the shard is any more. The shard serves where it has come to.
type NoWayBackError struct {
	Shard  int64
	Server string // that has the copy
	Err    error
}

func (e *NoWayBackError) Error() string { return e.Err.Error() }
func (e *NoWayBackError) Unwrap() error { return e.Err }

// backless is an error of a shard, told from others where it is on its way back.
func (m *Mover) backless(g goal, n int64, err error) error {
	if g.back && sqlstate(err) == "ID008" {
		return &NoWayBackError{n, m.source.Name, err}
	}
	return err
}

// say tells how far it is.
func (m *Mover) say(p Progress) {
	p.Shards, p.Done = m.progress.Shards, len(m.moved)
	if p.Phase != m.progress.Phase {
		m.since = time.Now()
	}
	if p.Bytes > 0 && p.Bytes < p.BytesTotal {
		p.Left = time.Duration(float64(p.BytesTotal-p.Bytes) / float64(p.Bytes) * float64(time.Since(m.since)))
	}
	m.progress = p
	m.options.Progress(p)
}

// A staleError says that the facts were not what they are any more: what a mover sent
// that has ended since came after they were looked at.
type staleError struct{ error }

func (e *staleError) Unwrap() error { return e.error }

const (
	// defaultPatience is how long a server is waited for that does not answer.
	defaultPatience = time.Minute
	// retryPause is between two tries to reach one.
	retryPause = 250 * time.Millisecond
)

// patiently does something again while a server is away. What it does is of a kind that
// may have been done although there was no answer.
func patiently(ctx context.Context, patience time.Duration, f func() error) error {
	for begun := time.Now(); ; {
		err := f()
		if err == nil || !away(err) || time.Since(begun) > patience || ctx.Err() != nil {
			return err
		}
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

func (m *Mover) patiently(ctx context.Context, f func() error) error {
	return patiently(ctx, m.options.Patience, f)
}

// away says whether an error is that of a server that did not answer, or is about to
// end or to begin; that has ended the session, as this mover was held up; or of a change
// of the catalog that met another one.
func away(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "53300" || pg.Code == "25P03" ||
			pg.Code == "XX000" && strings.HasPrefix(pg.Message, "tuple concurrently") || pg.Code == "40P01"
	}
	var network net.Error
	var connecting *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connecting) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed") ||
		strings.Contains(err.Error(), "unexpected EOF")
}

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text, for standard_conforming_strings.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
