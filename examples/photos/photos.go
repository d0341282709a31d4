package main

import (
	"context"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard"
)

// Photos are the users of a photo-sharing service, what they share and whom they
// follow, on the shards of a cluster.
type Photos struct{ shards *shard.Cluster }

// A Photo as it stands in a feed.
type Photo struct {
	ID      firn.ID
	Owner   string
	Caption string
	Likes   int
}

// layout is that of the cluster's ids. A cluster keeps the one it was made with.
var layout = firn.Sharded()

// Taken is when the photo was shared: its id says so.
func (p Photo) Taken() (time.Time, error) {
	parts, err := layout.Decode(p.ID)
	return parts.Time, err
}

// Join adds a user. The name is the key that finds the shard; the id, which is made in
// the database, finds it from then on. Who joins twice is the same user.
func (p *Photos) Join(ctx context.Context, name string) (id firn.ID, err error) {
	err = p.shards.ForKey(name).InTx(ctx, func(tx pgx.Tx) error {
		const join = "INSERT INTO users (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id"
		return tx.QueryRow(ctx, join, name).Scan(&id)
	})
	return id, err
}

// Follow has a user see another's photos.
func (p *Photos) Follow(ctx context.Context, follower, followed firn.ID) error {
	return p.shards.ForID(follower).InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO follows (follower, followed) VALUES ($1, $2) ON CONFLICT DO NOTHING", follower, followed)
		return err
	})
}

// Share shares a photo.
func (p *Photos) Share(ctx context.Context, owner firn.ID, caption string) (id firn.ID, err error) {
	err = p.shards.ForID(owner).InTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "INSERT INTO photos (owner, caption) VALUES ($1, $2) RETURNING id", owner, caption).Scan(&id)
	})
	return id, err
}

// Like likes a photo, once however often it is done.
func (p *Photos) Like(ctx context.Context, liker, photo firn.ID) error {
	return p.shards.ForID(photo).InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO likes (photo, liker) VALUES ($1, $2) ON CONFLICT DO NOTHING", photo, liker)
		return err
	})
}

// Feed is a page of what those shared whom a user follows, newest first: up to n
// photos older than before, which is 0 for the first page and the last photo's id for
// the next.
func (p *Photos) Feed(ctx context.Context, user, before firn.ID, n int) ([]Photo, error) {
	followed, err := p.followed(ctx, user)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]Photo, error) {
		// Owners who are on another shard have nothing here.
		rows, err := tx.Query(ctx, `
			SELECT p.id, u.name, p.caption, (SELECT count(*) FROM likes WHERE photo = p.id)
			FROM photos AS p JOIN users AS u ON u.id = p.owner
			WHERE p.owner = ANY ($1) AND p.id < $2 ORDER BY p.id DESC LIMIT $3`, followed, before, n)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[Photo])
	}
	// Only the shards on which one of them is are asked, and their pages merged.
	shards := maps.Keys(p.shards.Group(followed))
	id := func(p Photo) firn.ID { return p.ID }
	var page []Photo
	for photo, err := range shard.Feed(ctx, shards, &shard.FeedOptions{Before: before, Page: n}, id, read) {
		if err != nil {
			return nil, err
		}
		if page = append(page, photo); len(page) == n {
			break
		}
	}
	return page, nil
}

func (p *Photos) followed(ctx context.Context, user firn.ID) (ids []firn.ID, err error) {
	err = p.shards.ForID(user).InTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT followed FROM follows WHERE follower = $1", user)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[firn.ID])
		return err
	})
	return ids, err
}
