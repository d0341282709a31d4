package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An other is a server that may be promoted: a standby that is connected, or the slot of one
// that is not.
type other struct {
	id        string // the pid of its session, or the name of the slot
	connected bool
	sync      string // sync_state, "" where this role may not see it
	name      string // application_name, which every role may see
}

// parseOthers reads the lines of sqlPromise.
func parseOthers(text string) (list []other) {
	for line := range strings.SplitSeq(text, "\n") {
		if parts := strings.SplitN(line, "\t", 3); len(parts) == 3 {
			list = append(list, other{parts[0], true, parts[1], parts[2]})
		} else if line != "" {
			list = append(list, other{id: line})
		}
	}
	return list
}

func (o other) unseen() bool { return o.connected && o.sync == "" }

// passing reports whether this may be a backup that connects or ends. The name is no
// proof, because a standby can be given any name: it says only how long to look.
func (o other) passing() bool { return o.unseen() && o.name == "pg_basebackup" }

// awaited reports whether every server that may be promoted has each acknowledged commit.
// Where a commit waits for one standby out of two, either may lack the last commits, so the
// standbys must be no more than a commit waits for.
func (l look) awaited() bool {
	if l.names == "" {
		return len(l.others) == 0
	}
	n, names := parseNames(l.names)
	if l.commit != "on" && l.commit != "remote_apply" || len(l.others) > n {
		return false
	}
	for _, o := range l.others {
		switch {
		case !o.connected || o.sync == "sync" || o.sync == "quorum":
		case !o.unseen() || !listed(names, o.name):
			return false
		}
	}
	return true
}

var counted = regexp.MustCompile(`(?is)^\s*(?:(?:first|any)\s+)?([0-9]+)\s*\((.*)\)\s*$`)

// parseNames reads synchronous_standby_names: for how many standbys a commit waits, and
// which names count.
func parseNames(text string) (n int, names []string) {
	n = 1
	if parts := counted.FindStringSubmatch(text); parts != nil {
		if many, err := strconv.Atoi(parts[1]); err == nil {
			n = many
		}
		text = parts[2]
	}
	quoted := false
	for _, name := range strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	}) {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, `"`) && strings.HasSuffix(name, `"`) && len(name) > 1 {
			name = strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
		}
		names = append(names, name)
	}
	return n, names
}

// listed reports whether a standby of that name is one that commits wait for.
func listed(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n == "*" || strings.EqualFold(n, name) })
}

// only is l with those others that are in list as well.
func (l look) only(list []other) look {
	l.others = slices.DeleteFunc(slices.Clone(l.others), func(o other) bool {
		return !slices.ContainsFunc(list, func(in other) bool { return in.id == o.id })
	})
	return l
}

const (
	lookAgain   = 100 * time.Millisecond
	lookFor     = 300 * time.Millisecond // a backup is told from a standby by then, where this role may see the state
	lookForName = 3 * time.Second        // pg_basebackup may wait so long for the end of the log, with nothing else to be seen
)

// lasting looks until a standby that commits do not wait for has been there for a while:
// a pool notes for good that its store is lossy, and a session that begins or ends a backup
// looks like a standby for some milliseconds. A standby that connects anew between two looks
// is found by the next call, like one that was not connected.
func (s *Store) lasting(ctx context.Context) (look, error) {
	l, err := s.look(ctx)
	if err != nil || l.awaited() {
		return l, err
	}
	if known := s.standbys.Load(); known != nil && !l.only(*known).awaited() {
		return l, nil
	}
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return l, s.table.Explain(ctx, s.db, ctx.Err())
		case <-time.After(lookAgain):
		}
		now, err := s.look(ctx)
		if err != nil {
			return l, err
		}
		if l = now.only(l.others); l.awaited() {
			return l, nil
		}
		enough := lookFor
		if l.only(slices.DeleteFunc(slices.Clone(l.others), other.passing)).awaited() {
			enough = lookForName
		}
		if time.Since(begun) >= enough {
			s.standbys.Store(&l.others)
			return l, nil
		}
	}
}

// company says which other servers there are.
func (l look) company() string {
	connected, synchronous, unseen := 0, 0, 0
	for _, o := range l.others {
		switch {
		case o.unseen():
			unseen++
			fallthrough
		case o.connected:
			connected++
		}
		if o.sync == "sync" || o.sync == "quorum" {
			synchronous++
		}
	}
	text := "no standby"
	if connected > 0 {
		text = plural(connected, "connected standby", "connected standbys")
		if unseen == 0 {
			text += fmt.Sprintf(", %d of them synchronous", synchronous)
		} else {
			text += fmt.Sprintf(" (role %s does not see which of them are synchronous, and takes a standby for asynchronous in case of doubt: GRANT pg_monitor TO %s)", l.role, l.role)
		}
	}
	if l.names != "" {
		n, _ := parseNames(l.names)
		text += fmt.Sprintf(", a commit waits for %d", n)
	}
	if away := len(l.others) - connected; away > 0 {
		text += ", " + plural(away, "slot of a standby that is away", "slots of standbys that are away")
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
