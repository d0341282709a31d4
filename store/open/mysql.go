package open

import (
	"database/sql"
	"errors"
	"net"
	"net/url"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/store/mysql"
)

const mySQLForm = "mysql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE"

var mySQL = kind{
	form: mySQLForm,
	options: []string{
		// the driver's
		"allowCleartextPasswords", "allowFallbackToPlaintext", "allowNativePasswords", "checkConnLiveness", "compress",
		"connectionAttributes", "readTimeout", "timeout", "tls", "writeTimeout",
		// the mysql command's
		"socket", "ssl-ca", "ssl-cert", "ssl-key",
	},
	socket: "socket",
	parse:  parseMySQL,
}

func parseMySQL(a *address) (opener, error) {
	connect, err := configureMySQL(a)
	if err != nil {
		return nil, err
	}
	return func() (*Store, error) {
		db, err := connect()
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections / 2)
		db.SetConnMaxIdleTime(idle)
		s := mysql.New(db)
		return &Store{Store: s, init: s.Init, close: db.Close}, nil
	}, nil
}

// configureMySQL returns what opens the database of an address.
func configureMySQL(a *address) (func() (*sql.DB, error), error) {
	database := strings.TrimPrefix(a.path, "/")
	socket, _ := a.take("socket")
	switch {
	case database == "" || strings.Contains(database, "/"):
		return nil, errors.New("which database? it is " + mySQLForm)
	case len(a.hosts) > 1:
		return nil, errors.New("there can be one host; a proxy, or a name in DNS, can stand for several")
	case len(a.hosts) == 1 && socket != "":
		return nil, errors.New("a host and option socket exclude each other")
	}
	files, err := a.takeMySQLFiles()
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, value := range a.options {
		query.Set(name, value)
	}
	// The driver is not shown user and password, so that no error of it has them.
	config, err := driver.ParseDSN("tcp(127.0.0.1)/" + url.PathEscape(database) + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	config.User, config.Passwd, config.Logger = a.user, a.password, &driver.NopLogger{}
	if config.Net, config.Addr = "unix", socket; socket == "" {
		config.Net, config.Addr = "tcp", a.addresses("3306")[0]
	}
	if config.Timeout == 0 {
		config.Timeout = dialPatience
	}
	return func() (*sql.DB, error) {
		c := config.Clone()
		if files.on {
			if files.name, _, err = net.SplitHostPort(c.Addr); err != nil {
				return nil, err
			}
			if c.TLS, err = files.config(); err != nil {
				return nil, err
			}
		}
		connector, err := driver.NewConnector(c)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}, nil
}

// takeMySQLFiles takes the options that name files for TLS. Option tls alone, the
// driver's, trusts the certificates that the system trusts.
func (a *address) takeMySQLFiles() (files tlsFiles, err error) {
	for name, into := range map[string]*string{"ssl-ca": &files.ca, "ssl-cert": &files.cert, "ssl-key": &files.key} {
		if *into, _ = a.take(name); *into != "" {
			files.on = true
		}
	}
	switch mode := a.options["tls"]; {
	case (files.cert == "") != (files.key == ""):
		return files, errors.New("options ssl-cert and ssl-key go together")
	case files.on && mode != "" && mode != "true" && mode != "skip-verify":
		return files, errors.New("with ssl-ca or ssl-cert, option tls is true, skip-verify or left out")
	case files.on && len(a.hosts) == 0:
		return files, errors.New("a socket has no TLS")
	default:
		files.anyCertificateIsGood = mode == "skip-verify"
		return files, nil
	}
}
