package resp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/server"
)

// A command is one that is understood.
type command struct {
	name    string // in capitals
	lower   string
	arity   int  // of arguments with the name; negative: at least so many
	keys    int  // 1: the first argument is the name of a series
	draws   bool // it goes into the group
	direct  bool // it does not wait for EXEC
	open    bool // to those who have not said who they are
	group   string
	summary string
	do      func(c *conn, args [][]byte) // with the name
}

// commands, by name. It is filled at the start, because COMMAND tells what is in it.
var commands = map[string]*command{}

var allCommands []*command

func init() {
	allCommands = []*command{
		{name: "INCR", arity: 2, keys: 1, draws: true, group: "string", summary: "The next id of a series, as an integer", do: (*conn).incr},
		{name: "INCRBY", arity: 3, keys: 1, draws: true, group: "string", summary: "The last of a range of n numbers of a sequence, as an integer", do: (*conn).incrBy},
		{name: "FIRN.NEXT", arity: -2, keys: 1, draws: true, group: "firn", summary: "The next id of a series, or n of them, as strings", do: (*conn).next},
		{name: "FIRN.RANGE", arity: 3, keys: 1, group: "firn", summary: "A range of n numbers of a sequence: first, count and step, as strings", do: (*conn).rangeOf},
		{name: "FIRN.DECODE", arity: 2, group: "firn", summary: "What an id says", do: (*conn).decode},
		{name: "FIRN.OPTION", arity: -2, group: "firn", summary: "STRINGS: integers above 2^53-1 are answered as strings on this connection", do: (*conn).option},

		{name: "AUTH", arity: -2, open: true, group: "connection", summary: "Says who the connection is: a token, or any name and a token", do: (*conn).auth},
		{name: "HELLO", arity: -1, open: true, group: "connection", summary: "Chooses the version of the protocol, 2 or 3", do: (*conn).hello},
		{name: "CLIENT", arity: -2, group: "connection", summary: "The connection's name, library, number and answers", do: (*conn).client},
		{name: "ECHO", arity: 2, group: "connection", summary: "Answers what it is given", do: (*conn).echo},
		{name: "PING", arity: -1, open: true, group: "connection", summary: "Answers PONG, or what it is given", do: (*conn).ping},
		{name: "QUIT", arity: -1, direct: true, open: true, group: "connection", summary: "Ends the connection", do: (*conn).bye},
		{name: "RESET", arity: 1, direct: true, open: true, group: "connection", summary: "Makes the connection what it was at first", do: (*conn).again},
		{name: "SELECT", arity: 2, group: "connection", summary: "Accepts database 0, the only one", do: (*conn).selectDB},

		{name: "MULTI", arity: 1, group: "transactions", summary: "Begins a pipeline that EXEC ends", do: (*conn).multi},
		{name: "EXEC", arity: 1, direct: true, group: "transactions", summary: "Answers what was sent since MULTI", do: (*conn).exec},
		{name: "DISCARD", arity: 1, direct: true, group: "transactions", summary: "Forgets what was sent since MULTI", do: (*conn).discard},

		{name: "COMMAND", arity: -1, group: "server", summary: "The commands there are", do: (*conn).tell},
		{name: "CONFIG", arity: -2, group: "server", summary: "GET: the few settings that clients ask for", do: (*conn).config},
		{name: "INFO", arity: -1, group: "server", summary: "The server, in lines of key:value", do: (*conn).info},
	}
	for _, one := range allCommands {
		one.lower = strings.ToLower(one.name)
		commands[one.name] = one
	}
}

// lookup finds a command by its name in any case.
func lookup(name []byte) *command {
	var upper [32]byte
	if len(name) > len(upper) {
		return nil
	}
	for i, b := range name {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		upper[i] = b
	}
	return commands[string(upper[:len(name)])]
}

// find is lookup. Most commands are the same as the one before.
func (c *conn) find(name []byte) *command {
	if c.last != nil && (string(name) == c.last.name || string(name) == c.last.lower) {
		return c.last
	}
	c.last = lookup(name)
	return c.last
}

// command answers a command, or puts it into the group.
func (c *conn) command(args [][]byte) {
	c.hush = c.mute != speaking
	if c.mute == skipping {
		c.mute = speaking
	}
	one := c.find(args[0])
	switch {
	case one == nil:
		c.unknown(args)
		return
	case !one.open && c.stranger():
		c.refuse("NOAUTH Authentication required: AUTH with a token of this server")
		return
	case one.arity >= 0 && len(args) != one.arity, len(args) < -one.arity:
		c.wrongArity(one.lower)
		return
	case c.queue != nil && !one.direct:
		c.enqueue(one, args)
		return
	case one.draws:
		one.do(c, args)
		return
	}
	c.flush()
	before := len(c.out)
	one.do(c, args)
	if c.hush {
		c.out = c.out[:before]
	}
}

// refuse answers with an error, behind what is there of a group. Between MULTI and
// EXEC it is the end of all that is there.
func (c *conn) refuse(text string) {
	if c.queue != nil {
		c.queue.wrong = true
	}
	c.flush()
	if !c.hush {
		c.fail(text)
	}
}

func (c *conn) wrongArity(name string) {
	c.refuse("ERR wrong number of arguments for '" + name + "' command")
}

// others are commands that people try, and what to type instead.
var others = map[string]string{
	"GET":    "reading a series does not show its last id, which somebody else may have drawn: INCR draws the next one",
	"SET":    "nobody sets a series: INCR draws the next id, and firn.yaml says where numbers begin",
	"DECR":   "no id is given back, and none is issued twice",
	"DECRBY": "no id is given back, and none is issued twice",
	"DEL":    "a series is not deleted: its ids would be issued twice",
	"MGET":   "reading a series does not show its last id, which somebody else may have drawn: INCR draws the next one",
}

func (c *conn) unknown(args [][]byte) {
	name := strings.ToUpper(string(args[0][:min(len(args[0]), 64)]))
	if instead := others[name]; instead != "" {
		c.refuse("ERR " + name + " is not for ids: " + instead)
		return
	}
	if name == "POST" || name == "HOST:" {
		// A browser that was made to talk to this port, and not a client.
		c.refuse("ERR this is not HTTP")
		c.quit = true
		return
	}
	c.refuse("ERR unknown command '" + name + "'; COMMAND LIST has those there are")
}

var errTexts = errors.New("the series gives texts, and INCR answers an integer: FIRN.NEXT")

// overLimit is the answer to who asks for too many. The word after its code is how many one may
// ask for at a time, which clients read.
func overLimit(e *server.LimitError) string {
	return fmt.Sprintf("LIMIT %d is the most and 1 the least at a time: %s is %d", e.Max, e.What, e.Asked)
}

// failure answers an error of the server. Its first word is the code by which clients
// tell errors apart: several of them come again by themselves at a TRYAGAIN.
func (c *conn) failure(err error) {
	code := "ERR"
	var limit *server.LimitError
	switch {
	case errors.As(err, &limit): // it was lowered since the command was read
		c.fail(overLimit(limit))
		return
	case errors.Is(err, server.ErrNoToken), errors.Is(err, server.ErrToken):
		code = "NOAUTH"
	case errors.Is(err, server.ErrDenied):
		code = "NOPERM"
	case errors.Is(err, server.ErrNoRange), errors.Is(err, errTexts):
		code = "WRONGTYPE"
	case errors.As(err, new(*document.FullError)):
		code = "FULL"
	case server.Retry(err):
		code = "TRYAGAIN"
	}
	text, hint := c.session.Explain(err, fewer)
	text = code + " " + text
	if hint != "" {
		text += "; hint: " + hint
	}
	c.fail(text)
}

// fewer says how to ask a series for the n values that it has left.
func fewer(series string, n int64) string {
	return fmt.Sprintf("FIRN.NEXT %s %d gives what is left", series, n)
}
