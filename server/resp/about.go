package resp

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// The commands about the server: COMMAND, CONFIG and INFO, as far as clients ask.

// tell is COMMAND and its subcommands.
func (c *conn) tell(args [][]byte) {
	if len(args) == 1 {
		c.infos(nil)
		return
	}
	names := args[2:]
	switch strings.ToUpper(string(args[1])) {
	case "COUNT":
		c.integer(len(allCommands))
	case "LIST":
		c.array(len(allCommands))
		for _, one := range allCommands {
			c.bulk(one.lower)
		}
	case "INFO":
		c.infos(names)
	case "DOCS":
		c.docs(names)
	default:
		c.fail("ERR unknown subcommand '" + printable(args[1]) + "': COMMAND COUNT, LIST, INFO, DOCS")
	}
}

// infos answers what COMMAND INFO does: all commands where none is named.
func (c *conn) infos(names [][]byte) {
	all := allCommands
	if len(names) > 0 {
		all = nil
		for _, name := range names {
			all = append(all, lookup(name))
		}
	}
	c.array(len(all))
	for _, one := range all {
		if one == nil {
			c.null()
			continue
		}
		c.array(10)
		c.bulk(one.lower)
		c.integer(one.arity)
		flags := one.flags()
		c.set(len(flags))
		for _, flag := range flags {
			c.simple(flag)
		}
		for range 3 { // first key, last key, step
			c.integer(one.keys)
		}
		c.set(1)
		c.simple("@" + one.group)
		for range 3 { // tips, key specifications, subcommands
			c.array(0)
		}
	}
}

func (one *command) flags() []string {
	flags := []string{"fast"}
	if one.keys > 0 {
		flags = append(flags, "write")
	}
	if one.open {
		flags = append(flags, "no_auth")
	}
	return flags
}

func (c *conn) docs(names [][]byte) {
	var all []*command
	for _, name := range names {
		if one := lookup(name); one != nil {
			all = append(all, one)
		}
	}
	if len(names) == 0 {
		all = allCommands
	}
	c.dictionary(len(all))
	for _, one := range all {
		c.bulk(one.lower)
		c.dictionary(3)
		for _, text := range []string{"summary", one.summary, "since", "0.1.0", "group", one.group} {
			c.bulk(text)
		}
	}
}

// config answers CONFIG GET with what is so, in the words of Redis.
func (c *conn) config(args [][]byte) {
	if !strings.EqualFold(string(args[1]), "GET") || len(args) < 3 {
		c.fail("ERR CONFIG GET is all there is: settings are in firn.yaml, which is read again at SIGHUP")
		return
	}
	settings := [][2]string{
		{"appendonly", "no"},
		{"databases", "1"},
		{"maxclients", strconv.Itoa(c.MaxConns)},
		{"save", ""},
		{"timeout", strconv.Itoa(int(c.Idle.Seconds()))},
	}
	var found [][2]string
	for _, s := range settings {
		for _, pattern := range args[2:] {
			if ok, err := path.Match(strings.ToLower(string(pattern)), s[0]); err == nil && ok {
				found = append(found, s)
				break
			}
		}
	}
	c.dictionary(len(found))
	for _, s := range found {
		c.bulk(s[0])
		c.bulk(s[1])
	}
}

// compatible is the version of Redis whose protocol this is.
const compatible = "7.2.0"

func (c *conn) info([][]byte) {
	up := time.Since(c.started)
	var b strings.Builder
	section := func(name string, pairs ...any) {
		fmt.Fprintf(&b, "# %s\r\n", name)
		for i := 0; i < len(pairs); i += 2 {
			fmt.Fprintf(&b, "%v:%v\r\n", pairs[i], pairs[i+1])
		}
	}
	section("Server", "redis_version", compatible, "redis_mode", "standalone", "firn_version", c.Version,
		"uptime_in_seconds", int(up.Seconds()), "uptime_in_days", int(up.Hours()/24))
	b.WriteString("\r\n")
	section("Clients", "connected_clients", c.Stats.Conns.Load(), "maxclients", c.MaxConns)
	b.WriteString("\r\n")
	section("Persistence", "loading", 0)
	b.WriteString("\r\n")
	section("Stats", "total_connections_received", c.Stats.Accepted.Load(), "rejected_connections", c.Stats.Rejected.Load(),
		"total_commands_processed", c.Stats.Commands.Load())
	b.WriteString("\r\n")
	section("Replication", "role", "master", "connected_slaves", 0)
	c.verbatim(b.String())
}
