package document

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// checkStore returns a [*store.OtherStoreError] where the store is a copy.
func checkStore(ctx context.Context, st store.Store) error {
	return record.CheckStore(ctx, st, dated.Keys, "document")
}

// AcceptMove accepts that the series are in this store now, and changes nothing else. The
// caller states that the store was moved on purpose, that no process has used the old one
// since the copy was made, and that it is gone. Otherwise [Recover] is right: texts that
// were given out since the copy would be given out again. A series on a store that can
// forget still wants [Recover] where another instance answers. It returns the series that it
// changed; after an error it may be repeated.
func AcceptMove(ctx context.Context, st store.Store) (moved []Info, err error) {
	p, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	all, err := List(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, in := range all {
		if in.Store == p.Identity {
			continue
		}
		if err := move(ctx, st, in.Name, p.Identity); err != nil {
			return moved, fmt.Errorf("document: series %q: %w", in.Name, err)
		}
		in.Store = p.Identity
		moved = append(moved, in)
	}
	return moved, nil
}

// move writes down that a series is in the store of that identity.
func move(ctx context.Context, st store.Store, name, identity string) error {
	return update(ctx, st, name, func(def dated.Definition) (dated.Definition, error) {
		def.Store = identity
		return def, nil
	})
}

// settle compares the store with the one that a definition names, as p was just heard, and
// writes down which it is where the definition does not say.
func settle(ctx context.Context, st store.Store, name string, def *dated.Definition, p store.Durability) error {
	if err := dated.CheckOther(name, p.Identity, def.Store); err != nil {
		return err
	}
	if def.Store != "" || p.Identity == "" {
		return nil
	}
	def.Store = p.Identity
	return update(ctx, st, name, func(now dated.Definition) (dated.Definition, error) {
		if now.ID == def.ID && now.Store == "" {
			now.Store = p.Identity
		}
		return now, dated.CheckOther(name, p.Identity, now.Store)
	})
}
