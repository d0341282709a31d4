package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// A Level says how bad a finding is.
type Level string

const (
	Bad  Level = "bad"  // ids, rows or service are lost, or will be
	Warn Level = "warn" // something does not work that one may need
	Note Level = "ok"   // nothing is wrong: something is there that a command would remove
)

// A Finding is one thing that is wrong.
type Finding struct {
	Level  Level
	Server string // empty: it is about the cluster
	Text   string
	Do     string // what to do about it; may be empty
}

// Limits above which something is found to be wrong.
const (
	maxOffset = time.Second // between clocks
	maxAhead  = time.Second // of a generator, beyond its server's clock
	soon      = 2 * 365 * 24 * time.Hour
	oldest    = 140000 // of PostgreSQL
)

// Findings returns what is wrong with the servers of a cluster, which were examined at about the moment now.
// It leaves out shards that waits selects: they wait for their move, and that is said elsewhere.
func Findings(servers []*Server, now time.Time, waits func(shard int64) bool) []Finding {
	f := &findings{now: now, waits: waits}
	views := make(map[string]*topology.View)
	for _, s := range servers {
		if s.Err != nil {
			continue
		}
		if s.Standby {
			f.standby(s.Name)
		} else {
			views[s.Name] = s.View
		}
		for _, examine := range []func(*Server){f.server, f.clock, f.settings, f.generators, f.schemas, f.setters} {
			examine(s)
		}
	}
	for _, s := range servers {
		if s.Err != nil {
			f.away(s, views)
			f.refused = f.refused || refuses(s)
		}
	}
	f.cluster(views, len(views) == len(servers))
	slices.SortStableFunc(f.all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Server, b.Server))
	})
	return f.all
}

type findings struct {
	now     time.Time
	waits   func(shard int64) bool // nil: none does
	refused bool                   // one of the servers is there, and does not let itself be looked at
	unasked []string               // servers of the cluster that were not asked, where all that were asked answer
	all     []Finding
}

func (f *findings) say(l Level, server, do, format string, args ...any) {
	f.all = append(f.all, Finding{l, server, fmt.Sprintf(format, args...), do})
}

// AddressDo says what to do where the address of a server leads to another database, to a standby, to a second
// copy of a server, or to a database whose schema firn is lost. For any other error it is empty.
func AddressDo(err error) string {
	var of *topology.ServerError
	var stray *topology.StrayError
	var standby *StandbyError
	var unrecorded *topology.UnrecordedError
	var twin *TwinError
	switch {
	case errors.As(err, &twin):
		return twin.do()
	case errors.As(err, &unrecorded):
		return "change nothing there, and restore the schema firn from a dump or a backup: docs/reference/shards-recovery.md, \"A schema firn that is lost\""
	case errors.As(err, &standby):
		return ToPrimary(standby.Server)
	case !errors.As(err, &stray) || !errors.As(err, &of):
		return ""
	}
	database := "DATABASE"
	if stray.Original != "" {
		database = url.PathEscape(stray.Original)
	}
	return fmt.Sprintf("give the address of the database that is server %s: --server %[1]s=postgres://USER@HOST/%s, or in firn.yaml", of.Server, database)
}

// stranger is about a server whose database knows of no cluster, and that the others do not know.
func (f *findings) stranger(name string, views map[string]*topology.View) {
	do := "to take it into the cluster: firn shard add-server " + name
	if len(views) == 0 {
		do = "to make a cluster: firn shard init --count N"
	}
	f.say(Bad, name, do, "it is in no cluster")
}

func (f *findings) away(s *Server, views map[string]*topology.View) {
	var unrecorded *topology.UnrecordedError
	if errors.As(s.Err, &unrecorded) {
		f.say(Bad, s.Name, AddressDo(unrecorded), "%v", unrecorded)
		return
	}
	if errors.Is(s.Err, topology.ErrNoCluster) {
		f.stranger(s.Name, views)
		return
	}
	err := s.Err
	var named *topology.ServerError
	if errors.As(err, &named) {
		err = named.Err
	}
	var stray *topology.StrayError
	if errors.As(err, &stray) {
		of := &topology.ServerError{Server: s.Name, Err: stray}
		f.say(Bad, s.Name, AddressDo(of)+LostDo(of), "%v", stray)
		return
	}
	f.say(Bad, s.Name, awayDo(s, err), "it cannot be examined: %v", err)
}

// awayDo says what to do about a server that cannot be examined. It may answer, and refuse, or
// have not what this version of firn asks for.
func awayDo(s *Server, err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "42883":
			return "its functions are of another version of firn. To bring them up to date: firn shard init"
		case "42703", "42P01":
			return "its tables are of another version of firn, and no command changes them: use the version that made them"
		}
	}
	if s.Owner != "" && denied(err) {
		return fmt.Sprintf("it runs, and refuses: this takes the role %s, which owns the schema firn: --server %s=postgres://%s@HOST/DATABASE, or in firn.yaml", s.Owner, s.Name, url.PathEscape(s.Owner))
	}
	if refuses(s) {
		return "it runs, and refuses: correct its address, the password, or the rights of the role"
	}
	return `start it, or check its address; if it is permanently lost: docs/guides/shards-operating.md, "A server that is lost"`
}

// refuses says that a server is there, and does not let itself be looked at.
func refuses(s *Server) bool {
	unrecorded := errors.As(s.Err, new(*topology.UnrecordedError))
	return s.Err != nil && (unrecorded || !errors.Is(s.Err, topology.ErrNoCluster)) && !(&topology.ServerError{Server: s.Name, Err: s.Err}).Away()
}

// standby is about an address that leads to a standby. It is about the cluster, so that it comes
// first: what else is found follows from it.
func (f *findings) standby(name string) {
	f.say(Bad, "", ToPrimary(name), "%s", strings.TrimPrefix((&StandbyError{Server: name}).Error(), "shard: "))
}

// twin is about an address that leads to a second copy of a server, while another copy was reopened.
func (f *findings) twin(e *TwinError, views map[string]*topology.View) {
	text := strings.TrimPrefix(e.Error(), "shard: ")
	if n := serves(views[e.Server]); n > 0 {
		text += fmt.Sprintf(". It serves %s: keep programs away from it, which may give the same ids", phrase.Plural(n, "shard"))
	}
	f.say(Bad, "", e.do(), "%s", text)
}

// ToPrimary says what to do where the address of a server leads to a standby.
func ToPrimary(server string) string {
	return fmt.Sprintf("give the address of its primary: --server %s=postgres://USER@HOST/DATABASE, or in firn.yaml. If the primary is permanently gone: docs/guides/shards-operating.md, \"Promotion\"", server)
}

func (f *findings) server(s *Server) {
	if s.Version < oldest {
		f.say(Bad, s.Name, "PostgreSQL 14 or newer", "its version is %d.%d", s.Version/10000, s.Version%10000)
	}
	if left := s.Layout.End().Sub(f.now); left < 0 {
		f.say(Bad, s.Name, "a cluster with another layout", "its layout ended on %s", s.Layout.End().Format(time.DateOnly))
	} else if left < soon {
		f.say(Warn, s.Name, "plan a cluster with another layout", "its layout ends on %s", s.Layout.End().Format(time.DateOnly))
	}
}

func (f *findings) clock(s *Server) {
	if off := s.Offset.Abs() - s.Error; off > maxOffset {
		f.say(Warn, s.Name, "synchronize the clocks; ids stay unique, and their times are wrong",
			"its clock is %s off from here", s.Offset.Round(time.Millisecond))
	}
}

// settings looks at what is needed to keep what was acknowledged, and to move shards.
func (f *findings) settings(s *Server) {
	for _, name := range []string{"fsync", "full_page_writes"} {
		if s.Details.Settings[name] == "off" {
			f.say(Bad, s.Name, "set "+name+" = on", "%s is off: a crash can take back what it acknowledged", name)
		}
	}
	if level := s.Details.Settings["wal_level"]; level != "logical" {
		f.say(Warn, s.Name, "ALTER SYSTEM SET wal_level = 'logical', then restart it; on RDS: rds.logical_replication = 1 in the parameter group, then reboot", "shards cannot move from or to it: wal_level is %s", level)
	}
	for _, name := range []string{"max_replication_slots", "max_wal_senders", "max_logical_replication_workers"} {
		if n, err := strconv.Atoi(s.Details.Settings[name]); err == nil && n == 0 {
			f.say(Warn, s.Name, "set "+name+" = 10, and restart it", "shards cannot move from or to it: %s is 0", name)
		}
	}
}

func (f *findings) generators(s *Server) {
	open, away := make(map[int64]bool), make(map[int64]bool)
	there := s.Details.there()
	for _, row := range s.Shards {
		open[row.Shard] = row.Serves()
		away[row.Shard] = row.State == topology.StateMoved || !there[row.Schema]
	}
	var ahead, altered []string
	wrong := make(groups)
	reopen := fmt.Sprintf("firn shard reopen %s --shards LIST", s.Name)
	for _, g := range s.Details.Generators {
		if !away[g.Shard] {
			altered = append(altered, g.Altered...)
		}
		const rerun = "to make what is missing, and start it a second above the clock: firn shard init"
		switch {
		case away[g.Shard]: // what is left of it is of no use
		case !g.Sequences:
			wrong.add(g.Shard, "the sequences of "+g.Name+" are gone", rerun)
		case !g.Function:
			wrong.add(g.Shard, "the function "+g.Name+" is gone", rerun)
		case open[g.Shard] && !g.Same:
			wrong.add(g.Shard, "the sequences of "+g.Name+" are a copy's", reopen)
		case open[g.Shard] && !g.Running:
			wrong.add(g.Shard, g.Name+" is closed although the shard is open: closing or opening it was broken off", reopen)
		case open[g.Shard] && g.Ahead > maxAhead:
			ahead = append(ahead, fmt.Sprintf("%d (%s)", g.Shard, g.Ahead.Round(time.Millisecond)))
		}
	}
	f.all = append(f.all, wrong.of(s.Name)...)
	if len(ahead) > 0 {
		f.say(Warn, s.Name, "ids stay unique and ordered, and their times are ahead until the clock has caught up",
			"the generators of %s are ahead of its clock: %s", shards(ahead), phrase.Few(ahead))
	}
	if len(altered) > 0 {
		name, _, _ := strings.Cut(altered[0], " INCREMENT ")
		f.say(Bad, s.Name, "on each of them: ALTER SEQUENCE "+name+" INCREMENT 1 CACHE 1 NO CYCLE; then have all programs connect anew, because a session keeps the numbers that it has cached",
			"ids may repeat or go back, because sequences that they come from do not count one by one: %s", phrase.Few(altered))
	}
}

// there are the schemas of the database.
func (d *Details) there() map[string]bool {
	there := make(map[string]bool, len(d.Schemas))
	for _, name := range d.Schemas {
		there[name] = true
	}
	return there
}

// schemas compares the schemas that are there with those of the rows.
func (f *findings) schemas(s *Server) {
	there := s.Details.there()
	known := make(map[string]bool)
	var missing []string
	for _, row := range s.Shards {
		known[row.Schema] = true
		if row.State != topology.StateMoved && !there[row.Schema] {
			missing = append(missing, row.Schema)
		}
	}
	var foreign []string
	before, after, _ := strings.Cut(s.Schemas, "%d")
	for _, name := range s.Details.Schemas {
		number, ok := strings.CutPrefix(name, before)
		number, ok2 := strings.CutSuffix(number, after)
		if _, err := strconv.ParseUint(number, 10, 31); ok && ok2 && err == nil && !known[name] {
			foreign = append(foreign, name)
		}
	}
	if len(missing) > 0 {
		f.say(Bad, s.Name, "restore them from a backup, then: firn shard init", "the schemas of %s are gone: %s", shards(missing), phrase.Few(missing))
	}
	if len(foreign) > 0 {
		f.say(Warn, s.Name, "to see what it takes to make shards of them: firn shard adopt --dry-run; if they are to stay as they are: ALTER SCHEMA ... RENAME TO another name", "%s: %s", lookLike(foreign), phrase.Few(foreign))
	}
}

func (f *findings) setters(s *Server) {
	if len(s.Details.Setters) > 0 {
		f.say(Bad, s.Name, "REVOKE UPDATE on the sequences of the shards", "roles besides the owner may set generators back: %s", phrase.Few(s.Details.Setters))
	}
}

// Together returns what is wrong with the servers as a whole. All says that no server is missing in views.
func Together(views map[string]*topology.View, all bool) []Finding {
	var f findings
	primaries := make(map[string]*topology.View)
	for _, name := range slices.Sorted(maps.Keys(views)) {
		if views[name].Standby {
			f.standby(name)
		} else {
			primaries[name] = views[name]
		}
	}
	f.cluster(primaries, all && len(primaries) == len(views))
	return f.all
}

func (f *findings) cluster(views map[string]*topology.View, all bool) {
	if len(views) == 0 {
		return
	}
	m, err := topology.NewMap(views)
	if err != nil {
		f.say(Bad, "", cmp.Or(AddressDo(err), "correct the address that leads to the wrong one"), "%s", strings.TrimPrefix(err.Error(), "shard: "))
		return
	}
	var twin *TwinError
	if errors.As(RefuseTwins(views), &twin) {
		f.twin(twin, views)
		return // what else is found follows from it
	}
	f.unasked = nil
	if all {
		f.unasked = m.Missing
	}
	all = all && len(m.Missing) == 0
	why, reopens := make(map[string][]string), make(map[string]string)
	nowhere := withoutRoute(m)
	for _, r := range m.Routes {
		if r.State == topology.StateOpen || twice(claimsOf(views, r.Shard)) || f.waits != nil && f.waits(r.Shard) {
			continue
		}
		if _, ok := OpeningOf(views, r.Shard); ok && all {
			continue // it is said below
		}
		if !all && r.Server != "" && views[r.Server] == nil {
			nowhere = append(nowhere, strconv.FormatInt(r.Shard, 10))
			continue
		}
		why[r.Why] = append(why[r.Why], strconv.FormatInt(r.Shard, 10))
		reopens[r.Why] = opens(r, views[r.Server])
	}
	f.nowhere(byNumber(nowhere), m, all)
	for _, text := range slices.Sorted(maps.Keys(why)) {
		do := reopens[text]
		if !all {
			do = f.reachAll()
		}
		f.say(Bad, "", do, "%s not served, %s: %s", are(why[text]), text, phrase.Few(why[text]))
	}
	every := func(int64) bool { return true }
	f.older(views)
	if all {
		f.all = append(f.all, Nowhere(views, every)...)
	}
	f.all = append(f.all, Twice(views, every)...)
}

// older finds servers that were put back, copied or promoted, and do not know that another server serves a shard of
// theirs. No shard can move there until firn shard reopen has told them.
func (f *findings) older(views map[string]*topology.View) {
	for _, name := range slices.Sorted(maps.Keys(views)) {
		var old []string
		for _, row := range views[name].Shards {
			if !row.Here && row.State != topology.StateMoved && len(serving(saying(views, row.Shard))) > 0 {
				old = append(old, strconv.FormatInt(row.Shard, 10))
			}
		}
		if len(old) > 0 {
			f.say(Warn, name, "to tell it so: firn shard reopen "+name, "it was put back, copied or promoted, and does not know that another server serves %s: %s", shards(old), phrase.Few(old))
		}
	}
}

// withoutRoute are the shards that no server knows, of those that keys lead to.
func withoutRoute(m *topology.Map) (all []string) {
	for n := range m.Keys.Shards() {
		if _, ok := m.Route(n); !ok && m.Keys.Scheme() != topology.None {
			all = append(all, strconv.FormatInt(n, 10))
		}
	}
	return all
}

// nowhere is about shards that no server knows, or that are on a server which has not said what it has.
func (f *findings) nowhere(shardsNowhere []string, m *topology.Map, all bool) {
	switch {
	case len(f.unasked) > 0:
		text := UnaskedText(f.unasked)
		if len(shardsNowhere) > 0 {
			text += fmt.Sprintf("; the servers that were asked do not serve %s: %s", shards(shardsNowhere), phrase.Few(shardsNowhere))
		}
		f.say(Bad, "", UnaskedDo(f.unasked), "%s", text)
	case len(shardsNowhere) == 0:
	case all:
		do := fmt.Sprintf("if they were never made: firn shard init --count %d. If a server was put back to before that, its newer rows are lost: docs/guides/shards-operating.md, \"A server that is lost\"", m.Keys.Shards())
		f.say(Bad, "", do, "no server knows %s: %s", shards(shardsNowhere), phrase.Few(shardsNowhere))
	default:
		f.say(Bad, "", f.reachAll(), "no server that answers serves %s: %s", shards(shardsNowhere), phrase.Few(shardsNowhere))
	}
}

// opens says what opens a shard that no server serves, by what the server says that it is on.
func opens(r topology.Route, v *topology.View) string {
	closed := v != nil && slices.ContainsFunc(v.Shards, func(row topology.Row) bool { return row.Shard == r.Shard && row.State != topology.StateMoved })
	if closed {
		return "to open what no other server serves: firn shard reopen " + r.Server
	}
	return "to see whether a move of it is under way: firn shard status; if none is: firn shard reopen " + r.Server
}

// reachAll is what to do first where not all servers have said what they have.
func (f *findings) reachAll() string {
	switch {
	case f.refused:
		return "first do what is said of the servers that could not be examined"
	case len(f.unasked) > 0:
		return "first name the servers that were not asked"
	}
	return "start the servers that do not answer, or check their addresses"
}

// shards is how many there are.
func shards(list []string) string {
	if len(list) == 1 {
		return "1 shard"
	}
	return fmt.Sprintf("%d shards", len(list))
}

func lookLike(list []string) string {
	if len(list) == 1 {
		return "1 schema has the name of a shard, and is none"
	}
	return fmt.Sprintf("%d schemas have names of shards, and are none", len(list))
}

func are(list []string) string {
	if len(list) == 1 {
		return "1 shard is"
	}
	return shards(list) + " are"
}

// byNumber sorts numbers that are texts.
func byNumber(list []string) []string {
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return list
}
