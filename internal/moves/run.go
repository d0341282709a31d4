package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// schemaOf is the schema of a shard.
func schemaOf(n int64) string { return fmt.Sprintf(schemas, n) }

// newScene is where shard n moves.
func (w *world) newScene(n int64, do string, o *outcome) *scene {
	s := &scene{world: w, n: n, schema: schemaOf(n), o: o, random: rand.New(rand.NewPCG(w.seed, uint64(n)<<8+uint64(len(do))))}
	s.hand = newKnowledge()
	s.hand.shard, s.hand.faults = w.cluster.Shard(n), true
	return s
}

// run moves one shard while writers write to it, and compares.
func (w *world) run(ctx context.Context, n int64) (outcome, error) {
	o := outcome{said: []Said{{At: time.Now(), Phase: before}}}
	s := w.newScene(n, "move", &o)
	var blows []blow
	if w.faults {
		blows = w.dealt(n, s.random)
	}
	for _, b := range blows {
		if !b.usual {
			o.Harm = b.name
		}
	}
	if err := s.each(ctx, blows, func(h *harm) step { return h.prepare }); err != nil {
		return o, err
	}
	writers := make([]*writer, w.writers)
	for i := range writers {
		writers[i] = w.newWriter(i, w.cluster.Shard(n))
	}
	if err := w.preload(ctx, s.schema, s.tablespace, writers); err != nil {
		return o, err
	}
	at, err := s.moves(ctx, blows, writers)
	if err == nil {
		err = s.each(ctx, blows, func(h *harm) step { return h.settle })
	}
	if err != nil {
		return o, err
	}
	o.hear(writers)
	if err := s.judge(ctx, at, append(writers, s.hand)); err != nil {
		return o, err
	}
	return o, s.each(ctx, blows, func(h *harm) step { return h.undo })
}

// A step is what a harm does before or after.
type step = func(ctx context.Context, s *scene) error

// each does a step of the harms of this run that have it.
func (s *scene) each(ctx context.Context, blows []blow, of func(*harm) step) error {
	for _, b := range blows {
		if do := of(b.harm); do != nil {
			if err := do(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
		}
	}
	return nil
}

// moves moves the shard while writers write, and back if that is wanted. It returns where the shard is then.
func (s *scene) moves(ctx context.Context, blows []blow, writers []*writer) (at string, err error) {
	writing, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, one := range writers {
		all.Go(func() { one.write(writing) })
	}
	defer all.Wait()
	defer stop()
	time.Sleep(s.around)
	begun := time.Now()
	at = "b"
	err = s.move(ctx, "move", blows)
	s.o.said = append(s.o.said, Said{At: time.Now(), Phase: after})
	if err == nil && s.revert {
		time.Sleep(s.around)
		at = "a"
		err = s.move(ctx, "revert", s.kills())
		s.o.said = append(s.o.said, Said{At: time.Now(), Phase: after})
	}
	s.o.Move = time.Since(begun)
	time.Sleep(s.around)
	return at, err
}

// hear takes down what writers have seen.
func (o *outcome) hear(writers []*writer) {
	o.Gaps = make(map[move.Phase]time.Duration)
	for _, one := range writers {
		o.Acknowledged += one.acknowledged
		o.Hops += one.hops
		for _, g := range one.gaps {
			in := phaseOf(o.said, g)
			o.Gaps[in] = max(o.Gaps[in], g.took)
			if in != before {
				o.Gap = max(o.Gap, g.took)
			}
			if g.over {
				o.Over = max(o.Over, g.took)
			}
		}
		for _, err := range one.errs {
			o.problem("writer %d: %v", one.number, err)
		}
	}
}

// judge compares what there is on the server that has the shard now, and its stream to
// the other one; and ends the move.
func (s *scene) judge(ctx context.Context, at string, writers []*writer) error {
	c, err := s.reached[at].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var state, batch string
	if err := c.QueryRow(ctx, "SELECT s.state, coalesce(m.batch, '') FROM firn.shard AS s LEFT JOIN firn.move AS m ON m.shard = s.shard WHERE s.shard = $1", s.n).Scan(&state, &batch); err != nil {
		return err
	}
	if state != string(topology.StateOpen) {
		s.o.problem("the shard is %s on %s", state, at)
	}
	if s.o.verdict, err = compare(ctx, c, s.schema, writers); err != nil {
		return err
	}
	other, stream := "a", "firn_back_"+batch
	if at == "a" {
		other, stream = "b", "firn_move_"+batch
	}
	switch {
	case batch == "" && s.o.Promoted == "":
		s.o.problem("the move has no way back")
	case batch == "" || s.o.Parted: // firn shard reopen has ended the move, or the schema is another
	default:
		if _, err := move.Verify(ctx, s.reached[at], s.reached[other], s.schema, move.VerifyOptions{Stream: stream}); err != nil && s.o.Promoted == "" {
			s.o.problem("%s does not follow %s: %v", other, at, err)
		}
	}
	if err := s.finish(ctx, at); err != nil {
		return err
	}
	return s.dropTables(ctx, at, s.schema) // the next run has the room
}

// finish ends the move, and looks for what is left of it.
func (s *scene) finish(ctx context.Context, at string) error {
	if err := s.checkClock(ctx); err != nil {
		return err
	}
	do := "finish"
	if at == "a" {
		do = "abort" // what goes back has not moved
	}
	if s.o.Promoted != "" {
		if err := s.follow(ctx, do, s.n, s.o); err != nil {
			return err
		}
		s.typed(ctx, "firn shard doctor --clean") // what the lost server knew of
	} else if err := s.move(ctx, do, s.kills()); err != nil {
		return err
	}
	for name, server := range s.reached {
		c, err := server.Connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		var left int64
		if err := c.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ '^(firn_|pg_[0-9]+_sync_)') + (SELECT count(*) FROM pg_publication WHERE pubname ~ '^firn_')
			+ (SELECT count(*) FROM pg_subscription WHERE subname ~ '^firn_' AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())) + (SELECT count(*) FROM firn.move)`).Scan(&left); err != nil {
			return err
		}
		if left > 0 {
			s.o.problem("%d things are left of the move on %s", left, name)
		}
	}
	return nil
}

// move has movers work until one says that it is done. Each blow falls on one of them. A mover that
// failed without one is followed by what its error says to type.
func (s *scene) move(ctx context.Context, do string, blows []blow) error {
	for {
		var next *blow
		if len(blows) > 0 {
			next, blows = &blows[0], blows[1:]
		}
		struck, failed, err := s.attempt(ctx, do, next)
		switch {
		case err != nil:
			return err
		case failed == nil || !s.faults:
			return failed
		case struck:
			time.Sleep(200 * time.Millisecond) // a server may have come back just now
		case len(blows) == 0:
			return s.follow(ctx, do, s.n, s.o)
		}
	}
}

// attempt has one mover work, and strikes when the time of the blow has come. Failed is why the mover
// did not do it.
func (s *scene) attempt(ctx context.Context, do string, b *blow) (struck bool, failed, err error) {
	s.beside = nil
	if s.m, err = s.startMover(do, s.n); err != nil {
		return false, nil, err
	}
	if b != nil && s.m.until(b.phase, b.delay) {
		struck = true
		s.o.Struck = append(s.o.Struck, b.name)
		if err := b.strike(ctx, s); err != nil {
			return true, nil, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	failed = s.m.result(s.o)
	for _, other := range s.beside {
		if err := other.result(s.o); err == nil && other.n == s.n {
			failed = nil
		}
	}
	return struck, failed, nil
}
