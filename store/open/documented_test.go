package open_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// oddPassword has every character that means something to a URL, a client or a server.
const oddPassword = `a@b:c/d%e#f?g "h' ü€&=+,[]\{}|;<>!$%2F`

// inURL writes a password as docs/reference/stores.md says.
var inURL = strings.NewReplacer("%", "%25", "/", "%2F", "?", "%3F", "#", "%23")

// documented returns the lines of docs/reference/stores.md that match.
func documented(t *testing.T, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("../../docs/reference/stores.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^"+pattern+"$").FindAllString(string(text), -1)
	if len(lines) == 0 {
		t.Fatalf("docs/reference/stores.md has no line %s", pattern)
	}
	return lines
}

// execute executes SQL on a server.
func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// The privileges that docs/reference/stores.md gives a user are enough for all that firn
// does, and a password may have any character.
func TestDocumentedUser(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T) (url string){
		"postgres": appOfPostgres, "pgbouncer": behindPgBouncer, "mysql": appOfMariaDB, "etcd": appOfEtcd, "redis": appOfRedis, "zk": appOfZooKeeper,
	} {
		t.Run(name, func(t *testing.T) { everything(t, prepare(t)) })
	}
}

// What SetupText prints an administrator executes as it is, with the client of the server. Then the
// role that it made is enough for all that firn does.
func TestSetupText(t *testing.T) {
	const password = "p4ssw0rd"
	text := func(t *testing.T, store string) string {
		t.Helper()
		text, err := open.SetupText(store, password)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	piped := func(t *testing.T, text string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(strings.ToLower(string(out)), "err") {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	for name, prepare := range map[string]func(*testing.T) (url string){
		"postgres": func(t *testing.T) string {
			pg := testserver.Postgres(t)
			onlyWithPassword(t, pg, open.SetupRole)
			piped(t, text(t, "postgres"), "psql", "-qX", "-v", "ON_ERROR_STOP=1", pg.URL())
			return strings.Replace(pg.URL(), "t@", "firn:"+password+"@", 1)
		},
		"mysql": func(t *testing.T) string {
			server := testserver.MariaDB(t)
			host, port, _ := strings.Cut(server.Addr(), ":")
			client := []string{"mariadb", "--no-defaults", "-h", host, "-P", port, "-u", "root"}
			piped(t, "DELETE FROM mysql.global_priv WHERE User = ''; FLUSH PRIVILEGES; CREATE DATABASE app;", client...)
			piped(t, text(t, "mysql://root@"+server.Addr()+"/app"), append(client, "app")...)
			return "mysql://firn:" + password + "@" + server.Addr() + "/app"
		},
		"redis": func(t *testing.T) string {
			server := testserver.Redis(t)
			host, port, _ := strings.Cut(server.Addr(), ":")
			url := "@" + server.Addr() + "/2?hash=ids&client_name=shop"
			piped(t, text(t, "redis://"+url), "redis-cli", "-h", host, "-p", port)
			return "redis://firn:" + password + url
		},
		"etcd": func(t *testing.T) string {
			server := testserver.Etcd(t)
			piped(t, "etcdctl() { command etcdctl --endpoints "+server.Addr()+" \"$@\" >&3; }\nexec 3>/dev/null\nset -e\n"+text(t, "etcd://"+server.Addr()+"/ids")+
				"etcdctl user add root:root\netcdctl user grant-role root root\netcdctl auth enable\n", "env", "ETCDCTL_API=3", "bash")
			return "etcd://firn:" + password + "@" + server.Addr() + "/ids"
		},
	} {
		t.Run(name, func(t *testing.T) { everything(t, prepare(t)) })
	}
	for _, store := range []string{"", "sqlite:/ids.db", "zk://h/ids", "oracle", "redis://h?hsh=x"} {
		if text, err := open.SetupText(store, password); err == nil {
			t.Errorf("%q: %s", store, text)
		}
	}
}

// onlyWithPassword makes a server of tests ask a role for its password.
func onlyWithPassword(t *testing.T, pg *testserver.Server, role string) {
	t.Helper()
	hba := filepath.Join(pg.Home(), "data", "pg_hba.conf")
	rules, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, append([]byte("host all "+role+" 127.0.0.1/32 scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	execute(t, admin, `SELECT pg_reload_conf()`)
}

// everything does all that firn does with a store.
func everything(t *testing.T, url string) {
	t.Helper()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Durability(t.Context()); err != nil {
		t.Errorf("Durability: %v", err)
	}
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	if r, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version, Within: time.Hour}); err != nil {
		t.Errorf("Put over another: %v", err)
	}
	if u := store.AsUpdater(s); u != nil {
		if r, err = u.Update(t.Context(), "k", func(store.Record) ([]byte, error) { return []byte(`3`), nil }); err != nil {
			t.Errorf("Update: %v", err)
		}
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("Get: %+v, %v", got, err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 {
		t.Errorf("List: %v, %v", l, err)
	}
}

// initialise makes the tables, as somebody who may.
func initialise(t *testing.T, url string) {
	t.Helper()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// PgBouncer in transaction mode stands before the server.
func behindPgBouncer(t *testing.T) string {
	return testserver.PgBouncer(t, testserver.Postgres(t)).URL()
}

func appOfPostgres(t *testing.T) (url string) {
	pg := testserver.Postgres(t)
	initialise(t, pg.URL())
	admin, err := sql.Open("pgx", pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	onlyWithPassword(t, pg, "app")
	execute(t, admin, `CREATE ROLE app LOGIN PASSWORD '`+strings.ReplaceAll(oddPassword, `'`, `''`)+`'`)
	execute(t, admin, documented(t, `GRANT (USAGE|SELECT|pg_).* TO app;.*`)...)
	return strings.Replace(pg.URL(), "t@", "app:"+inURL.Replace(oddPassword)+"@", 1)
}

func appOfMariaDB(t *testing.T) string {
	server := testserver.MariaDB(t)
	initialise(t, server.URL())
	admin, err := sql.Open("mysql", "root@tcp("+server.Addr()+")/test")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(oddPassword)
	execute(t, admin, `DROP DATABASE IF EXISTS app`, `DELETE FROM mysql.global_priv WHERE User = ''`, `FLUSH PRIVILEGES`,
		`CREATE DATABASE app`, `CREATE USER app@'%' IDENTIFIED BY '`+quoted+`'`)
	initialise(t, strings.Replace(server.URL(), "/test", "/app", 1))
	execute(t, admin, documented(t, `GRANT .* TO 'app'@'%';.*`)...)
	return "mysql://app:" + inURL.Replace(oddPassword) + "@" + server.Addr() + "/app"
}

func appOfEtcd(t *testing.T) string {
	server := testserver.Etcd(t)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.UserAdd(t.Context(), "app", oddPassword))
	for _, line := range documented(t, `etcdctl .*`) {
		args := strings.Fields(strings.Replace(line, "USER", "app", 1))
		cmd := exec.CommandContext(t.Context(), args[0], append([]string{"--endpoints", server.Addr()}, args[1:]...)...)
		cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	must(c.UserAdd(t.Context(), "root", "root"))
	must(c.UserGrantRole(t.Context(), "root", "root"))
	must(c.AuthEnable(t.Context()))
	return "etcd://app:" + inURL.Replace(oddPassword) + "@" + server.Addr()
}

func appOfRedis(t *testing.T) string {
	server := testserver.Redis(t)
	c := client.NewClient(&client.Options{Addr: server.Addr()})
	defer c.Close()
	for _, line := range documented(t, `ACL SETUSER .*`) {
		var args []any
		for _, word := range strings.Fields(line) {
			args = append(args, strings.Replace(word, ">PASSWORD", ">"+oddPassword, 1))
		}
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return "redis://firn:" + inURL.Replace(oddPassword) + "@" + server.Addr()
}

func appOfZooKeeper(t *testing.T) string {
	server := testserver.ZooKeeper(t)
	return "zk://firn:" + inURL.Replace(oddPassword) + "@" + server.Addr() + "/ids"
}
