package mysql

import (
	"context"
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/internal/trouble"
)

var (
	errReadOnly   = errors.New("the server is read_only")
	errAutocommit = errors.New("autocommit is off")
	errInTx       = errors.New("a transaction is open on the connection")
)

const (
	duplicate = 1062 // the server's error of an INSERT whose key there is
	changed   = 1020 // of a statement that met what is newer than its snapshot
	logging   = 1665 // of a write at READ COMMITTED where the binary log has statements
)

// number is the server's own of an error, or 0.
func number(err error) int {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return int(e.Number)
	}
	return 0
}

// missing says that the table was not found.
func missing(err error) bool { return number(err) == 1146 }

// repeat says that the row changed while a statement waited for it, as MariaDB says with
// innodb_snapshot_isolation.
func repeat(err error) bool { return number(err) == changed }

// refused says that a Put that ended so was not and will not be carried out: the
// server refused the statement before its commit, or took it back.
func refused(err error) bool {
	switch number(err) {
	case 1044, 1046, 1049, 1142, 1143, 1227, // no right, no database
		1054, 1064, 1364, 1366, 1406, // not our table
		changed, 1114, 1205, 1213, // no space, lock wait timeout, deadlock
		logging, 1153, // too large
		1290, 1792, 1836: // read-only
		return true
	}
	return false
}

func lacksRight(err error) bool {
	switch number(err) {
	case 1044, 1142, 1143, 1227:
		return true
	}
	return false
}

const (
	crowded = "the server has too many connections; close some, or raise max_connections or the user's limit"
	denied  = `this user lacks a privilege: it needs SELECT, INSERT and UPDATE on the table firn_records; one that may create tables runs "firn store setup --store URL" with the URL of its own account, or what "firn store setup --print" prints, and then ` + grantUnnamed

	grantUnnamed = "GRANT SELECT, INSERT, UPDATE ON firn_records TO the user"
	// The server says the same of a database that is not there and of one that is another's.
	noDatabase = "the database does not exist, or this user has no right in it: check its name. An administrator grants this user what the end of \"firn store setup --print mysql\" says; only if no program has used it under another name, an administrator first types CREATE DATABASE"
	foreign    = `the table firn_records is not as firn makes it; compare it with "firn store setup --print", or use another database`
	full       = "the server's disk is full; free some space"
	tableFull  = "the server's disk is full, or a limit of the table's file is reached; free some space"
	readOnly   = "the server is read-only, as a replica is; connect to the primary"
	stopping   = "the server is shutting down, or an administrator ended the connection or the statement"
	timeout    = "the server cancelled the statement, for example after max_statement_time"
	unknown    = "the server refuses this user or the password; check both, and the host that the user may come from"
)

// advices are by the server's error number.
var advices = map[int]string{
	1021: full, 1114: tableFull, 1030: "the server's storage reports an error; its log says more", 1026: full,
	changed: "refused because of what others wrote at the same time; try again",
	1040:    crowded, 1203: crowded, 1226: crowded,
	1044: noDatabase,
	1142: denied, 1143: denied, 1227: denied,
	1045: unknown, 1130: unknown, 1698: unknown,
	1046: "no database is selected; name one in the address", 1049: "the database does not exist: check its name. Only if no program has used it under another name: CREATE DATABASE",
	1053: stopping, 1317: stopping, 1927: stopping,
	1054: foreign, 1364: foreign, 1366: foreign, 1406: foreign,
	1153:    "the server's max_allowed_packet is too small; firn needs 256K",
	1205:    "another transaction holds a lock on the record for longer than innodb_lock_wait_timeout; it must end first",
	1213:    "refused to end a deadlock; try again",
	logging: "the binary log cannot hold what is written at READ COMMITTED; SET GLOBAL binlog_format = 'ROW'",
	1290:    readOnly, 1792: readOnly, 1836: readOnly,
	1969: timeout, 3024: timeout,
}

func advice(err error) string {
	if text, ok := advices[number(err)]; ok {
		return text
	}
	switch {
	case errors.Is(err, errReadOnly):
		return "what is read there may be old; connect to the primary"
	case errors.Is(err, errAutocommit):
		return "nothing would be written; leave out autocommit in the address, and set it to 1 on the server"
	case errors.Is(err, errInTx):
		return "nothing would be written; a connection must not come back to the pool before its transaction has ended"
	case trouble.Distrusted(err):
		return "the server's certificate cannot be trusted; check the certificate authority, the TLS settings and the host's name"
	case errors.Is(err, mysql.ErrNoTLS):
		return "the server offers no TLS; switch it on there, or leave it out here"
	}
	switch {
	case errors.Is(err, mysql.ErrMalformPkt), errors.Is(err, mysql.ErrPktSync), errors.Is(err, mysql.ErrPktSyncMul):
		return "what answers is not MySQL; check the host and the port"
	case errors.Is(err, context.DeadlineExceeded): // a server that begins to talk only when it is asked is silent
		return "the server has not answered in time: is it overloaded? Or is this the address of a MySQL server?"
	}
	return trouble.Unreachable(err, errors.Is(err, mysql.ErrInvalidConn))
}
