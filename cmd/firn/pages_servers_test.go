//go:build !windows

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/internal/variable"
)

// asOnTerminal has clients print what they print to a person, where no other program
// reads it.
var asOnTerminal = []replacement{
	{regexp.MustCompile(`(?m)^redis-cli\b([^|\n]*)$`), "redis-cli --no-raw$1"},
	{regexp.MustCompile(`(?m)^mariadb\b([^|\n]*)$`), "mariadb --table$1"},
	{regexp.MustCompile(`(?m)^mariadb --table(.* -BNe )`), "mariadb$1"}, // that person asks for less
	{regexp.MustCompile(`(?m)^curl `), "curl -sS "},
}

// PageServers are the servers of all pages. Those that start slowly are used by one
// page after the other, each of which makes its databases anew.
type pageServers struct {
	t      *testing.T // outlives the pages
	update bool       // the pages are made to say what is printed

	mu   sync.Mutex
	free map[string][]*testserver.Server // by the scheme of their URLs
}

// pageSettings of PostgreSQL are for shards that move. The servers stay durable.
var pageSettings = []string{
	"wal_level=logical", "max_replication_slots=50", "max_wal_senders=50", "max_logical_replication_workers=20",
	"max_worker_processes=40", "max_connections=300", "wal_retrieve_retry_interval=100ms",
}

// startServer starts a server by the scheme of its URLs.
var startServer = map[string]func(testing.TB, ...string) *testserver.Server{
	"postgres": func(tb testing.TB, _ ...string) *testserver.Server { return testserver.Postgres(tb, pageSettings...) }, "mysql": testserver.MariaDB, "redis": testserver.Redis,
	"etcd": testserver.Etcd, "zk": testserver.ZooKeeper,
}

// start returns a server that a page has for itself.
func (s *pageServers) start(t *testing.T, scheme string) *testserver.Server {
	if scheme != "postgres" && scheme != "mysql" {
		return startServer[scheme](t)
	}
	server := s.take(scheme)
	if server == nil {
		server = startServer[scheme](s.t)
	}
	t.Cleanup(func() {
		if t.Failed() { // a page that ended early leaves slots, subscriptions and sessions
			return
		}
		if scheme == "postgres" && !emptied(t, server) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free[scheme] = append(s.free[scheme], server)
	})
	return server
}

// emptied drops the databases and roles that a page has made: the next page has servers without them. It is false
// of a server that the page has stopped.
func emptied(t *testing.T, server *testserver.Server) bool {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the test has ended
	c, err := pgx.Connect(ctx, server.URL())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	names := func(query string) []string {
		rows, _ := c.Query(ctx, query)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return all
	}
	for _, name := range names("SELECT quote_ident(datname) FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'") {
		testdb.Drop(server.URL(), name)
	}
	for _, role := range names("SELECT quote_ident(rolname) FROM pg_roles WHERE rolname !~ '^pg_' AND rolname <> current_user") {
		for _, sql := range []string{"DROP OWNED BY " + role + " CASCADE", "DROP ROLE " + role} {
			if _, err := c.Exec(ctx, sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
	return true
}

// take returns a server that no page uses, or nil.
func (s *pageServers) take(scheme string) *testserver.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free[scheme])
	if n == 0 {
		return nil
	}
	server := s.free[scheme][n-1]
	s.free[scheme] = s.free[scheme][:n-1]
	return server
}

// Addresses say what a page's names are in the run: of servers, directories and days.
type addresses struct {
	in      []replacement // what the reader would type, in this order
	out     []replacement // what is printed
	url     map[string]string
	servers map[string]*testserver.Server // by the URLs of the page
	env     []string
	copies  []*url.URL // of servers that the page makes of others
}

type replacement struct {
	re *regexp.Regexp
	to string
}

func (a *addresses) typed(text string) string   { return replaceAll(a.in, text) }
func (a *addresses) printed(text string) string { return replaceAll(a.out, text) }

func replaceAll(all []replacement, text string) string {
	for _, r := range all {
		text = r.re.ReplaceAllString(text, r.to)
	}
	return text
}

// literally replaces a text, and what it is replaced by, as they are.
func literally(from, to string) replacement {
	return replacement{regexp.MustCompile(regexp.QuoteMeta(from)), strings.ReplaceAll(to, "$", "$$")}
}

var (
	pageURL   = regexp.MustCompile("\\b(postgres|mysql|redis|etcd|zk)://[^\\s'\"`,\\]})]+")
	sharedDir = regexp.MustCompile(`/var/lib/[a-z]+\b|/run/firn\b`)
	clients   = map[string]struct{ scheme, port, standard string }{
		"redis-cli": {"redis", "-p", "6379"}, "mariadb": {"mysql", "-P", "3306"}, "psql": {"postgres", "-p", "5432"},
	}
	clientHost = regexp.MustCompile(`\b(redis-cli|mariadb|psql)\b([^|;&\n]*?) -h ([\w.-]+)`)
)

// prepare starts the servers that a page names, and makes their databases. A host is
// one server, whatever its name, and "redis-cli -h cache" is the server of
// redis://cache.
func (s *pageServers) prepare(t *testing.T, p *page, home string) *addresses {
	a := &addresses{url: map[string]string{}, servers: map[string]*testserver.Server{}, in: slices.Clone(asOnTerminal)}
	text := ""
	for _, st := range p.steps {
		text += st.text + "\n" + st.at + "\n"
	}
	made := p.copies()
	hosts := map[string]*testserver.Server{}
	host := func(scheme, name string) *testserver.Server {
		if hosts[scheme+"://"+name] == nil {
			hosts[scheme+"://"+name] = s.start(t, scheme)
		}
		return hosts[scheme+"://"+name]
	}
	databases := map[string]bool{} // that were made
	for _, name := range pageURL.FindAllString(text, -1) {
		u, err := url.Parse(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if made[u.Host] {
			a.copies = append(a.copies, u)
			continue
		}
		server := host(u.Scheme, u.Host)
		makePageDatabase(t, server, u, databases)
		a.leads(u, server)
	}
	for _, m := range clientHost.FindAllStringSubmatch(text, -1) {
		host(clients[m[1]].scheme, m[3])
	}
	for _, name := range slices.SortedFunc(maps.Keys(a.url), longestFirst) {
		a.in = append(a.in, literally(name, a.url[name]))
	}
	for _, key := range slices.Sorted(maps.Keys(hosts)) {
		scheme, name, _ := strings.Cut(key, "://")
		a.host(scheme, name, hosts[key].Addr())
	}
	a.listening(t, text)
	a.directories(t, text, home)
	return a
}

// leads has a URL of the page lead to a server.
func (a *addresses) leads(u *url.URL, server *testserver.Server) {
	real := *u
	real.Host = server.Addr()
	a.url[u.String()], a.servers[u.String()] = real.String(), server
}

func longestFirst(a, b string) int { return len(b) - len(a) }

// host adds a server as clients name it.
func (a *addresses) host(scheme, name, addr string) {
	ip, port, _ := strings.Cut(addr, ":")
	for program, c := range clients {
		if c.scheme != scheme {
			continue
		}
		a.in = append(a.in, replacement{
			regexp.MustCompile(`\b` + program + `\b([^|;&\n]*?) -h ` + regexp.QuoteMeta(name) + `\b`),
			fmt.Sprintf("%s${1} -h %s %s %s", program, ip, c.port, port),
		})
		a.out = append(a.out, literally("@"+addr+"/", "@"+name+"/"), literally("//"+addr, "//"+name), literally(addr, name+":"+c.standard))
	}
	if scheme == "etcd" || scheme == "zk" {
		a.out = append(a.out, literally(addr, name))
	}
}

// listening gives firn serve and firn agent ports of their own instead of the standard ones.
func (a *addresses) listening(t *testing.T, text string) {
	ports := map[string]string{}
	if strings.Contains(text, "firn serve") {
		ports["RESP"], ports["HTTP"] = "6380", "6381"
	}
	if strings.Contains(text, "--listen 127.0.0.1:6382") {
		ports["AGENT"] = "6382"
	}
	for name, port := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, free, _ := net.SplitHostPort(l.Addr().String())
		if name != "AGENT" { // it has no variable
			a.env = append(a.env, variable.Prefix+name+"=127.0.0.1:"+free)
		}
		a.in = append(a.in, replacement{regexp.MustCompile(`\b` + port + `\b`), free})
		a.out = append(a.out, replacement{regexp.MustCompile(`\b` + free + `\b`), port})
	}
}

// directories makes those of the system that the page names.
func (a *addresses) directories(t *testing.T, text, home string) {
	for _, dir := range sharedDir.FindAllString(text, -1) {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a.in = append(a.in, replacement{sharedDir, strings.ReplaceAll(home, "$", "$$") + "$0"})
	a.out = append(a.out, literally(home+"/var/lib", "/var/lib"), literally(home+"/run", "/run"), literally(home+"/", ""))
}

// day has the page's date mean today's, and the one after it tomorrow's. It returns
// today's.
func (a *addresses) day(p *page) (string, error) {
	if p.today == "" {
		return "", nil
	}
	zone, err := time.LoadLocation(p.zone)
	if err != nil {
		return "", err
	}
	then, err := time.Parse("20060102", p.today)
	if err != nil {
		return "", err
	}
	now := time.Now().In(zone)
	for _, form := range []string{"20060102", "2006-01-02"} {
		// One after the other, so that none is replaced twice.
		for _, later := range []int{1, 0} {
			a.in = append(a.in, literally(then.AddDate(0, 0, later).Format(form), now.AddDate(0, 0, later).Format(form)))
		}
		for _, later := range []int{0, 1} {
			a.out = append(a.out, literally(now.AddDate(0, 0, later).Format(form), then.AddDate(0, 0, later).Format(form)))
		}
	}
	return now.Format("20060102"), nil
}

// makePageDatabase makes the database and the user of a URL, anew for this page.
func makePageDatabase(t *testing.T, server *testserver.Server, u *url.URL, made map[string]bool) {
	t.Helper()
	name, user := strings.TrimPrefix(u.Path, "/"), u.User.Username()
	password, _ := u.User.Password()
	key := u.Scheme + u.Host + "/" + name
	var statements []string
	switch {
	case u.Scheme == "postgres":
		statements = append(statements, fmt.Sprintf(`DO $$ BEGIN CREATE ROLE %q LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`, user))
		if user == "postgres" {
			statements = append(statements, `ALTER ROLE postgres SUPERUSER`)
		}
		if !made[key] && name != "postgres" {
			statements = append(statements, fmt.Sprintf(`DROP DATABASE IF EXISTS %q WITH (FORCE)`, name), fmt.Sprintf(`CREATE DATABASE %q OWNER %q`, name, user))
		}
	case u.Scheme == "mysql":
		if !made[key] {
			statements = append(statements, fmt.Sprintf("DROP DATABASE IF EXISTS `%s`", name), fmt.Sprintf("CREATE DATABASE `%s`", name))
		}
		if user != "root" {
			statements = append(statements,
				`DELETE FROM mysql.global_priv WHERE User = ''`, `FLUSH PRIVILEGES`, // nobody's come before others
				fmt.Sprintf("CREATE OR REPLACE USER '%s'@'%%' IDENTIFIED BY '%s'", user, password),
				fmt.Sprintf("GRANT ALL ON `%s`.* TO '%s'@'%%'", name, user))
		}
	}
	made[key] = true
	if len(statements) > 0 {
		admin := map[string]string{"postgres": "postgres://t@%s/postgres", "mysql": "mysql://root@%s/mysql"}[u.Scheme]
		for _, s := range statements {
			if err := runOn(t, fmt.Sprintf(admin, server.Addr()), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
}

// runOn executes SQL, of any number of statements.
func runOn(t *testing.T, address, text string) error {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if u.Scheme == "postgres" {
		config, err := pgx.ParseConfig(address)
		if err != nil {
			return err
		}
		config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
		c, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			return err
		}
		defer c.Close(t.Context())
		_, err = c.PgConn().Exec(t.Context(), text).ReadAll()
		return err
	}
	config := mysqldriver.NewConfig()
	config.Net, config.Addr, config.DBName, config.MultiStatements = "tcp", u.Host, strings.TrimPrefix(u.Path, "/"), true
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), text) // reads the results of all statements, Exec only that of the first
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.NextResultSet() {
	}
	return rows.Err()
}
