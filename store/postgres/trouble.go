package postgres

import (
	"context"
	"errors"

	"github.com/firn-id/firn/internal/trouble"
	"github.com/firn-id/firn/store/internal/table"
)

// errStandby is about a server that follows another one.
var errStandby = errors.New("the server is a standby")

// state is the server's SQLSTATE, or "".
func state(err error) string { return trouble.State(err) }

// missing says that the table was not found.
func missing(err error) bool { return state(err) == "42P01" }

// isolated says that the server refused a statement because of what others did,
// as it does at the isolation levels above READ COMMITTED.
func isolated(err error) bool { return state(err) == "40001" }

// refused says that a Put that ended so was not and will not be carried out. Where
// the server refused a statement before its commit it was rolled back. An
// administrator's command (57P01) may come after the commit.
func refused(err error) bool {
	code := state(err)
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "22", "23", "42": // data, constraint, access or syntax
		return true
	}
	switch code {
	case "40001", "40P01", "25006", "55P03":
		return true
	}
	return false
}

// lacksRight says that the role lacks a privilege.
func lacksRight(err error) bool { return state(err) == "42501" }

// denied says that no attempt of this role helps before somebody grants a right or changes the
// search_path.
func denied(err error) bool {
	var own interface{ advice() string }
	return lacksRight(err) || errors.As(err, &own)
}

// advise says what to do where it can be told. The server is asked over q who the role is.
func advise(ctx context.Context, q table.Querier, err error) string {
	if lacksRight(err) {
		if text := rights(ctx, q); text != "" {
			return text
		}
	}
	var own interface{ advice() string } // of this package's errors
	if errors.As(err, &own) {
		return own.advice()
	}
	return advice(err)
}

// advices are by SQLSTATE, besides those of [trouble.PostgreSQL].
var advices = map[string]string{
	"22021": "the database cannot hold the text; it must have the encoding UTF8",
	"22P05": "the database cannot hold the text; it must have the encoding UTF8",
	"25P03": "the process stood still while it held the record, so that the server gave that to others; try again",
	"26000": pooled,
	"3F000": "no schema of the search_path exists, or this role may use none of them; create one, or GRANT USAGE on it",
	"40001": "refused because of what others wrote at the same time; try again",
	"40P01": "refused to end a deadlock; try again",
	"42501": "this role lacks a privilege: it needs USAGE on the schema of the table firn_records, and SELECT, INSERT and UPDATE on that table",
	"42703": foreign,
	"42804": foreign,
	"42809": foreign,
	"42883": foreign,
	"42P05": pooled,
	"42P10": foreign,
	"55P03": "another transaction holds a lock on the record or the table for longer than lock_timeout; it must end first",
}

const (
	pooled = "prepared statements do not reach a server through a pooler in transaction mode, such as PgBouncer; open the database with default_query_exec_mode=exec (pgx) or binary_parameters=yes (lib/pq)"

	foreign = `the table firn_records is not as firn makes it; compare it with "firn store setup --print", or set another search_path`
)

func advice(err error) string {
	if text, ok := advices[state(err)]; ok {
		return text
	}
	if errors.Is(err, errStandby) {
		return "what is read there may be old; connect to the primary, for example with target_session_attrs=read-write"
	}
	return trouble.PostgreSQL(err)
}
