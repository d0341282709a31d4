package resp

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The commands about the connection itself: who it is, how it is answered.

// muting is what CLIENT REPLY has set.
type muting uint8

const (
	speaking muting = iota
	skipping        // the next answer
	silent
)

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

// maxWord is how long names that a client gives may be.
const maxWord = 128

// isWord reports whether a client may call something so.
func isWord(s string) bool {
	for _, b := range []byte(s) {
		if b < '!' || b > '~' {
			return false
		}
	}
	return len(s) <= maxWord
}

// printable is what was sent, short enough to be said back.
func printable(b []byte) string { return string(b[:min(len(b), 64)]) }

func (c *conn) client(args [][]byte) {
	word, n := strings.ToUpper(string(args[1])), len(args)
	switch {
	case word == "ID" && n == 2:
		c.integer(int(c.id))
	case word == "GETNAME" && n == 2:
		if c.name == "" {
			c.null()
			return
		}
		c.bulk(c.name)
	case word == "SETNAME" && n == 3:
		c.setWord(&c.name, args[2])
	case word == "SETINFO" && n == 4:
		c.setInfo(args[2], args[3])
	case word == "INFO" && n == 2, word == "LIST":
		c.verbatim(c.describe() + "\n")
	case word == "REPLY" && n == 3:
		c.setReply(args[2])
	case (word == "NO-EVICT" || word == "NO-TOUCH") && n == 3:
		c.ok() // there is nothing to evict or to touch
	default:
		c.fail("ERR unknown subcommand or wrong number of arguments for '" + printable(args[1]) +
			"': CLIENT ID, GETNAME, SETNAME, SETINFO, INFO, LIST, REPLY, NO-EVICT, NO-TOUCH")
	}
}

func (c *conn) setWord(into *string, word []byte) bool {
	if !isWord(string(word)) {
		c.fail("ERR Client names cannot contain spaces, newlines or special characters.")
		return false
	}
	*into = string(word)
	c.ok()
	return true
}

// roundingLibraries are clients in JavaScript, whose integers are rounded above
// 2^53-1. What follows in brackets is theirs.
var roundingLibraries = []string{"node-redis", "ioredis", "iovalkey", "GlideJS"}

func (c *conn) setInfo(what, value []byte) {
	switch strings.ToUpper(string(what)) {
	case "LIB-NAME":
		if !c.setWord(&c.library, value) {
			return
		}
		for _, name := range roundingLibraries {
			if c.library == name || strings.HasPrefix(c.library, name+"(") {
				c.safe = true
			}
		}
	case "LIB-VER":
		c.setWord(&c.release, value)
	default:
		c.fail("ERR Unrecognized option '" + printable(what) + "'")
	}
}

func (c *conn) setReply(how []byte) {
	switch strings.ToUpper(string(how)) {
	case "ON":
		c.mute, c.hush = speaking, false
		c.ok()
	case "OFF":
		c.mute, c.hush = silent, true
	case "SKIP":
		if c.mute == speaking {
			c.mute = skipping
		}
		c.hush = true
	default:
		c.fail("ERR syntax error: CLIENT REPLY ON, OFF or SKIP")
	}
}

// describe is the line of CLIENT INFO. CLIENT LIST has it alone: a connection sees
// itself.
func (c *conn) describe() string {
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d db=0 user=%s resp=%d lib-name=%s lib-ver=%s",
		c.id, c.nc.RemoteAddr(), c.nc.LocalAddr(), c.name, int(time.Since(c.began).Seconds()), c.session.Name(), c.protocol, c.library, c.release)
}

func (c *conn) echo(args [][]byte) { c.bulk(string(args[1])) }

func (c *conn) ping(args [][]byte) {
	switch len(args) {
	case 1:
		c.simple("PONG")
	case 2:
		c.bulk(string(args[1]))
	default:
		c.wrongArity("ping")
	}
}

func (c *conn) bye([][]byte) {
	c.ok()
	c.quit = true
}

func (c *conn) again([][]byte) {
	c.reset()
	c.reply.protocol = c.protocol
	c.hush = false
	c.simple("RESET")
}

func (c *conn) selectDB(args [][]byte) {
	if string(args[1]) != "0" {
		c.fail("ERR DB index is out of range: there is database 0 alone")
		return
	}
	c.ok()
}
