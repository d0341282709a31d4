package move

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// kept are what a connection string says of TLS, and of which of several hosts is meant.
// The driver keeps it in another form.
var kept = []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslsni", "sslnegotiation", "channel_binding", "target_session_attrs"}

// conninfo is how libpq reaches a server as this process does, and what belongs into the
// environment instead, where others do not see it.
func (e *end) conninfo() (text string, secret []string) {
	c := e.Config
	if c.Password != "" {
		secret = []string{"PGPASSWORD=" + c.Password}
	}
	return conninfo(c, false), secret
}

// reached is how the other server reaches this one.
func (m *Mover) reached(e *end) string { return reached(m.options, e.Name, e.Config) }

func reached(o Options, name string, config *pgx.ConnConfig) string {
	if text, ok := o.Addresses[name]; ok {
		return text
	}
	return conninfo(config, true)
}

// hasPassword says whether an address has a password. In doubt it has.
func hasPassword(address string) bool {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		_, has := u.User.Password()
		return has || u.Query().Has("password")
	}
	return strings.Contains(address, "password")
}

func conninfo(c *pgx.ConnConfig, password bool) string {
	hosts, ports := []string{c.Host}, []string{strconv.Itoa(int(c.Port))}
	for _, f := range c.Fallbacks {
		if f.Host != hosts[len(hosts)-1] || strconv.Itoa(int(f.Port)) != ports[len(ports)-1] {
			hosts, ports = append(hosts, f.Host), append(ports, strconv.Itoa(int(f.Port)))
		}
	}
	words := []string{
		word("host", strings.Join(hosts, ",")), word("port", strings.Join(ports, ",")),
		word("user", c.User), word("dbname", c.Database), "connect_timeout=10",
	}
	if password && c.Password != "" {
		words = append(words, word("password", c.Password))
	}
	for _, name := range kept {
		if value := option(c.ConnString(), name); value != "" {
			words = append(words, word(name, value))
		}
	}
	return strings.Join(words, " ")
}

// option is what a connection string in the form of a URL says of something. A plus is one
// there, as it is to the driver and to libpq.
func option(text, name string) string {
	u, err := url.Parse(strings.ReplaceAll(text, "+", "%2B"))
	if err != nil {
		return ""
	}
	return u.Query().Get(name)
}

func word(name, value string) string {
	return fmt.Sprintf(`%s='%s'`, name, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
}
