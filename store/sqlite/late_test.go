package sqlite

import (
	"context"
	"os"
	"testing"

	"github.com/firn-id/firn/store"
)

// TestLateMark: a process that was stopped behind its commit, and goes on when the file was put back and accepted,
// does not have the file refused for a write that is not in it.
func TestLateMark(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := t.TempDir() + "/ids.db"
	s, err := Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var backup []byte
	version := store.Version("")
	for i := range 4 {
		r, err := s.Put(ctx, "k", []byte("1"), store.Condition{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		version = r.Version
		if i == 1 {
			if backup, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restored(ctx, path, func(*Store) error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.acknowledged(5)
	again, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Put(ctx, "other", []byte("1"), store.Condition{}); err != nil {
		t.Error(err)
	}
}
