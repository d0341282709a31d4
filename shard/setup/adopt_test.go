package setup_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/setup"
)

func adoptWish() setup.Wish { return setup.Wish{Keys: "mod"} }

func tryAdopt(ctx context.Context, servers []shard.Server, w setup.Wish, done *atomic.Int64) (*setup.Adoption, error) {
	s, err := setup.Open(ctx, servers, true)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	a, err := s.Adopt(ctx, w, "next_id")
	if err != nil {
		return nil, err
	}
	return a, a.Run(ctx, 30*time.Second, done)
}
