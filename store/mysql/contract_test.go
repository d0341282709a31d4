package mysql

import (
	"path"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
	"github.com/firn-id/firn/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) storetest.Backend { return backend(tb, nil) })
}

// TestContractSettings has connections whose settings are as far from the usual as
// they get. The checks of keys, values, times and order, and one of many at once, are in the short form; make full
// has all of them.
func TestContractSettings(t *testing.T) {
	short := []string{"create", "replace", "wrong_version", "keys_apart", "values_exact", "value_sizes", "list", "list_order", "times", "within", "contention", "durability"}
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		if !slices.Contains(short, path.Base(tb.Name())) {
			testserver.OnlyLong(tb)
		}
		return backend(tb, func(c *mysql.Config) {
			c.ParseTime, c.ClientFoundRows, c.MultiStatements, c.ColumnsWithAlias = true, true, true, true
			var err error
			if c.Loc, err = time.LoadLocation("America/St_Johns"); err != nil {
				tb.Fatal(err)
			}
			if err := c.Apply(mysql.Charset("latin1", "latin1_swedish_ci")); err != nil {
				tb.Fatal(err)
			}
			c.Params = map[string]string{
				"time_zone": "'-09:30'", "sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'",
				"tx_isolation": "'SERIALIZABLE'", "character_set_results": "latin1",
				"innodb_snapshot_isolation": "1", // the default from MariaDB 11.6 on
			}
		})
	})
}

// backend is a database of its own, for connections that are changed so.
func backend(tb testing.TB, change func(*mysql.Config)) storetest.Backend {
	c := newDatabase(tb, shared(tb))
	admin := connect(tb, c)
	if change != nil {
		c = with(c, change)
	}
	return storetest.Backend{
		Durable: true,
		Open:    func(tb testing.TB) store.Store { return New(connect(tb, c)) },
		Shaky: func(tb testing.TB) store.Store {
			return New(connect(tb, through(c, tabletest.Shaky(tb, c.Addr, connect(tb, c)))))
		},
		// The table is put back in place of the one there is, as a dump does.
		Checkpoint: func(tb testing.TB) func() {
			do(tb, admin, "CREATE TABLE aside LIKE firn_records", "INSERT INTO aside SELECT * FROM firn_records")
			return func() { do(tb, admin, "RENAME TABLE firn_records TO lost, aside TO firn_records", "DROP TABLE lost") }
		},
	}
}
