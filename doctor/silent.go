package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/store"
)

// lookPatience is how long the look at a store may take that has not answered.
const lookPatience = 5 * time.Second

// silent reports a store that did not answer a read, and why if that can be seen: where commits wait
// for a standby that is away, the server answers other questions.
func (e *exam) silent(ctx context.Context, s store.Store, err error) {
	text := ""
	if errors.Is(err, context.DeadlineExceeded) {
		text = awaited(ctx, s)
	}
	if text == "" {
		e.away(err)
		return
	}
	e.say(Bad, "store", remedy.StandbyAway, "%s: commits wait for standbys, and the reads of firn wait too (%s)", phrase.WithoutPackage(err.Error()), text)
}

// awaited says for which standbys a database waits; "" if it waits for none, or does not say.
func awaited(ctx context.Context, s store.Store) string {
	type waiter interface {
		AwaitedStandbys(ctx context.Context) (string, error)
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	for s != nil {
		if w, ok := s.(waiter); ok {
			text, err := w.AwaitedStandbys(ctx)
			if err != nil {
				return ""
			}
			return text
		}
		u, ok := s.(interface{ Unwrap() store.Store })
		if !ok {
			return ""
		}
		s = u.Unwrap()
	}
	return ""
}
