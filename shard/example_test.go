package shard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard"
)

// A user's photos are where the user is, and a photo is found by its id alone.
func ExampleOpen() {
	ctx := context.Background()
	pools := make(map[string]*pgxpool.Pool)
	for name, url := range map[string]string{"a": "postgres://app@db1/app", "b": "postgres://app@db2/app"} {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			log.Fatal(err)
		}
		defer pool.Close()
		pools[name] = pool
	}
	cluster, err := shard.Open(ctx, pools, nil)
	if err != nil {
		log.Fatal(err)
	}

	var id firn.ID
	err = cluster.ForKey("alice").InTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "INSERT INTO photo (caption) VALUES ($1) RETURNING id", "snow").Scan(&id)
	})
	if err != nil {
		log.Fatal(err)
	}
	err = cluster.ForID(id).InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE photo SET likes = likes + 1 WHERE id = $1", id)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// The newest twenty photos of all shards, and the next page of them by the last id.
func ExampleFeed() {
	var (
		ctx     context.Context
		cluster *shard.Cluster
		last    firn.ID // of the page before; 0 for the first
	)
	type photo struct {
		ID      firn.ID
		Caption string
	}
	page := func(ctx context.Context, tx pgx.Tx, before firn.ID, n int) ([]photo, error) {
		rows, err := tx.Query(ctx, "SELECT id, caption FROM photo WHERE id < $1 ORDER BY id DESC LIMIT $2", before, n)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByName[photo])
	}
	shown := 0
	for p, err := range shard.Feed(ctx, cluster.All(), &shard.FeedOptions{Before: last, Page: 20}, func(p photo) firn.ID { return p.ID }, page) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.ID, p.Caption)
		if shown++; shown == 20 {
			break
		}
	}
}
