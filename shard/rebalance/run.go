package rebalance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// A Moved is a shard that has moved.
type Moved struct {
	move.Moved
	From, To string
}

// A Progress says how far all moves are together.
type Progress struct {
	Shards, Done int
	Now          move.Progress // of a move that is under way; zero before the first
}

// Check returns the obstacles to the moves, and what a person should know about them. It measures the servers, for
// [Plan.Estimate].
func (p *Plan) Check(ctx context.Context, servers []topology.Server, opts *Options) (obstacles, notes []move.Obstacle, err error) {
	o := opts.withDefaults()
	jobs, err := p.jobs(ctx, servers)
	if err != nil {
		return nil, nil, err
	}
	p.parallel, p.checked = o.Parallel, nil
	for _, l := range jobs {
		one, err := move.NewPlan(ctx, l.Source, l.Target, l.New, false, &o.Move)
		if err != nil {
			return nil, nil, err
		}
		obstacles, notes = join(obstacles, one.Obstacles), join(notes, one.Notes)
		p.checked = append(p.checked, one)
	}
	return obstacles, notes, nil
}

// join adds those of more that are not there yet: what a server has in the way, it has in the way of each move.
func join(all, more []move.Obstacle) []move.Obstacle {
	for _, o := range more {
		if !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// Run moves the shards of the plan, and returns those that have moved. Where a move fails, moves that are under
// way finish, and no other begins. After an error, or after ctx has ended, Resume continues.
func (p *Plan) Run(ctx context.Context, servers []topology.Server, opts *Options) ([]Moved, error) {
	jobs, err := p.jobs(ctx, servers)
	if err != nil {
		return nil, err
	}
	r := &run{Options: *opts.withDefaults(), servers: servers}
	return r.all(ctx, move.Split(jobs), r.move)
}

// jobs are the moves, by source and target.
func (p *Plan) jobs(ctx context.Context, servers []topology.Server) ([]move.Job, error) {
	to := make(map[string][]int64)
	for _, m := range p.Moves {
		to[m.To] = append(to[m.To], m.Number)
	}
	var jobs []move.Job
	for _, name := range p.Servers {
		if len(to[name]) == 0 {
			continue
		}
		some, err := move.Jobs(ctx, servers, slices.Sorted(slices.Values(to[name])), name)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, some...)
	}
	return jobs, nil
}

// Stays reports whether Resume leaves a move as it is: its shards have arrived, or somebody has taken them
// back, and nobody has dropped the other copy yet.
func Stays(f move.Move) bool {
	returns := f.Phase == move.Between && len(f.Back) > 0
	return !returns && f.Phase != move.HalfLeft && (f.Phase == move.Arrived || len(f.Back) > 0)
}

// Resume finishes moves that are under way. It returns the shards that have moved, and the moves that it
// leaves as they are. Shards that somebody takes back come back, and Resume drops no copy of these.
func Resume(ctx context.Context, servers []topology.Server, opts *Options) (moved []Moved, left []move.Move, err error) {
	if err := move.DropLeftovers(ctx, servers); err != nil {
		return nil, nil, err
	}
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return nil, nil, err
	}
	r := &run{Options: *opts.withDefaults(), servers: servers}
	for _, f := range moves {
		some, stays, err := r.resume(ctx, f)
		moved, left = append(moved, some...), append(left, stays...)
		if err != nil {
			return moved, left, err
		}
	}
	return moved, left, nil
}

// A run is some moves, of which several may be under way at once.
type run struct {
	Options
	servers []topology.Server

	mu    sync.Mutex
	far   []move.Progress // of each job
	moved []Moved
	err   error
}

// A way does what is left to do of one job.
type way func(context.Context, move.Job, func(move.Progress)) ([]move.Moved, error)

// resume brings one move to its end.
func (r *run) resume(ctx context.Context, f move.Move) (moved []Moved, left []move.Move, err error) {
	if Stays(f) {
		return nil, []move.Move{f}, nil
	}
	shards, way := f.Shards, way(r.move)
	returns := f.Phase == move.Between && len(f.Back) > 0
	switch {
	case returns:
		shards, way = f.Waiting, r.openWaiting(f.Back)
	case f.Phase == move.HalfLeft:
		way = r.endHalf
	}
	jobs, err := move.Underway(ctx, r.servers, shards)
	if err != nil {
		return nil, nil, err
	}
	moved, err = r.all(ctx, jobs, way)
	if err != nil || !returns {
		return moved, nil, err
	}
	moves, err := move.Moves(ctx, r.servers) // where the shards are now
	if err != nil {
		return moved, nil, err
	}
	if at := slices.IndexFunc(moves, func(one move.Move) bool { return one.Batch == f.Batch }); at >= 0 {
		again, left, err := r.resume(ctx, moves[at])
		return append(moved, again...), left, err
	}
	return moved, nil, nil
}

// all does something with all jobs, some at a time.
func (r *run) all(ctx context.Context, jobs []move.Job, way way) ([]Moved, error) {
	r.far, r.moved, r.err = make([]move.Progress, len(jobs)), nil, nil
	for i, l := range jobs {
		r.far[i].Shards = len(l.Shards)
	}
	var group errgroup.Group
	group.SetLimit(r.Parallel)
	for i, l := range jobs {
		group.Go(func() error {
			if r.failed() || ctx.Err() != nil {
				return nil
			}
			moved, err := way(ctx, l, func(p move.Progress) { r.tell(i, p) })
			r.add(l, moved, err)
			return nil
		})
	}
	group.Wait()
	return r.moved, cmp.Or(r.err, ctx.Err())
}

func (r *run) tell(i int, p move.Progress) {
	r.mu.Lock()
	r.far[i] = p
	var all Progress
	for _, one := range r.far {
		all.Shards, all.Done = all.Shards+one.Shards, all.Done+one.Done
		if one.Phase != "" && one.Done < one.Shards {
			all.Now = one
		}
	}
	r.mu.Unlock()
	r.Progress(all)
}

func (r *run) add(l move.Job, moved []move.Moved, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range moved {
		r.moved = append(r.moved, Moved{m, l.Source.Name, l.Target.Name})
	}
	r.err = errors.Join(r.err, err)
}

func (r *run) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// move moves the shards of a job, and drops their old copies.
func (r *run) move(ctx context.Context, l move.Job, progress func(move.Progress)) ([]move.Moved, error) {
	options := r.Move
	options.Progress = progress
	m := move.New(l.Source, l.Target, &options)
	defer m.Close()
	moved, err := m.Move(ctx, l.Shards)
	if err == nil && !r.Keep {
		_, err = m.Finish(ctx, l.Shards)
	}
	return moved, err
}

// openWaiting opens shards that were let go, on the server that they were let go to: some go
// back.
func (r *run) openWaiting(back []int64) way {
	return func(ctx context.Context, l move.Job, _ func(move.Progress)) ([]move.Moved, error) {
		m := move.New(l.Source, l.Target, &r.Move)
		defer m.Close()
		returns := func(n int64) bool { return slices.Contains(back, n) }
		if some := slices.DeleteFunc(slices.Clone(l.Shards), func(n int64) bool { return !returns(n) }); len(some) > 0 {
			if _, err := m.Revert(ctx, some); err != nil {
				return nil, err
			}
		}
		if some := slices.DeleteFunc(slices.Clone(l.Shards), returns); len(some) > 0 {
			return m.Move(ctx, some)
		}
		return nil, nil
	}
}

// endHalf ends what only one of two servers knows of. Somebody has begun to drop old copies, or
// to give it up; or it has just begun and copied nothing, and the next plan begins it anew.
func (r *run) endHalf(ctx context.Context, l move.Job, _ func(move.Progress)) ([]move.Moved, error) {
	m := move.New(l.Source, l.Target, &r.Move)
	defer m.Close()
	_, err := m.Finish(ctx, l.Shards)
	if errors.As(err, new(*move.StuckError)) {
		if _, err = m.Abort(ctx, l.Shards); err == nil {
			_, err = m.Finish(ctx, l.Shards) // those of them that have moved
		}
	}
	return nil, err
}
