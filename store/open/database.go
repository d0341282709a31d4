package open

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// This file is about SQL databases that are no stores: the servers of shards, and the
// databases that counters are imported from. Their URLs are written as those of stores.

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
	if _, ok := a.take("assume"); ok {
		return nil, &URLError{Redact(address), "option assume is for a store"}
	}
	connect, err := configureMySQL(a)
	if err != nil {
		return nil, &URLError{Redact(address), a.scrub(err)}
	}
	return connect()
}

// PostgreSQL returns how to connect to the database of a URL that is written as that
// of a store. Files that it names are read. Its errors, as those of connecting, show
// no passwords; one about the URL itself is a [*URLError].
func PostgreSQL(url string) (*pgx.ConnConfig, error) {
	a, err := postgreSQLAddress(url)
	if err != nil {
		return nil, err
	}
	config, err := configurePostgreSQL(a)()
	if err != nil {
		return nil, &URLError{Redact(url), a.scrub(err)}
	}
	return config, nil
}

// CheckPostgreSQL returns what is wrong with a URL of [PostgreSQL] as such, nil or a
// [*URLError].
func CheckPostgreSQL(url string) error {
	_, err := postgreSQLAddress(url)
	return err
}

func postgreSQLAddress(url string) (*address, error) {
	bad := func(reason string) error { return &URLError{Redact(url), reason} }
	scheme, rest, _ := strings.Cut(url, ":")
	if scheme != "postgres" && scheme != "postgresql" {
		return nil, bad("not a URL of a PostgreSQL database; it is " + postgreSQL.form)
	}
	a, err := postgreSQL.address(scheme, rest)
	if err != nil {
		return nil, bad(err.Error())
	}
	if _, ok := a.options["assume"]; ok {
		return nil, bad("option assume is for a store")
	}
	return a, nil
}
