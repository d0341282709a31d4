package open

import (
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/store/postgres"
)

var postgreSQL = kind{
	form: "postgres://[USER[:PASSWORD]@]HOST[:PORT],.../DATABASE",
	options: []string{
		// libpq's
		"application_name", "channel_binding", "connect_timeout", "host", "options", "passfile", "password", "port", "search_path",
		"sslcert", "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "sslsni", "target_session_attrs", "user",
		// pgx's
		"default_query_exec_mode",
	},
	socket: "host",
	parse:  parsePostgreSQL,
}

func parsePostgreSQL(a *address) (opener, error) {
	configure := configurePostgreSQL(a)
	return func() (*Store, error) {
		config, err := configure()
		if err != nil {
			return nil, err
		}
		db := stdlib.OpenDB(*config)
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections / 2)
		db.SetConnMaxIdleTime(idle)
		s := postgres.New(db)
		return &Store{Store: s, init: s.Init, close: db.Close}, nil
	}, nil
}

// configurePostgreSQL returns what makes the configuration of a connection.
func configurePostgreSQL(a *address) func() (*pgx.ConnConfig, error) {
	// The URL is put together again without its secrets, so that no error of the
	// driver can show them.
	password := a.password
	if p, ok := a.take("password"); ok {
		password = p
	}
	query := url.Values{}
	for name, value := range a.options {
		query.Set(name, value)
	}
	// To PostgreSQL a plus is a plus.
	u := url.URL{Scheme: "postgres", Host: strings.Join(a.hosts, ","), Path: a.path, RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20")}
	if a.user != "" {
		u.User = url.User(a.user)
	}
	return func() (*pgx.ConnConfig, error) {
		config, err := pgx.ParseConfig(u.String())
		if err != nil {
			return nil, driverReason(err)
		}
		if password != "" {
			config.Password = password
		}
		if config.ConnectTimeout == 0 {
			config.ConnectTimeout = dialPatience
		}
		// PgBouncer in transaction mode, and failover between equal servers, take a
		// connection's prepared statements away.
		if !query.Has("default_query_exec_mode") {
			config.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		if config.RuntimeParams["application_name"] == "" {
			config.RuntimeParams["application_name"] = "firn"
		}
		return config, nil
	}
}

// driverReason is why pgx does not take a URL, without the URL.
func driverReason(err error) error {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "`: "); ok {
		text = after
	}
	return errors.New(text)
}
