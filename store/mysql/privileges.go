package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store/internal/table"
)

// probes change nothing. A server refuses each to a user who lacks the privilege.
var probes = []struct{ privilege, statement string }{
	{"SELECT", "SELECT `key`, value, version, written FROM firn_records WHERE FALSE"},
	{"INSERT", "INSERT INTO firn_records (`key`, value, version, written) SELECT '', '{}', '', 0 FROM DUAL WHERE FALSE"},
	{"UPDATE", "UPDATE firn_records SET value = '{}', version = '', written = 0 WHERE FALSE"},
}

// MissingPrivileges returns which privileges the user lacks on the table firn_records, and
// the statement with which somebody who has them grants them. Both are empty where the user
// has all, and where there is no table. It changes nothing.
func (s *Store) MissingPrivileges(ctx context.Context) (missing, grant string, err error) {
	conn, err := table.Conn(ctx, s.db)
	if err != nil {
		return "", "", explain(err)
	}
	defer conn.Close()
	var lacks []string
	for _, p := range probes {
		_, err := conn.ExecContext(ctx, p.statement)
		switch number(err) {
		case 1142, 1143: // no right on the table, or on a column
			lacks = append(lacks, p.privilege)
		}
	}
	if lacks == nil {
		return "", "", nil
	}
	var database, user string
	if err := conn.QueryRowContext(ctx, "SELECT DATABASE(), CURRENT_USER()").Scan(&database, &user); err != nil {
		return "", "", explain(err)
	}
	at := strings.LastIndexByte(user, '@')
	missing = strings.Join(lacks, ", ")
	return missing, fmt.Sprintf("GRANT %s ON %s.firn_records TO %s@%s", missing, quoted("`", database), quoted("'", user[:at]), quoted("'", user[at+1:])), nil
}

// quoted is a name between marks.
func quoted(mark, name string) string { return mark + strings.ReplaceAll(name, mark, mark+mark) + mark }
