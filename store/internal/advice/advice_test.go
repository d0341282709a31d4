package advice

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// TestRefused: of a server that is down an error has the address once. Of several servers it has what the driver says of each.
func TestRefused(t *testing.T) {
	driver := fmt.Errorf("failed to connect to db:5432: dial tcp db:5432: %w", syscall.ECONNREFUSED)
	const advice = "nothing listens at the address; is the server running?"
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Where: "postgres: db:5432", Advice: advice, Err: driver, Cause: driver.Error()}, "store/postgres: db:5432: " + advice + " (connection refused)"},
		{Error{Where: "postgres: db:5432, b:5432", Advice: advice, Err: driver}, "store/postgres: db:5432, b:5432: " + advice + " (" + driver.Error() + ")"},
		{Error{Where: "postgres: db:5432", Err: driver}, "store/postgres: db:5432: " + driver.Error()},
		{Error{Where: "postgres: db:5432", Advice: advice, Err: errors.New("gone")}, "store/postgres: db:5432: " + advice + " (gone)"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
