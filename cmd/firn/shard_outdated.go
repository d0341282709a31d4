package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
)

// updateDo is what to do about functions of another version of firn.
const updateDo = "to bring them up to date, with this version of firn on all servers: firn shard init"

// newerDo is what to do about functions of a newer version of firn. No command makes them older: this firn does not
// know what they have written.
const newerDo = "run the same command with the newer firn; to see which version this one is: firn version"

// againDo is what to do about an error after which the same command is run again, elsewhere or later; "" for others.
func againDo(err error) string {
	switch {
	case errors.As(err, new(*setup.ClockError)):
		return "set the clock that is wrong, then run the same command again"
	case errors.As(err, new(*setup.NewerError)):
		return newerDo
	}
	return ""
}

// outdated are the findings about servers whose functions are of another version of firn, as after an upgrade: a move
// refuses them.
func outdated(seen []*check.Server) []check.Finding {
	var newer, others []string
	for _, s := range seen {
		if s.Err != nil || s.Standby {
			continue
		}
		code, err := install.Code(s.Layout)
		switch {
		case err != nil:
		case s.SQL > install.SQLVersion:
			newer = append(newer, s.Name)
		case s.SQL < install.SQLVersion || s.Code != code:
			others = append(others, s.Name)
		}
	}
	var all []check.Finding
	if len(others) > 0 {
		of, them := serversNamed(others)
		all = append(all, check.Finding{Level: check.Warn, Text: "the functions of " + of + " are of another version of firn, so shards cannot move from or to " + them, Do: updateDo})
	}
	if len(newer) > 0 {
		of, them := serversNamed(newer)
		all = append(all, check.Finding{Level: check.Warn, Text: "a newer firn wrote the functions of " + of + ", so this firn cannot move shards from or to " + them, Do: newerDo})
	}
	return all
}

// serversNamed is "server a" or "servers a, b", and the pronoun of that.
func serversNamed(names []string) (of, them string) {
	slices.Sort(names)
	if len(names) == 1 {
		return "server " + names[0], "it"
	}
	return "servers " + strings.Join(names, ", "), "them"
}
