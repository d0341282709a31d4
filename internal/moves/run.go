package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// run moves one shard while writers write to it, and compares.
func (w *world) run(ctx context.Context, n int64) (outcome, error) {
	schema := fmt.Sprintf("insta%d", n)
	writers := make([]*writer, w.writers)
	for i := range writers {
		writers[i] = w.newWriter(i, w.cluster.Shard(n))
	}
	if err := w.preload(ctx, schema, "", writers); err != nil {
		return outcome{}, err
	}
	writing, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, one := range writers {
		all.Go(func() { one.write(writing) })
	}
	o := outcome{said: []Said{{At: time.Now(), Phase: before}}}
	time.Sleep(w.around)
	begun := time.Now()
	err := w.move(ctx, "move", n, &o)
	o.said = append(o.said, Said{At: time.Now(), Phase: after})
	at := "b"
	if err == nil && w.revert {
		time.Sleep(w.around)
		err = w.move(ctx, "revert", n, &o)
		o.said = append(o.said, Said{At: time.Now(), Phase: after})
		at = "a"
	}
	o.Move = time.Since(begun)
	time.Sleep(w.around)
	stop()
	all.Wait()
	if err != nil {
		return o, err
	}
	o.hear(writers)
	return o, w.judge(ctx, n, schema, at, writers, &o)
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
			o.Problems = append(o.Problems, fmt.Sprintf("writer %d: %v", one.number, err))
		}
	}
}

// judge compares what there is on the server that has the shard now, and its stream to
// the other one; and ends the move.
func (w *world) judge(ctx context.Context, n int64, schema, at string, writers []*writer, o *outcome) error {
	c, err := w.reached[at].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var state, batch string
	if err := c.QueryRow(ctx, "SELECT s.state, m.batch FROM firn.shard AS s JOIN firn.move AS m ON m.shard = s.shard WHERE s.shard = $1", n).Scan(&state, &batch); err != nil {
		return err
	}
	if state != string(topology.StateOpen) {
		o.Problems = append(o.Problems, fmt.Sprintf("the shard is %s on %s", state, at))
	}
	if o.verdict, err = compare(ctx, c, schema, writers); err != nil {
		return err
	}
	other, stream := "a", "firn_back_"+batch
	if at == "a" {
		other, stream = "b", "firn_move_"+batch
	}
	if _, err := move.Verify(ctx, w.reached[at], w.reached[other], schema, move.VerifyOptions{Stream: stream}); err != nil {
		o.Problems = append(o.Problems, fmt.Sprintf("%s does not follow %s: %v", other, at, err))
	}
	if err := w.finish(ctx, n, at, o); err != nil {
		return err
	}
	return w.dropTables(ctx, at, schema) // the next run has the room
}

// finish ends the move, and looks for what is left of it.
func (w *world) finish(ctx context.Context, n int64, at string, o *outcome) error {
	if err := w.checkClock(ctx); err != nil {
		return err
	}
	do := "finish"
	if at == "a" {
		do = "abort" // what goes back has not moved
	}
	if err := w.move(ctx, do, n, o); err != nil {
		return err
	}
	for name, s := range w.reached {
		c, err := s.Connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		var left int64
		if err := c.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_subscription) + (SELECT count(*) FROM firn.move)`).Scan(&left); err != nil {
			return err
		}
		if left > 0 {
			o.Problems = append(o.Problems, fmt.Sprintf("%d things are left of the move on %s", left, name))
		}
	}
	return nil
}

// move has movers work until one says that it is done. With faults they are killed, and
// servers too, at moments of chance; the last one is let alone.
func (w *world) move(ctx context.Context, do string, n int64, o *outcome) error {
	random := rand.New(rand.NewPCG(w.seed, uint64(n)<<8+uint64(len(do))))
	for try := 0; ; try++ {
		m, err := w.startMover(do, n)
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- m.wait(o) }()
		if !w.faults || try >= 5 {
			err := <-ended
			if err == nil || !w.faults || try >= 10 {
				return m.result(err)
			}
			if do == "move" && strings.Contains(m.errs.String(), "before it is moved again: firn shard abort") {
				if err := w.move(ctx, "abort", n, o); err != nil { // a crash of b can break a first copy
					return err
				}
			}
			time.Sleep(200 * time.Millisecond) // a server may have come back just now
			continue
		}
		select {
		case err := <-ended:
			if err == nil {
				return nil
			}
		case <-time.After(time.Duration(random.Float64() * random.Float64() * float64(3*time.Second))):
			o.Kills++
			if err := w.harm(random.IntN(4), m); err != nil {
				return err
			}
			<-ended
		}
	}
}

// harm kills the mover, or a server: then the mover too, after a moment.
func (w *world) harm(which int, m *mover) error {
	if which < 2 {
		server := w.servers[[]string{"a", "b"}[which]]
		server.Kill(w.tb)
		time.Sleep(100 * time.Millisecond)
		server.Start(w.tb)
		time.Sleep(100 * time.Millisecond)
	}
	if err := m.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
