package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/postgres"
)

func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://app@db/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	s := postgres.New(db)

	// Once, in the step that creates the database: not in the program that draws ids.
	if _, err := pool.Create(ctx, s, pool.Default, nil); err != nil {
		log.Fatal(err)
	}

	ids, err := lease.Open(ctx, s, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Next(ctx))
}
