package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	_ "github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/mysql"
)

func Example() {
	ctx := context.Background()
	db, err := sql.Open("mysql", "app:secret@tcp(db:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	s := mysql.New(db)

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
