package mutants

import "slices"

// All are the mutants: of the lease, of what operators do to pools, of counters and of those who hand
// out their numbers, of documents, of the generator, of shards, of stores.
var All = slices.Concat(lease, proof, pools, counters, supply, documents, generator, pages, shards(), adapters)

const (
	seek    = "internal/term/seek.go"
	read    = "internal/term/read.go"
	write   = "internal/term/write.go"
	hold    = "internal/term/hold.go"
	rules   = "internal/term/rules.go"
	look    = "internal/term/look.go"
	resume  = "internal/term/resume.go"
	operate = "internal/term/operate.go"
	clock   = "internal/term/clock.go"
	file    = "internal/grantfile/grantfile.go"
	machine = "internal/term/term.go"
	loop    = "internal/holder/holder.go"
	adopt   = "internal/holder/handover.go"
)

var lease = []Mutant{
	{Name: "a term's base ignores the record's horizon", File: seek, Old: "base: max(cur.Horizon, s.Pool.Floor)}", New: "base: s.Pool.Floor}"},
	{Name: "the pool's floor is not read again after the acknowledgement", File: read, Old: "	s.Base = max(s.Base, s.Pool.Floor)\n", New: "	s.Base = max(s.Base, 0)\n", With: "the store's floor is not read after the acknowledgement", Like: "the store is restored while a worker is taken"},
	{Name: "the store's floor is not read after the acknowledgement", File: read, Old: "		s.Base = max(s.Base, r.tick(all.Floor))", New: "		_ = all", With: "who creates a pool does not read the store's floor", Like: "a SQLite file is restored"},
	{Name: "who creates a pool does not read the store's floor", File: "pool/create.go", Old: "		floor = clamp(p.layout, all.Floor)\n", New: "		_ = all\n", With: "the store's floor is not read after the acknowledgement", Like: "a SQLite file is restored"},
	{Name: "the quarantine is one skew short", File: rules, Old: "return p.LongestOutage() + 2*r.Skew }", New: "return p.LongestOutage() + r.Skew }", Like: "a store that forgets a grant, and clocks that are as wrong as they may be"},
	{Name: "the quarantine is 100 ms short", File: rules, Old: "return p.LongestOutage() + 2*r.Skew }", New: "return p.LongestOutage() + 2*r.Skew - 100*time.Millisecond }", Like: "a store that forgets a grant, and clocks that are as wrong as they may be"},
	{Name: "a late extension is not late", File: write, Old: "s.write.purpose == ExtendWorker && now.Boot > late {", New: "s.write.purpose == ExtendWorker && now.Boot < 0*late {", Like: "a store that can forget by turns, and a holder that comes back"},
	{Name: "a late extension counts without the pool's record", File: write, Old: "	return s.hold(r, now)\n}\n\n// granted:", New: "	return s.granted(r, now, *s.write.late)\n}\n\n// granted:", Like: "a store that can forget by turns, and a holder that comes back"},
	{Name: "a record is its own by the owner alone", File: write, Old: "case err == nil && cur == s.write.want && !untouched && !clones:", New: "case err == nil && cur.Owner == s.write.want.Owner && !untouched && !clones:"},
	{Name: "a release goes below the base", File: write, Old: "want.Horizon = max(s.Base, min(s.last, s.Have.Horizon))", New: "want.Horizon = min(s.last, s.Have.Horizon)"},
	{Name: "a release is one tick too low", File: write, Old: "want.Horizon = max(s.Base, min(s.last, s.Have.Horizon))", New: "want.Horizon = max(s.Base, min(s.last-1, s.Have.Horizon))"},
	{Name: "a worker is taken at the same term", File: write, Old: "Term: c.rec.Term + 1, Owner:", New: "Term: c.rec.Term, Owner:"},
	{Name: "a process has one owner token for ever", File: write, Old: "Owner: s.token(), Name: s.name,", New: "Owner: \"t\" + s.name, Name: s.name,"},
	{Name: "a lossy store extends a record however old", File: write, Old: "if s.Lossy && s.write.purpose == ExtendWorker {", New: "if false && s.Lossy && s.write.purpose == ExtendWorker {", With: "a late extension is not late", Like: "a store that forgets, and a holder that comes back"},
	{Name: "a record like the own counts on a store that can forget", File: write, Old: "case err == nil && !s.Lossy && (cur == s.Have", New: "case err == nil && (cur == s.Have", Package: "./internal/term", Tests: "^TestLikeOwnRecordOfLossy$"},
	{Name: "a grant that reaches beyond the pool's outage is kept on a lossy store", File: read, Old: "case s.Lossy && s.Reach > s.Pool.LongestOutage():", New: "case false && s.Lossy && s.Reach > s.Pool.LongestOutage():", Like: "a store that forgets is recovered while a worker is taken"},
	{Name: "a worker chosen before the pool was marked lossy is kept", File: read, Old: "case s.Lossy && !judged:", New: "case false && !judged:", Like: "a store that can forget by turns, while a worker is taken"},
	{Name: "a grant reaches by the own clock alone", File: hold, Old: "if r.LocalClock || s.read.IsZero() || now.Wall.Before(most) {", New: "if true || r.LocalClock || s.read.IsZero() || now.Wall.Before(most) {"},
	{Name: "the drift of boot clocks is ignored", File: hold, Old: "return (now.Boot - s.heard) / 2000 }", New: "return 0 }", Like: "a process is paused for hours, and its boot clock is fast"},
	{Name: "two readings are taken for those of one clock", File: seek, Old: "		unwritten -= 2 * r.Skew\n", New: "		unwritten -= 0\n", Like: "a store that forgets, and continues on another clock"},
	{Name: "a record counts as unwritten a nanosecond too early", File: seek, Old: "- unwritten + 1", New: "- unwritten", Package: "./internal/term", Tests: "^TestLossyTakeoverToTheNanosecond$"},
	{Name: "a resumed grant begins one tick below the mark", File: resume, Old: "Base: mark, Since", New: "Base: mark - 1, Since"},
	{Name: "an extension lowers the horizon", File: write, Old: "want.Horizon = max(want.Horizon, r.tick(", New: "want.Horizon = max(0, r.tick("},
	{Name: "the outage is not raised in the pool's record", File: look, Old: "p.Outage = int64((b + ms - 1) / ms)", New: "p.Outage = min(p.Outage+1, int64((b+ms-1)/ms))"},
	{Name: "a pool is not marked lossy", File: look, Old: "if s.Lossy && p.Lossy == \"\" {", New: "if false && p.Lossy == \"\" {", Like: "a store that can forget by turns"},
	{Name: "a pool counts as repaired at once", File: write, Old: "return s.Pool.Floor >= s.Have.Horizon }", New: "return true }", Like: "a pool's record is deleted"},
	{Name: "an operator's release keeps the term", File: operate, Old: "Term: r.Term + 1, Name: r.Name", New: "Term: r.Term, Name: r.Name"},
	{Name: "an operator's release forgets the time to live", File: operate, Old: "max(r.Horizon, floor), TTL: r.TTL}", New: "max(r.Horizon, floor)}", Like: "a store that forgets, and an operator who releases workers"},
	{Name: "an operator's release ignores the floor", File: operate, Old: "Horizon: max(r.Horizon, floor), TTL", New: "Horizon: r.Horizon, TTL"},
	{Name: "a refused extension is a loss at once", File: write, Old: "	s.write.doubt, s.write.refused = true, true\n	return s.next(r, now)", New: "	return s.end(Lost, &LostError{Worker: s.Worker})", Package: "./internal/term", Tests: "^TestCloseInAnyPhase$"},
	{Name: "the clock does not ask the store's", File: clock, Old: "if !known.IsZero() {", New: "if false {", Like: "a clock is wrong for long"},
	{Name: "the clock follows by a half", File: clock, Old: "const slew = 20", New: "const slew = 2"},
	{Name: "the layout of the pool is not compared", File: read, Old: "case p.Layout != r.Layout.String():", New: "case false:", Like: "a pool is created anew with another layout"},
	{Name: "another pool of that name is accepted", File: read, Old: "case s.poolID != \"\" && p.ID != s.poolID:", New: "case false && p.ID != s.poolID:", Like: "all records are deleted"},
	{Name: "a pool in another store is accepted", File: read, Old: "	case p.Elsewhere(here):\n", New: "	case p.Elsewhere(here) && false:\n", With: "a store that is another one than the pool's is accepted", Like: "the store is copied"},
	{Name: "a store that is another one than the pool's is accepted", File: read, Old: "	case s.Pool.Elsewhere(d.Identity):\n", New: "	case s.Pool.Elsewhere(d.Identity) && false:\n", With: "a pool in another store is accepted", Like: "the store is copied"},
	{Name: "which store it is is not asked after a worker was taken", File: "internal/term/term.go", Old: "if s.View.Asked < s.Since { //", New: "if false { //", Package: "./internal/term", Tests: "WhileTaking"},
	{Name: "a worker is kept though the store was found to forget meanwhile", File: read, Old: "	case s.doing == ConfirmDurability && s.Lossy && !judged:", New: "	case false && judged:", Package: "./internal/term", Tests: "TestForgetfulWhileTaking"},
	{Name: "a worker outside of the pool's range is kept", File: read, Old: "case !workers.Has(s.Worker): // another", New: "case false: // another", Like: "pools hand workers to each other, and writes are late"},
	{Name: "what another program has issued is not counted when its worker is given back", File: loop, Old: "	if d.Foreign { //", New: "	if false { //"},
	{Name: "a recovery's floor is below the pool's own", File: operate, Old: "if t > p.Floor {", New: "if t != p.Floor {", Package: "./internal/term", Tests: "^TestRaised$"},
	{Name: "a grant file of before a start of the system is continued", File: file, Old: "	case b.Boot != at.Boot:", New: "	case false:", With: "a grant of later than now is continued", Like: "grant files, and reboots"},
	{Name: "a copy of a grant file is continued", File: file, Old: "	case b.Device != at.Device || b.Inode != at.Inode:", New: "	case false:", Like: "grant files that are copied"},
	{Name: "a grant file whose worker was given back is continued", File: file, Old: "	case b.Void:", New: "	case false:", Like: "grant files"},
	{Name: "a grant of later than now is continued", File: adopt, Old: "case left.Grant.Since > boot:", New: "case false:", Package: "./internal/holder", Tests: "TestAdopt"},
	{Name: "a grant file's worker is kept by who insists on another one", File: adopt, Old: "case p.Rules.Choice == term.Insist && left.Grant.Worker != p.Rules.Worker:", New: "case false:", Package: "./internal/holder", Tests: "TestAdopt"},
	{Name: "a damaged grant file is continued", File: file, Old: "string(sum) != checksum(text)", New: "sum == nil", Like: "grant files on a disk that fails"},
}

// More of the lease, by what guarantees.md and the proof in internal/term say.
var proof = []Mutant{
	// The record's horizon is written before ids, and only what was acknowledged counts.
	{Name: "a horizon counts before it is acknowledged", File: machine, Old: "Base: s.Base, Horizon: s.Have.Horizon}", New: "Base: s.Base, Horizon: max(s.Have.Horizon, s.write.want.Horizon)}"},
	{Name: "a horizon of unknown outcome counts", File: machine, Old: "ReleaseWorker:\n		s.write.doubt = true\n", New: "ReleaseWorker:\n		s.write.doubt, s.Have.Horizon = true, max(s.Have.Horizon, s.write.want.Horizon)\n"},
	{Name: "whatever is found is taken for the own write", File: write, Old: "case err == nil && cur == s.write.want && !untouched && !clones:", New: "case err == nil && !untouched && !clones:"},
	{Name: "a refused write counts as done", File: write, Old: "	s.write.doubt, s.write.refused = true, true\n	return s.next(r, now)", New: "	return s.acknowledged(r, now, store.Record{Version: s.write.version}, s.write.since)"},
	{Name: "an extension of a clone counts", File: write, Old: "|| s.heir && cur.Owner", New: "|| cur.Owner", Like: "a virtual machine is cloned"},
	{Name: "an extension of a clone counts that is the same", File: write, Old: "clones := s.write.refused && s.write.copies == 1", New: "clones := false", Like: "a virtual machine is cloned"},
	{Name: "a write replaces whatever is found", File: write, Old: "	lost := &LostError{Worker: s.Worker, Err: err}\n", New: "	if s.write.version = rec.Version; err == nil {\n		return s.again(r)\n	}\n	lost := &LostError{Worker: s.Worker, Err: err}\n"},
	{Name: "a release is sent while ids are made", File: loop, Old: "		last = d.gen.Close()\n", New: "		last = d.Rules.Layout.Tick(d.Now(d.Clocks().Boot).Wall)\n"},

	// A lossy store.
	{Name: "a store that forgets is taken for one that does not", File: look, Old: "	if !v.Durability.Durable {", New: "	if false {", Like: "a store that forgets"},
	{Name: "what one member has seen of the store does not hold for others", File: read, Old: "s.Lossy = s.Lossy || p.Lossy != \"\"", New: "s.Lossy = s.Lossy || p.Lossy == \"never\"", Like: "a store that can forget by turns"},
	{Name: "the store is never asked again what it promises", File: look, Old: "look{at: v.Asked + r.Look,", New: "look{at: v.Asked + never/2 + 0*r.Look,", Package: "./internal/term", Tests: "^TestMarkWhileHolding$"},
	{Name: "the quarantine begins before the acknowledgement", File: read, Old: "r.tick(now.Wall.Add(r.Quarantine(s.Pool))))", New: "r.tick(now.Wall.Add(s.Since-now.Boot).Add(r.Quarantine(s.Pool))))", Like: "a store that forgets, and writes that are late"},
	{Name: "the quarantine goes by the own outage budget", File: rules, Old: "return p.LongestOutage() + 2*r.Skew }", New: "return min(r.Outage, p.LongestOutage()) + 2*r.Skew }", Like: "a store that forgets, and several outage budgets"},
	{Name: "a grant of a store that forgets reaches as far as the pool allows", File: rules, Old: "		most = p.LongestOutage()\n", New: "		_ = lossy\n", With: "a grant that reaches beyond the pool's outage is kept on a lossy store", Like: "a store that forgets, and several outage budgets"},
	{Name: "what this member has to say is not in the pool's record first", File: read, Old: "	if p := s.amended(r, now, s.Pool); p != s.Pool {\n		s.Phase = Amending", New: "	if p := s.Pool; p.ID == \"\" {\n		s.Phase = Amending", Like: "a store that can forget by turns, and several outage budgets"},
	{Name: "a holder whose time to live is not over counts as dead", File: seek, Old: "- unwritten + 1", New: "- unwritten - time.Hour", Like: "a store that forgets, and holders that are late"},
	{Name: "a worker that an operator released is taken at once from a store that forgets", File: seek, Old: "if cur.Owner != \"\" || s.Lossy && cur.TTL > 0 {", New: "if cur.Owner != \"\" {", Like: "a store that forgets, and an operator who releases workers"},

	// What a process knows of its pool and its store.
	{Name: "a pool that is missing is joined again by a process that knew it", File: read, Old: "		if s.poolID != \"\" {\n			return s.end(Forgotten, &store.ForgotError{Store: \"pool \" + r.Pool, What: \"its record is missing\"})\n		}\n", New: "", With: "another pool of that name is accepted", Like: "all records are deleted"},
	{Name: "a grant is extended before the store has said which one it is", File: hold, Old: "	case !s.View.Known && now.Boot >= s.look.at: // this may be a copy of the store that the grant is of\n		return s, ask(WatchDurability)\n	case !s.View.Known:\n		return s, sleep(s.look.at)\n", New: "", Package: "./internal/term", Tests: "^TestResumeAsksWhichStore$"},
	{Name: "a resumed grant is extended before the pool is read", File: hold, Old: "s.write.late != nil || s.Pool.ID == \"\" || ", New: "s.write.late != nil || s.Pool.ID != \"\" && ", Like: "grant files"},

	// Clocks.
	{Name: "a step of the system's clock is followed at once", File: clock, Old: "	return Clock{own.Add(min(max(off, -most), most)), boot}", New: "	return Clock{own.Add(off + 0*most), boot}", Like: "clocks step, and the store has none"},
	{Name: "what another program may have issued is reckoned without the error of clocks", File: loop, Old: "Tick(d.latest(d.Clocks()).Add(d.Rules.Skew))", New: "Tick(d.latest(d.Clocks()))", Like: "workers are held for other programs"},
	{Name: "a clock that is ahead of the store's is not refused", File: read, Old: "host.Sub(rec.Read) > r.Skew {", New: "false && host.Sub(rec.Read) > r.Skew {", Package: "./internal/term", Tests: "."},

	// Availability.
	{Name: "the first grant is as long as any", File: write, Old: "	reach := min(r.Reach, s.budget(r))\n", New: "	reach := s.budget(r)\n", Like: "processes crash again and again"},
	{Name: "the dead hold their workers for ever", File: seek, Old: "	return time.Duration(cur.TTL)*time.Millisecond - unwritten + 1", New: "	return never + 0*unwritten", Like: "holders die"},
	{Name: "a store that was away is not asked again", File: machine, Old: "	until := now.Boot + s.jitter(pause)\n	return s, sleep(until)\n}\n\n// jitter", New: "	return s, sleep(now.Boot + s.jitter(pause) + never/2)\n}\n\n// jitter", Like: "the store is away and back"},

	// Grant files.
	{Name: "ids are made above the mark of a grant file", File: loop, Old: "		grant.Horizon = d.mark\n", New: "", Like: "grant files"},
	{Name: "a grant file is not void when its worker is given back", File: loop, Old: "		err = d.Mark(void)\n", New: "", Like: "grant files"},
	{Name: "a grant of a store that can forget is continued", File: adopt, Old: "	case left.Grant.Lossy, !p.View.Durability.Durable:\n		return errors.New(\"the store is lossy\")\n", New: "	case errors.ErrUnsupported == nil:\n", Package: "./internal/holder", Tests: "TestAdopt"},
}
