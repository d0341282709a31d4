package mysql

import (
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

const durable, lossy = true, false

// TestDurability judges what could be seen, of MySQL too, of which no test has a server.
func TestDurability(t *testing.T) {
	set := func(name, value string) func(*look) { return func(l *look) { l.vars[name] = value } }
	for name, c := range map[string]struct {
		change  func(*look)
		durable bool
		want    string
	}{
		"alone":            {func(l *look) {}, durable, "MySQL 8.4.0, innodb_flush_log_at_trx_commit=1 sync_binlog=1 binlog_format=ROW, no replica"},
		"flush 2":          {set("innodb_flush_log_at_trx_commit", "2"), lossy, "SET GLOBAL innodb_flush_log_at_trx_commit = 1"},
		"binlog 0":         {set("sync_binlog", "0"), lossy, "SET GLOBAL sync_binlog = 1"},
		"no binlog":        {func(l *look) { l.vars["log_bin"], l.vars["sync_binlog"] = "OFF", "0" }, durable, "log_bin=OFF"},
		"no doublewrite":   {set("innodb_doublewrite", "OFF"), lossy, "innodb_doublewrite"},
		"only detected":    {set("innodb_doublewrite", "DETECT_ONLY"), lossy, "innodb_doublewrite"},
		"nosync":           {set("innodb_flush_method", "nosync"), lossy, "nosync"},
		"replica":          {func(l *look) { l.replicas = 1 }, lossy, "1 connected replicas: a replica may be promoted"},
		"unseen":           {func(l *look) { l.replicas = -1 }, durable, "GRANT REPLICATION SLAVE"},
		"follows":          {func(l *look) { l.follows = true }, lossy, "is a replica itself"},
		"galera":           {set("wsrep_on", "ON"), lossy, "Galera"},
		"dirty":            {set("transaction_isolation", "READ-UNCOMMITTED"), lossy, "not committed yet"},
		"dirty by its old": {set("tx_isolation", "READ-UNCOMMITTED"), lossy, "not committed yet"},
		"frozen clock":     {func(l *look) { l.clock = false }, lossy, "sysdate-is-now"},
		"no start":         {func(l *look) { l.started = "" }, durable, "no replica"},
	} {
		l := look{version: "8.4.0", engine: "InnoDB", clock: true, started: "1", vars: map[string]string{
			"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1", "binlog_format": "ROW", "innodb_doublewrite": "ON",
			"server_uuid": "u", "server_id": "1", "hostname": "h", "port": "3306",
		}}
		c.change(&l)
		p := l.durability()
		if p.Durable != c.durable || !strings.Contains(p.Why, c.want) {
			t.Errorf("%s: %v: %s", name, p, p.Why)
		}
		if (l.started != "") != (p.Instance == "u/1/h:3306/1") {
			t.Errorf("%s: instance %q", name, p.Instance)
		}
	}
}

// TestDurabilitySettings looks at a real server whose settings change.
func TestDurabilitySettings(t *testing.T) {
	server := testserver.MariaDB(t, "--log-bin=log", "--sync-binlog=1", "--server-id=7")
	db := connect(t, config(t, server))
	s := New(db)
	mustPut(t, s, "k", `1`, store.Condition{})
	first := tabletest.Durability(t, s)
	if !first.Durable || first.LocalClock || first.NoticesLoss || first.Instance == "" {
		t.Errorf("%+v", first)
	}
	time.Sleep(1100 * time.Millisecond)
	if p := tabletest.Durability(t, s); p.Instance != first.Instance {
		t.Errorf("a second later the instance is %q, and was %q", p.Instance, first.Instance)
	}
	for _, c := range []struct{ change, back, want string }{
		{`SET GLOBAL innodb_flush_log_at_trx_commit = 2`, `SET GLOBAL innodb_flush_log_at_trx_commit = 1`, "trx_commit=2"},
		{`SET GLOBAL sync_binlog = 0`, `SET GLOBAL sync_binlog = 1`, "sync_binlog=0"},
	} {
		do(t, db, c.change)
		becomes(t, s, lossy, c.want)
		do(t, db, c.back)
		becomes(t, s, durable, "no replica")
	}
	do(t, db, `ALTER TABLE firn_records ENGINE=Aria`)
	_, err := s.Durability(t.Context())
	says(t, "Aria", err, "ALTER TABLE firn_records ENGINE=InnoDB")
	do(t, db, `ALTER TABLE firn_records ENGINE=InnoDB`)
	becomes(t, s, durable, "no replica")
	server.Kill(t)
	server.Start(t)
	works(t, s)
	if p := tabletest.Durability(t, s); p.Instance == first.Instance || !p.Durable {
		t.Errorf("after a restart: %+v", p)
	}

	dirty := New(connect(t, with(config(t, server), func(c *mysql.Config) { c.Params = map[string]string{"tx_isolation": "'READ-UNCOMMITTED'"} })))
	becomes(t, dirty, lossy, "not committed yet")
}

// TestDurabilityReplica has a server follow another one.
func TestDurabilityReplica(t *testing.T) {
	primary := testserver.MariaDB(t, "--log-bin=log", "--sync-binlog=1", "--server-id=1")
	replica := testserver.MariaDB(t, "--log-bin=log", "--sync-binlog=1", "--server-id=2", "--sysdate-is-now")
	p, r := New(connect(t, config(t, primary))), New(connect(t, config(t, replica)))
	mustPut(t, p, "k", `1`, store.Condition{})
	becomes(t, p, durable, "no replica")
	becomes(t, r, lossy, "sysdate-is-now")
	host, port, _ := strings.Cut(primary.Addr(), ":")
	do(t, r.db, `CHANGE MASTER TO MASTER_HOST='`+host+`', MASTER_PORT=`+port+`, MASTER_USER='root'`, `START SLAVE`)
	becomes(t, p, lossy, "1 connected replicas")
	becomes(t, r, lossy, "a replica itself")
	do(t, r.db, `SET GLOBAL read_only = 1`)
	_, err := r.Get(t.Context(), "k")
	says(t, "Get", err, "connect to the primary")
}
