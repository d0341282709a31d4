package move

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/topology"
)

const secret = "open-sesame"

// talkative is a server that logs all it can.
func talkative(t *testing.T, settings ...string) *testserver.Server {
	t.Helper()
	return testserver.Postgres(t, append([]string{
		"wal_level=logical", "max_replication_slots=20", "max_wal_senders=20", "max_logical_replication_workers=20",
		"max_worker_processes=30", "wal_retrieve_retry_interval=100ms", "log_statement=all", "log_duration=on",
		"log_min_duration_statement=0", "log_min_error_statement=debug5", "log_error_verbosity=verbose", "log_parameter_max_length_on_error=-1",
		"log_connections=on", "log_replication_commands=on", "debug_print_parse=on", "session_preload_libraries=auto_explain",
		"auto_explain.log_min_duration=0", "auto_explain.log_nested_statements=on", "shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=all",
	}, settings...)...)
}

// withSecret are servers whose addresses have a password.
func withSecret(user string, sites ...*site) []topology.Server {
	var servers []topology.Server
	for _, s := range sites {
		config := s.Server.Config.Copy()
		config.Password = secret
		if user != "" {
			config.User = user
		}
		servers = append(servers, topology.Server{Name: s.Name, Config: config})
	}
	return servers
}

// TestPasswordInNoLog moves a shard, and fails to, between servers that log all they can:
// the passwords by which they reach each other are in no log and no statistics.
func TestPasswordInNoLog(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	source, target := talkative(t), talkative(t)
	a, b := pairOn(t, source, target, 2)
	for _, s := range []*site{a, b} {
		s.must(t, "CREATE EXTENSION pg_stat_statements; CREATE ROLE poor LOGIN REPLICATION IN ROLE t, pg_monitor")
	}
	a.must(t, "CREATE TABLE insta0.users (id bigint PRIMARY KEY); INSERT INTO insta0.users VALUES (1); CREATE TABLE insta1.users (id bigint PRIMARY KEY)")
	silent := func(when string) {
		t.Helper()
		for i, server := range []*testserver.Server{source, target} {
			log := server.Log()
			if !strings.Contains(log, "firn.subscribe(") && i == 1 {
				t.Fatalf("%s: the log of %s does not have what is looked for", when, server.Addr())
			}
			for line := range strings.Lines(log) {
				if strings.Contains(line, secret) {
					t.Fatalf("%s: in the log of %s: %s", when, []string{"a", "b"}[i], line)
				}
			}
		}
		for _, s := range []*site{a, b} {
			if text := s.one(t, "SELECT coalesce(string_agg(query, ';'), '') FROM pg_stat_statements WHERE query ~ '"+strings.Replace(secret, "-", ".", 1)+"'"); text != "" {
				t.Errorf("%s: in the statistics of %s: %s", when, s.Name, text)
			}
		}
	}
	move := func(servers []topology.Server, o *Options) error {
		m := New(servers[0], servers[1], o)
		defer m.Close()
		_, err := m.Move(t.Context(), []int64{0})
		return err
	}
	var pg *pgconn.PgError

	poor := withSecret("poor", a, b)
	if err := move(poor, nil); !errors.As(err, &pg) || pg.Code != "42501" || !strings.Contains(pg.Message, "would record the password") {
		t.Fatalf("of a role that may not keep it out of the statistics: %v", err)
	}
	silent("of a role that may not keep it out of the statistics")
	for _, s := range []*site{a, b} {
		s.must(t, "GRANT SET ON PARAMETER pg_stat_statements.track TO poor")
	}
	// Before PostgreSQL 16 it may not subscribe either, which is found when it does.
	if err := move(poor, nil); !errors.As(err, &pg) || pg.Code != "42501" || strings.Contains(pg.Message, "firn:") {
		t.Fatalf("of a role that may not subscribe: %v", err)
	}
	silent("of a role that may not subscribe")
	m := New(poor[0], poor[1], nil)
	mustEnd(t, m.Abort, 0)
	m.Close()

	servers := withSecret("", a, b)
	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	_, port, _ := net.SplitHostPort(nowhere.Addr().String())
	for _, tt := range []struct{ name, address string }{
		{"an address that nobody answers at", "host=127.0.0.1 port=1 connect_timeout=1 password=" + secret},
		{"an address that cannot be read", "host=127.0.0.1 password=x " + secret},
		{"a cancelled one", "host=127.0.0.1 port=" + port + " password=" + secret},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if tt.name == "a cancelled one" {
			go func() { // that is connecting
				for ctx.Err() == nil {
					b.cancelListen(ctx)
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
		if err := move(servers, &Options{Patience: time.Second, Addresses: map[string]string{"a": tt.address}}); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", tt.name, err)
		}
		cancel()
		silent(tt.name)
	}

	o := hasty() // one address is a URL, which has a password without saying so
	o.Addresses = map[string]string{"a": "postgres://t:" + secret + "@" + source.Addr() + "/" + a.Server.Config.Database + "?sslmode=disable"}
	if err := move(servers, o); err != nil {
		t.Fatal(err)
	}
	silent("of a move")
	if text := b.one(t, "SELECT string_agg(subconninfo, ';') FROM pg_subscription"); !strings.Contains(text, secret) {
		t.Errorf("the subscription does not have the password: %s", text)
	}
}

// cancelListen cancels who makes a subscription on a server.
func (s *site) cancelListen(ctx context.Context) {
	c, err := pgx.ConnectConfig(ctx, s.Server.Config)
	if err != nil {
		return
	}
	defer c.Close(context.Background())
	c.Exec(ctx, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ 'firn[.]subscribe' AND pid <> pg_backend_pid()")
}

// TestPlanOfPassword: a role that cannot keep a password out of what a server records is
// told so before anything is done.
func TestPlanOfPassword(t *testing.T) {
	t.Parallel()
	a, b := pairOn(t, talkative(t), talkative(t), 1)
	for _, s := range []*site{a, b} {
		s.must(t, "CREATE ROLE poor LOGIN REPLICATION IN ROLE t, pg_monitor")
	}
	const want = "server b: it would record the password of a: pg_stat_statements.track = all, which poor may not change"
	refused := func(servers []topology.Server, o *Options) []string {
		t.Helper()
		p, err := NewPlan(t.Context(), servers[0], servers[1], []int64{0}, false, o)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, r := range p.Obstacles {
			if strings.Contains(r.Reason, "would record the password") {
				found = append(found, r.String()+" / "+r.Do())
			}
		}
		return found
	}
	if got := refused(withSecret("poor", a, b), nil); len(got) != 2 || !strings.HasPrefix(got[1], want) || !strings.Contains(got[1], `GRANT SET ON PARAMETER pg_stat_statements.track TO "poor"`) {
		t.Errorf("%q", got)
	}
	if got := refused(withSecret("", a, b), nil); len(got) != 0 {
		t.Errorf("of a superuser: %q", got)
	}
	open := withSecret("poor", a, b)
	for i := range open {
		open[i].Config.Password = ""
	}
	if got := refused(open, nil); len(got) != 0 {
		t.Errorf("without a password: %q", got)
	}
	for _, address := range []string{"postgres://firn:" + secret + "@10.0.0.1/app", "host=10.0.0.1 password = '" + secret + "'"} {
		if got := refused(open, &Options{Addresses: map[string]string{"a": address}}); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: %q", address, got)
		}
	}
	if version(t, a) < 150000 {
		return // a role cannot get that right
	}
	for _, s := range []*site{a, b} {
		s.must(t, "GRANT SET ON PARAMETER pg_stat_statements.track TO poor")
	}
	if got := refused(withSecret("poor", a, b), nil); len(got) != 0 {
		t.Errorf("of a role that may: %q", got)
	}
}
