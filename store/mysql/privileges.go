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
		return "", "", s.table.Explain(ctx, s.db, err)
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
	missing = strings.Join(lacks, ", ")
	database, user, err := who(ctx, conn)
	if err != nil {
		return "", "", s.table.Explain(ctx, conn, err)
	}
	return missing, granting(missing, database, user), nil
}

// who is the database and the account, as a GRANT writes them.
func who(ctx context.Context, q table.Querier) (database, user string, err error) {
	err = q.QueryRowContext(ctx, "SELECT COALESCE(DATABASE(), ''), CURRENT_USER()").Scan(&database, &user)
	at := max(strings.LastIndexByte(user, '@'), 0)
	return quoted("`", database), quoted("'", user[:at]) + "@" + quoted("'", strings.TrimPrefix(user[at:], "@")), err
}

func granting(privileges, database, user string) string {
	return fmt.Sprintf("GRANT %s ON %s.firn_records TO %s", privileges, database, user)
}

const all = "SELECT, INSERT, UPDATE"

// Grant is what the owner of the table types for another user that is to use it: USER and
// HOST stand for that one.
func (s *Store) Grant(ctx context.Context) (string, error) {
	database, _, err := who(ctx, s.db)
	if err != nil {
		return "", s.table.Explain(ctx, s.db, err)
	}
	return granting(all, database, "'USER'@'HOST'") + ";", nil
}

// advise is advice for a user that may lack a privilege: it writes the GRANT out.
func advise(ctx context.Context, q table.Querier, err error) string {
	text := advice(err)
	if text == denied {
		if database, user, failed := who(ctx, q); failed == nil {
			text = strings.Replace(text, grantUnnamed, granting(all, database, user), 1)
		}
	}
	return text
}

// quoted is a name between marks.
func quoted(mark, name string) string { return mark + strings.ReplaceAll(name, mark, mark+mark) + mark }
