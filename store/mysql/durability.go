package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

// A look is what can be seen of how a server keeps what it acknowledges.
type look struct {
	version, engine string            // engine of the table; empty: there is none yet
	clock           bool              // SYSDATE goes on during a statement
	vars            map[string]string // SHOW VARIABLES; what a server does not know is missing
	replicas        int               // connected; -1: this user may not see them
	follows         bool              // another server's writes are repeated here
	started         string            // Unix time, empty: cannot be seen
}

// Durability implements [store.Store]. The store is durable if
//
//   - a commit is on the server's disk when it is acknowledged:
//     innodb_flush_log_at_trx_commit is 1, sync_binlog is 1 where there is a binary
//     log, innodb_doublewrite is on and innodb_flush_method not nosync;
//   - no replica is seen that could take the server's place: all of them lag, and
//     semi-synchronous ones fall back to that. MariaDB shows everybody how many are
//     connected, MySQL a user with REPLICATION SLAVE;
//   - the server is not itself a replica, nor of a Galera cluster, where a read may
//     not see what another server acknowledged; and
//   - reads see only what is committed, and SYSDATE is the time (no --sysdate-is-now).
//
// How a failover chooses, and copies of the server's disk, cannot be seen. A table
// of another engine than InnoDB is refused.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	if err := ctx.Err(); err != nil {
		return store.Durability{}, err
	}
	conn, err := table.Conn(ctx, s.db)
	if err != nil {
		return store.Durability{}, s.table.Explain(ctx, s.db, err)
	}
	defer conn.Close()
	l, err := examine(ctx, conn)
	switch {
	case err != nil:
		return store.Durability{}, s.table.Explain(ctx, conn, err)
	case l.on("read_only") || l.on("super_read_only"):
		return store.Durability{}, s.table.Explain(ctx, conn, errReadOnly)
	case l.engine == "" && s.table.Seen():
		return store.Durability{}, s.table.Forgotten()
	case l.engine != "" && l.engine != "InnoDB":
		return store.Durability{}, fmt.Errorf("store/mysql: the table firn_records has the engine %s, which keeps no durability; ALTER TABLE firn_records ENGINE=InnoDB", l.engine)
	}
	return l.durability(), nil
}

func examine(ctx context.Context, conn *sql.Conn) (l look, err error) {
	const first = `SELECT SLEEP(0.001), VERSION(), NOW(6) < SYSDATE(6), COALESCE((SELECT ENGINE FROM information_schema.TABLES
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'firn_records'), '')`
	var slept int
	if err := conn.QueryRowContext(ctx, first).Scan(&slept, &l.version, &l.clock, &l.engine); err != nil {
		return l, err
	}
	l.vars, err = pairs(ctx, conn, `SHOW VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite',
		'innodb_flush_method', 'log_bin', 'sync_binlog', 'binlog_format', 'read_only', 'super_read_only', 'wsrep_on', 'transaction_isolation',
		'tx_isolation', 'server_uuid', 'server_uid', 'server_id', 'hostname', 'port')`)
	if err != nil {
		return l, err
	}
	if strings.Contains(l.version, "MariaDB") {
		err = l.companyOfMariaDB(ctx, conn)
	} else {
		err = l.companyOfMySQL(ctx, conn)
	}
	return l, err
}

// sqlStarted is when the server was started: its uptime counts from there to the
// time at which the statement began.
const sqlStarted = `SELECT UNIX_TIMESTAMP() - VARIABLE_VALUE FROM %s WHERE VARIABLE_NAME = 'Uptime'`

func (l *look) companyOfMariaDB(ctx context.Context, conn *sql.Conn) error {
	status, err := pairs(ctx, conn, `SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Slaves_running')`)
	if err != nil {
		return err
	}
	l.replicas, _ = strconv.Atoi(status["Slaves_connected"])
	l.follows = status["Slaves_running"] != "0" && status["Slaves_running"] != ""
	return conn.QueryRowContext(ctx, fmt.Sprintf(sqlStarted, "information_schema.GLOBAL_STATUS")).Scan(&l.started)
}

func (l *look) companyOfMySQL(ctx context.Context, conn *sql.Conn) (err error) {
	l.replicas, err = count(ctx, conn, `SHOW REPLICAS`)
	if err != nil {
		return err
	}
	followed, err := count(ctx, conn, `SHOW REPLICA STATUS`)
	if err != nil {
		return err
	}
	l.follows = followed > 0
	err = conn.QueryRowContext(ctx, fmt.Sprintf(sqlStarted, "performance_schema.global_status")).Scan(&l.started)
	if number(err) != 0 || errors.Is(err, sql.ErrNoRows) {
		err = nil // it is switched off, or not for this user
	}
	return err
}

// pairs reads rows of a name and a value.
func pairs(ctx context.Context, conn *sql.Conn, query string) (map[string]string, error) {
	m := make(map[string]string)
	return m, table.Rows(ctx, conn, query, nil, func(r *sql.Rows) error {
		var name, value string
		err := r.Scan(&name, &value)
		m[name] = value
		return err
	})
}

// count is the number of rows, or -1 if this user may not see them.
func count(ctx context.Context, conn *sql.Conn, query string) (n int, err error) {
	err = table.Rows(ctx, conn, query, nil, func(*sql.Rows) error { n++; return nil })
	if number(err) == 1227 {
		return -1, nil
	}
	return n, err
}

func (l look) on(name string) bool {
	v := l.vars[name]
	return v != "" && v != "OFF" && v != "0"
}

func (l look) durability() store.Durability {
	seen := l.version
	if !strings.Contains(seen, "MariaDB") {
		seen = "MySQL " + seen
	}
	seen += ", innodb_flush_log_at_trx_commit=" + l.vars["innodb_flush_log_at_trx_commit"]
	if l.on("log_bin") {
		seen += fmt.Sprintf(" sync_binlog=%s binlog_format=%s", l.vars["sync_binlog"], l.vars["binlog_format"])
	} else {
		seen += " log_bin=OFF"
	}
	switch l.replicas {
	case -1:
		seen += ", replicas cannot be seen (GRANT REPLICATION SLAVE)"
	case 0:
		seen += ", no replica"
	default:
		seen += fmt.Sprintf(", %d connected replicas", l.replicas)
	}
	p := store.Durability{Durable: true, Why: seen, Instance: l.instance()}
	if why := l.doubts(); len(why) > 0 {
		p.Durable, p.Why = false, seen+": "+strings.Join(why, "; ")
	}
	return p
}

// doubts are the reasons why an acknowledged write may be lost, or not be seen.
func (l look) doubts() (why []string) {
	add := func(ok bool, text string) {
		if ok {
			why = append(why, text)
		}
	}
	add(l.vars["innodb_flush_log_at_trx_commit"] != "1", "a crash loses the last commits; SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	add(l.on("log_bin") && l.vars["sync_binlog"] != "1", "a crash loses the last of the binary log, and what is not in it; SET GLOBAL sync_binlog = 1")
	add(!l.on("innodb_doublewrite") || l.vars["innodb_doublewrite"] == "DETECT_ONLY", "innodb_doublewrite is off, and a crash of its host may damage pages")
	add(l.vars["innodb_flush_method"] == "nosync", "innodb_flush_method=nosync, and a crash of its host loses writes")
	add(l.replicas > 0, "a replica may be promoted and lack the last commits")
	add(l.follows, "the server is a replica itself, though it is not read_only")
	add(l.on("wsrep_on"), "in a Galera cluster a read may not see what another server acknowledged")
	add(l.vars["transaction_isolation"] == "READ-UNCOMMITTED" || l.vars["tx_isolation"] == "READ-UNCOMMITTED", "reads see what is not committed yet; set another transaction_isolation")
	add(!l.clock, "the server runs with --sysdate-is-now, and a write that waits is judged by the time before")
	return why
}

// instance names the run of a server: it is another one after a failover and any
// restart.
func (l look) instance() string {
	if l.started == "" {
		return ""
	}
	id := l.vars["server_uuid"] // of its data directory
	if id == "" {
		id = l.vars["server_uid"]
	}
	return fmt.Sprintf("%s/%s/%s:%s/%s", id, l.vars["server_id"], l.vars["hostname"], l.vars["port"], l.started)
}
