package open

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
)

// Database opens the SQL database that a URL names, which is written as that of a
// store: PostgreSQL, MySQL and MariaDB, or SQLite, which has to be there and is only
// read. It is for what somebody else keeps in a database; nothing looks at what it
// promises. It does not wait for a server. Errors show no passwords; one about the URL
// itself is a [*URLError].
func Database(address string) (*sql.DB, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "postgres", "postgresql":
		config, err := PostgreSQL(address)
		if err != nil {
			return nil, err
		}
		return stdlib.OpenDB(*config), nil
	case "mysql":
		return openMySQLDatabase(address, rest)
	case "sqlite":
		path, err := sqlitePath(rest)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return nil, &URLError{Redact(address), err.Error()}
		}
		source := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
		return sql.Open("sqlite", source.String())
	}
	return nil, &URLError{Redact(address), "not a URL of a SQL database; it is " + postgreSQL.form + ", " + mySQLForm + " or sqlite:PATH"}
}

func openMySQLDatabase(address, rest string) (*sql.DB, error) {
	a, err := mySQL.address("mysql", rest)
	if err != nil {
		return nil, &URLError{Redact(address), err.Error()}
	}
	if _, ok := a.take("durability"); ok {
		return nil, &URLError{Redact(address), "option assume is for a store"}
	}
	connect, err := configureMySQL(a)
	if err != nil {
		return nil, &URLError{Redact(address), a.scrub(err)}
	}
	return connect()
}
