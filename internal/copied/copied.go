// Package copied tells whether a store is a copy of another: its pools and counters say in which
// store they were made.
package copied

import (
	"context"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// Check returns a [*store.OtherStoreError] where a pool or a counter of the store says
// that it was made in another one.
func Check(ctx context.Context, s store.Store) error {
	for _, check := range []func(context.Context, store.Store) error{CheckPools, CheckSequences, CheckDocuments} {
		if err := check(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// CheckPools returns a [*store.OtherStoreError] where a pool of the store says that this one is
// a copy. It reads every pool, and fails at one that it cannot read.
func CheckPools(ctx context.Context, s store.Store) error {
	if _, err := pool.List(ctx, s); err != nil {
		return err
	}
	return record.CheckStore(ctx, s, term.KeyPools, "pool")
}

// CheckSequences returns a [*store.OtherStoreError] where a sequence of the store says that
// this one is a copy.
func CheckSequences(ctx context.Context, s store.Store) error {
	return record.CheckStore(ctx, s, block.Keys, "series")
}

// CheckDocuments returns a [*store.OtherStoreError] where a document of the store says that
// this one is a copy.
func CheckDocuments(ctx context.Context, s store.Store) error {
	return record.CheckStore(ctx, s, dated.Keys, "document")
}
