package mutants

const (
	own        = "internal/block/own.go"
	readBlock  = "internal/block/read.go"
	writeBlock = "internal/block/write.go"
	runs       = "internal/supply/run.go"
	lanes      = "internal/supply/lane.go"
	calls      = "internal/supply/supply.go"
)

// That a hand-back is not tried again is not among them: a second one is refused by the version of the
// record that it names.
var counters = []Mutant{
	{Name: "a span in doubt is settled without its version", File: own, Old: "o.tried != \"\" && o.doubt.Key == key && o.tried == v\n", New: "o.tried != \"\" && o.doubt.Key == key\n", Like: "numbers"},
	{Name: "numbers are handed back though somebody has written since", File: own, Old: "o.mine != \"\" && v == o.mine && to < o.run.To", New: "o.mine != \"\" && to < o.run.To", Package: "./internal/block", Tests: "^TestOwnHandBack$"},
	{Name: "one number too many is handed back", File: own, Old: "to = max(o.run.Above, used)", New: "to = max(o.run.Above, used-1)", Like: "numbers"},
	{Name: "a run of own spans goes across those of others", File: own, Old: "o.mine != \"\" && o.run.Key == s.Key && o.run.To == s.Above", New: "o.mine != \"\" && o.run.Key == s.Key", Like: "numbers"},
	{Name: "how far numbers were granted is not kept when they are handed back", File: writeBlock, Old: "s.want.Granted, s.want.Reached = to, max(s.Have.Reached, top)", New: "s.want.Granted, s.want.Reached = to, s.Have.Reached\n\t_ = top", Like: "numbers"},
	{Name: "fewer writes than known pass", File: readBlock, Old: "case rec.Writes < was.Writes, rec.Writes == was.Writes && v != s.version:", New: "case false:", With: "a record with less than was granted passes", Like: "numbers of a store that forgets"},
	{Name: "a record with less than was granted passes", File: readBlock, Old: "case granted && rec.Granted < top:", New: "case granted && rec.Granted < top-1<<40:", Like: "numbers of a store that forgets"},
	{Name: "another series' record passes", File: readBlock, Old: "	case rec.ID != was.ID:\n		return \"its record is another series'\"\n", New: "", Like: "numbers, and a counter's record that is removed"},
	{Name: "the store's instance is not asked after the acknowledgement", File: writeBlock, Old: "case s.Have.Instance != \"\", !s.Durability.Durable, now.Boot-s.promised >= again:", New: "case now.Boot-s.promised >= again:", Like: "numbers of a store that forgets"},
	{Name: "numbers are granted by another instance of the store", File: readBlock, Old: "case r.ID == \"\" || was == p.Instance:", New: "case r.ID == \"\" || was != \"\":", Like: "numbers of a store that forgets"},
	{Name: "a grant begins one stride low", File: writeBlock, Old: "Grant{First: s.span.Above + stride,", New: "Grant{First: s.span.Above,", Like: "numbers"},
	{Name: "a write of unknown outcome grants", File: writeBlock, Old: "		s.unwritten = true\n		s.own = s.own.Unknown(s.span, a.Record.Version)\n", New: "		return s.grant()\n", Like: "numbers"},
	{Name: "a refused write grants", File: writeBlock, Old: "	s.goal, s.alone = ToRead, false\n	s.tries++\n", New: "	if s.tries++; s.under.For == ToGrant {\n		return s.grant()\n	}\n	s.goal, s.alone = ToRead, false\n", Like: "numbers"},
	{Name: "a counter of another store passes", File: readBlock, Old: "	return record.CheckOther(fmt.Sprintf(\"series %q\", r.Name), s.Durability.Identity, rec.Store)", New: "	_, _ = r.Name, record.CheckOther(\"\", \"\", rec.Store)\n	return nil", Like: "numbers of a store that is copied"},
	{Name: "a counter whose record is gone is begun anew", File: readBlock, Old: "	case rec.ID == \"\":\n		return \"its record is gone\"\n", New: "	case rec.ID == \"\":\n		return \"\"\n", Like: "numbers, and a counter's record that is removed"},
	{Name: "a write in doubt is forgotten", File: own, Old: "	if tried != \"\" {\n		o.doubt", New: "	if false {\n		o.doubt", Package: "./sequence", Tests: "TestUnknownOutcome"},
}

var supply = []Mutant{
	{Name: "a number is used though it was taken after the close", File: runs, Old: "return t.end <= t.run.limit.Load()", New: "return t.end <= t.run.count", Like: "numbers"},
	{Name: "a number beyond the limit is used after the close", File: runs, Old: "if s.closed || t.end > t.run.count ||", New: "if t.end > t.run.count ||", Like: "numbers"},
	{Name: "a number beyond the limit is used after the lane has failed", File: runs, Old: " || t.run.lane.failed != nil {", New: " {", Package: "./sequence", Tests: "^TestCopyAnswers$"},
	{Name: "what is in hand outlives a failure", File: lanes, Old: "		r.limit.Store(0)\n", New: "		_ = r\n", Like: "numbers"},
	{Name: "a lane that has failed serves calls", File: calls, Old: "(s.turn+i)%len(s.lanes)]; l.failed == nil {", New: "(s.turn+i)%len(s.lanes)]; true {", Like: "numbers of several stores that forget"},
	{Name: "a series that is closed serves calls", File: calls, Old: "	if s.closed {\n		return firn.ErrClosed", New: "	if false {\n		return firn.ErrClosed", Like: "numbers"},
	{Name: "the last number that was taken is handed back", File: lanes, Old: "			used = max(used, r.id(taken))", New: "			used = max(used, r.id(taken-1))", Like: "numbers"},
	{Name: "a block that was used up is handed back with the next", File: lanes, Old: "			l.used = max(l.used, l.now.id(l.now.count))", New: "			l.used = max(l.used, 0)", Like: "numbers"},
	{Name: "what a strict series has given to calls is handed back", File: lanes, Old: "			l.used = max(l.used, r.id(taken))", New: "			l.used = max(l.used, 0)", Like: "numbers"},
	{Name: "a strict grant is given to a call that came after the request", File: lanes, Old: "		case c.asked&l.place != 0:\n			c.takeFrom", New: "		default:\n			c.takeFrom", Like: "numbers"},
	{Name: "a strict series keeps what a grant has left", File: lanes, Old: "	if !strict {\n		l.spare", New: "	if true {\n		l.spare", Like: "numbers"},
	{Name: "a call takes what there is, and not all or none", File: runs, Old: "if !r.give(c, c.want-others) {", New: "if !r.give(c, 0) {", Like: "numbers"},
	{Name: "a range is taken from two runs", File: runs, Old: "if r.give(c, c.want); c.want == 0 {", New: "if r.give(c, 0); c.want == 0 {", Like: "numbers"},
	{Name: "a call that was served at the last moment is given up", File: calls, Old: "	if i < 0 {\n		return", New: "	if i < 0 {\n		c.err = cause\n		return", Like: "numbers"},
}

var generator = []Mutant{
	{Name: "the generator's limit is off by one", File: "generator.go", Old: "		last := min(old+uint64(n), g.limit.Load())", New: "		last := min(old+uint64(n), g.limit.Load()+1)", Package: ".", Tests: "^TestHorizonReachedByTheSequence$"},
	{Name: "a closed generator says one tick less", File: "generator.go", Old: "	return Tick(g.issued >> g.seqBits)", New: "	return Tick(g.issued>>g.seqBits) - 1"},
	{Name: "Next gives a number above the limit", File: "generator.go", Old: "	if w > g.limit.Load() {\n", New: "	if w > g.limit.Load()+1 {\n", Package: ".", Tests: "^TestGeneratorIsTheModel$"},
	{Name: "a generator starts below its base", File: "generator.go", Old: "	g.pace = g.lastOf(grant.Base)\n", New: "	g.pace = g.lastOf(0)\n"},
	{Name: "a generator does not stop at its horizon", File: "generator.go", Old: "	g.top = g.lastOf(grant.Horizon)\n", New: "	g.top = g.lastOf(l.Last())\n"},
	{Name: "a clock that was set back is followed", File: "generator.go", Old: "if old+1 >= floor || g.word.CompareAndSwap(", New: "if g.word.CompareAndSwap(", Like: "clocks step"},
	{Name: "ids run ahead of the clock without a bound", File: "generator.go", Old: "min(t+uint64(g.borrow), g.last)", New: "g.last", Package: ".", Tests: "."},
	{Name: "a number that was refused is not given back", File: "generator.go", Old: "		if err != nil {\n			g.giveBack(w)\n", New: "		if err != nil {\n", Package: ".", Tests: "."},
	{Name: "an id taken while the generator closes is used", File: "generator.go", Old: "limit := g.limit.Swap(0)", New: "limit := g.limit.Load()", Package: ".", Tests: "^TestCloseAmongCallers$"},
}
