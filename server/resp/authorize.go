package resp

import (
	"strconv"
	"strings"
)

// Who the connection is.

// stranger reports whether the connection has yet to say who it is.
func (c *conn) stranger() bool { return c.server.Guarded() && c.session.Name() == "" }

func (c *conn) auth(args [][]byte) {
	if len(args) > 3 {
		c.wrongArity("auth")
		return
	}
	if c.enter(string(args[len(args)-1])) {
		c.ok()
	}
}

// enter makes the session that of a token, or answers why not.
func (c *conn) enter(token string) bool {
	if !c.server.Guarded() {
		c.fail("ERR AUTH called without any password configured: this server has no tokens, connect without one")
		return false
	}
	session, err := c.server.Enter(token)
	if err == nil && session.Name() != "" {
		c.session = session
		return true
	}
	if c.failures++; c.failures >= maxFailures {
		c.quit = true
	}
	c.fail("WRONGPASS invalid username-password pair or user is disabled: the token is not one of this server")
	return false
}

// hello is HELLO [version [AUTH user token] [SETNAME name]].
func (c *conn) hello(args [][]byte) {
	version, name := c.protocol, c.name
	var token []byte
	if len(args) > 1 {
		n, err := strconv.Atoi(string(args[1]))
		if err != nil {
			c.fail("ERR Protocol version is not an integer or out of range")
			return
		}
		if n != 2 && n != 3 {
			c.fail("NOPROTO unsupported protocol version")
			return
		}
		version = n
	}
	for rest := args[min(2, len(args)):]; len(rest) > 0; {
		switch word := strings.ToUpper(string(rest[0])); {
		case word == "AUTH" && len(rest) >= 3:
			token, rest = rest[2], rest[3:]
		case word == "SETNAME" && len(rest) >= 2:
			name, rest = string(rest[1]), rest[2:]
		default:
			c.fail("ERR Syntax error in HELLO option '" + printable(rest[0]) + "'")
			return
		}
	}
	if !isWord(name) {
		c.fail("ERR Client names cannot contain spaces, newlines or special characters.")
		return
	}
	if token != nil && !c.enter(string(token)) {
		return
	}
	if c.stranger() {
		c.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.protocol, c.reply.protocol, c.name = version, version, name
	c.dictionary(7)
	for _, pair := range [][2]string{{"server", "firn"}, {"version", c.Version}} {
		c.bulk(pair[0])
		c.bulk(pair[1])
	}
	c.bulk("proto")
	c.integer(version)
	c.bulk("id")
	c.integer(int(c.id))
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		c.bulk(pair[0])
		c.bulk(pair[1])
	}
	c.bulk("modules")
	c.array(0)
}
