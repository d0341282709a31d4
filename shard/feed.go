package shard

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
)

// FeedOptions say how Feed reads. Nil, or a zero field, means the default.
type FeedOptions struct {
	Before firn.ID       // only what is older than this id: the last one of the page before
	Page   int           // how many rows are read of a shard at a time: 50
	Gather GatherOptions // limits for the first read, which is of all shards at once; and Tx
}

// Feed merges rows of several shards, newest first by id. It reads one page of each shard at once, and the
// next page of a shard when you have used up the last one. Stop the loop when you have enough. After
// an error it ends.
//
// The function page reads rows of one shard that are older than an id, newest first:
//
//	SELECT ... WHERE id < $1 ORDER BY id DESC LIMIT $2
//
// Ids of different shards are in the order of their time, to the tick. With FeedOptions.Before you
// see no row twice, but you miss a row whose transaction commits after you have seen a newer row.
func Feed[T any](ctx context.Context, shards iter.Seq[Shard], o *FeedOptions, id func(T) firn.ID,
	page func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]T, error),
) iter.Seq2[T, error] {
	f := feed[T]{id: id, page: page}
	if o != nil {
		f.FeedOptions = *o
	}
	f.Page = cmp.Or(f.Page, 50)
	f.Before = cmp.Or(f.Before, firn.ID(math.MaxInt64))
	return func(yield func(T, error) bool) {
		if err := f.run(ctx, shards, func(v T) bool { return yield(v, nil) }); err != nil {
			var none T
			yield(none, err)
		}
	}
}

type feed[T any] struct {
	FeedOptions
	id   func(T) firn.ID
	page func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]T, error)
}

func (f *feed[T]) run(ctx context.Context, shards iter.Seq[Shard], yield func(T) bool) error {
	pages, err := Gather(ctx, shards, &f.Gather, func(ctx context.Context, _ Shard, tx pgx.Tx) ([]T, error) {
		return f.read(ctx, tx, f.Before)
	})
	if err != nil {
		return err
	}
	h := &streams[T]{id: f.id}
	for _, p := range pages {
		if len(p.Value) > 0 {
			h.all = append(h.all, stream[T]{p.Shard, p.Value, len(p.Value) == f.Page})
		}
	}
	heap.Init(h)
	for h.Len() > 0 {
		s := &h.all[0]
		v := s.rows[0]
		if !yield(v) {
			return nil
		}
		if s.rows = s.rows[1:]; len(s.rows) == 0 && s.more {
			if err := f.next(ctx, s, f.id(v)); err != nil {
				return err
			}
		}
		if len(s.rows) == 0 {
			heap.Pop(h)
		} else {
			heap.Fix(h, 0)
		}
	}
	return nil
}

// next reads the next page of a shard.
func (f *feed[T]) next(ctx context.Context, s *stream[T], before firn.ID) error {
	return s.shard.InTxOptions(ctx, f.Gather.Tx, func(tx pgx.Tx) (err error) {
		s.rows, err = f.read(ctx, tx, before)
		s.more = len(s.rows) == f.Page
		return err
	})
}

// read reads a page, and refuses one that is not in order: rows would be missing.
func (f *feed[T]) read(ctx context.Context, tx pgx.Tx, before firn.ID) ([]T, error) {
	rows, err := f.page(ctx, tx, before, f.Page)
	if err != nil {
		return nil, err
	}
	if len(rows) > f.Page {
		return nil, fmt.Errorf("a page of %d rows, and %d were asked for", len(rows), f.Page)
	}
	for _, row := range rows {
		if f.id(row) >= before {
			return nil, fmt.Errorf("id %d is not below %d: a page is WHERE id < $1 ORDER BY id DESC LIMIT $2", f.id(row), before)
		}
		before = f.id(row)
	}
	return rows, nil
}

// A stream is what is left of the page of a shard.
type stream[T any] struct {
	shard Shard
	rows  []T
	more  bool // the page was full
}

// streams are a heap, on whose top is the newest row.
type streams[T any] struct {
	id  func(T) firn.ID
	all []stream[T]
}

func (h *streams[T]) Len() int           { return len(h.all) }
func (h *streams[T]) Less(i, j int) bool { return h.id(h.all[i].rows[0]) > h.id(h.all[j].rows[0]) }
func (h *streams[T]) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *streams[T]) Push(x any)         { h.all = append(h.all, x.(stream[T])) }

func (h *streams[T]) Pop() any {
	last := len(h.all) - 1
	s := h.all[last]
	h.all = h.all[:last]
	return s
}
