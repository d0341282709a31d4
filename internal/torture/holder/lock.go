//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/firn-id/firn/internal/torture/ledger"
)

// lock holds a transaction that lets nobody else write, until the input ends.
func lock(path, mode string) error {
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	defer db.Close()
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN "+mode); err != nil {
		return fmt.Errorf("begin %s: %w", mode, err)
	}
	say(ledger.Event{Event: ledger.Locked})
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "ROLLBACK")
	return err
}
