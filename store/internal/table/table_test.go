package table_test

import (
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/firn-id/firn/store/internal/table"
)

// TestAlive: more dead connections than a *sql.DB gives up after, but not for ever.
func TestAlive(t *testing.T) {
	for dead, want := range map[int]error{0: nil, 5: nil, 100: driver.ErrBadConn} {
		calls := 0
		err := table.Alive(t.Context(), func() error {
			if calls++; calls <= dead {
				return driver.ErrBadConn
			}
			return nil
		})
		if !errors.Is(err, want) || calls > 8 {
			t.Errorf("%d dead: %v after %d", dead, err, calls)
		}
	}
}
