package resp

import (
	"fmt"
	"strings"
	"time"
)

// The commands about the connection itself: its name, and how it is answered.

// muting is what CLIENT REPLY has set.
type muting uint8

const (
	speaking muting = iota
	skipping        // the next answer
	silent
)

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
