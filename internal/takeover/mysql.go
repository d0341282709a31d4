package takeover

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// This file finds what a query makes MySQL and MariaDB run. A transaction for reading does
// not keep a stored function from changing a global variable, nor a loadable one from anything.
// So a query may call what is in a list of functions that only read, and nothing else. The
// views that it names are held to the same.

// mySQLToken splits a text into words, quoted things and signs. A query has no backslashes
// here, and a view is read in a mode in which they escape.
var mySQLToken = pattern("(?s)'(?:[^'\\\\]|\\\\.|'')*'|\"(?:[^\"\\\\]|\\\\.|\"\")*\"|`(?:[^`]|``)*`|[0-9A-Za-z_$\\x{80}-\\x{10FFFF}]+|[^\\s\\v]")

// beforeBracket are the words that may have a bracket behind them: functions that only read,
// and words of the grammar. What waits, locks, reads files or sets something is left out.
var beforeBracket = strings.Fields(`
abs acos add_months adddate addtime any_value ascii asin atan atan2 avg bin bin_to_uuid bit_and bit_count bit_length bit_or
bit_xor cast ceil ceiling char char_length character_length charset chr coalesce coercibility collation concat
concat_operator_oracle concat_ws conv convert convert_tz cos cot count crc32 crc32c cume_dist curdate current_date current_role
current_time current_timestamp current_user curtime database date date_add date_format date_sub datediff day dayname dayofmonth
dayofweek dayofyear degrees dense_rank elt exp export_set extract field find_in_set first_value floor format from_base64
from_days from_unixtime get_format greatest group_concat grouping hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa
insert instr isnull json_array json_array_append json_arrayagg json_compact json_contains json_contains_path json_depth
json_detailed json_exists json_extract json_insert json_keys json_length json_loose json_merge_patch json_merge_preserve
json_object json_objectagg json_overlaps json_pretty json_query json_quote json_remove json_replace json_search json_set
json_type json_unquote json_valid json_value lag last_day last_value lcase lead least left length lengthb ln localtime
localtimestamp locate log log10 log2 lower lpad lpad_oracle ltrim ltrim_oracle make_set makedate maketime max md5 median
microsecond mid min minute mod month monthname natural_sort_key now nth_value ntile nullif nvl nvl2 oct octet_length ord
percent_rank period_add period_diff pi position pow power quarter quote radians rand rank regexp_instr regexp_like
regexp_replace regexp_substr repeat replace replace_oracle reverse right round row_number rpad rpad_oracle rtrim rtrim_oracle
schema sec_to_time second session_user sha sha1 sha2 sign sin soundex space sqrt std stddev stddev_pop stddev_samp str_to_date
strcmp subdate substr substr_oracle substring substring_index subtime sum sysdate system_user tan time time_format time_to_sec
timediff timestamp timestampadd timestampdiff to_base64 to_char to_days to_seconds trim trim_oracle truncate ucase unhex
unix_timestamp upper user utc_date utc_time utc_timestamp uuid uuid_to_bin var_pop var_samp variance version week weekday
weekofyear weight_string year yearweek
against all and any as between binary by case columns distinct distinctrow div else escape except exists from group having in
index intersect interval join json_table key lateral like limit not offset on or over partition recursive regexp rlike row
select some straight_join then union using values when where window with xor
bigint datetime decimal double float int integer numeric smallint tinyint varbinary varchar`)

// A mySQLText is a query, or the definition of a view, in tokens.
type mySQLText []string

// names are the names that may be in a text.
func (t mySQLText) names() []any {
	var names []string
	for _, token := range t {
		if name := t.name(token); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []any
	for _, name := range slices.Compact(names) {
		all = append(all, name)
	}
	return all
}

// name is the name that a token is; empty for another token. Double quotes have a name in
// them in some modes.
func (mySQLText) name(token string) string {
	switch c := token[0]; {
	case c == '`' || c == '"':
		quote := token[:1]
		return strings.ReplaceAll(strings.Trim(token, quote), quote+quote, quote)
	case c >= 0x80 || c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z':
		return token
	}
	return ""
}

// unknownCall is the first name that is called and that is in no list; empty: there is none.
// In a view the server writes stored functions in quotes, and its own without.
func (t mySQLText) unknownCall(view bool) string {
	for i := range len(t) - 1 {
		name := t.name(t[i])
		if name == "" || t[i+1] != "(" || i > 0 && strings.EqualFold(t[i-1], "as") || t[i+1:].areColumns() {
			continue
		}
		quoted := name != t[i]
		if i > 0 && t[i-1] == "." || view && quoted || !slices.Contains(beforeBracket, strings.ToLower(name)) {
			return name
		}
	}
	return ""
}

// areColumns reports whether a text begins with the columns of a common table expression.
func (t mySQLText) areColumns() bool {
	end := slices.Index(t, ")")
	if end < 0 || end+2 >= len(t) || !strings.EqualFold(t[end+1], "as") || t[end+2] != "(" {
		return false
	}
	for i, token := range t[1:end] {
		if i%2 == 0 && t.name(token) == "" || i%2 == 1 && token != "," {
			return false
		}
	}
	return true
}

// storedSQL finds a stored function of the database, and viewsSQL views, by their names (IN ?).
// A view of another database counts where that is named too. A function of another database is
// called behind a dot.
const (
	storedSQL = `SELECT ROUTINE_NAME FROM information_schema.ROUTINES
	WHERE ROUTINE_TYPE <> 'PROCEDURE' AND ROUTINE_NAME IN (?) AND ROUTINE_SCHEMA = DATABASE() LIMIT 1`
	viewsSQL = `SELECT TABLE_SCHEMA, TABLE_NAME, coalesce(VIEW_DEFINITION, '') FROM information_schema.VIEWS
	WHERE TABLE_NAME IN (?) AND (TABLE_SCHEMA = DATABASE() OR TABLE_SCHEMA IN (?))`
)

// checkMySQLCalls returns an error if the query would call in MySQL or MariaDB what is not
// known to only read.
func checkMySQLCalls(ctx context.Context, tx *sql.Tx, query string) error {
	// The definitions of views are written in the mode of the session, and read here in one.
	if _, err := tx.ExecContext(ctx, "SET @firn_mode = @@SESSION.sql_mode, SESSION sql_mode = ''"); err != nil {
		return err
	}
	c := mySQLCheck{tx, map[[2]string]bool{}}
	if err := c.check(ctx, mySQLToken().FindAllString(query, -1), ""); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SET SESSION sql_mode = @firn_mode"); err != nil || len(c.done) == 0 {
		return err
	}
	return c.explain(ctx, query)
}

// noExplain is the number of the error that a view reads what the user may not.
const noExplain = 1345

// explain returns an error where a view reads another that the user has no rights to: no
// catalog shows such a view. The server looks for it before it runs anything.
func (c mySQLCheck) explain(ctx context.Context, query string) error {
	rows, err := c.tx.QueryContext(ctx, "EXPLAIN "+query)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == noExplain {
		return bad("--query reads a view over tables or views that the user may not read, so nobody can see what it runs").
			hint(WrittenOut).hint("or give --db a user with SELECT and SHOW VIEW on all that the view reads")
	}
	if err != nil {
		return err
	}
	return rows.Close()
}

// A mySQLCheck checks each view once.
type mySQLCheck struct {
	tx   *sql.Tx
	done map[[2]string]bool
}

// check returns an error if a text, of the view if it has a name, calls what it must not.
func (c mySQLCheck) check(ctx context.Context, t mySQLText, view string) error {
	called := t.unknownCall(view != "")
	names := t.names()
	if called == "" && len(names) > 0 {
		rows, err := c.named(ctx, storedSQL, names, 1)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			called = rows[0][0]
		}
	}
	switch {
	case called != "" && view != "":
		return bad("--query reads the view %s, which runs the function %s: that may change something or wait, and --query may only read", view, called).hint(WrittenOut)
	case called != "":
		return bad("--query runs the function %s, which may change something or wait, and it may only read", called).hint(WrittenOut)
	case len(names) == 0:
		return nil
	}
	views, err := c.named(ctx, viewsSQL, names, 3)
	if err != nil {
		return err
	}
	for _, v := range views {
		id := [2]string{v[0], v[1]}
		if c.done[id] {
			continue
		}
		c.done[id] = true
		if v[2] == "" {
			return c.hidden(ctx, v[0], v[1])
		}
		if err := c.check(ctx, mySQLToken().FindAllString(v[2], -1), v[1]); err != nil {
			return err
		}
	}
	return nil
}

// hidden is the error about a view whose definition the user may not read.
func (c mySQLCheck) hidden(ctx context.Context, schema, view string) error {
	var user string
	if err := c.tx.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user); err != nil {
		return err
	}
	at := strings.LastIndex(user, "@")
	return bad("--query reads the view %s, and the user %s may not see what it runs", view, user).
		hint("as an administrator: GRANT SHOW VIEW ON `%s`.`%s` TO '%s'@'%s'", schema, view, user[:at], user[at+1:]).
		hint(WrittenOut)
}

// named returns the rows of a statement about names, which are texts.
func (c mySQLCheck) named(ctx context.Context, statement string, names []any, columns int) (all [][]string, err error) {
	marks := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	rows, err := c.tx.QueryContext(ctx, strings.ReplaceAll(statement, "(?)", marks), slices.Repeat(names, strings.Count(statement, "(?)"))...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row, into := make([]string, columns), make([]any, columns)
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
