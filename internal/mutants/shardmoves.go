package mutants

const (
	nextStep = "shard/move/next.go"
	steps    = "shard/move/steps.go"
	mover    = "shard/move/mover.go"
	finish   = "shard/move/finish.go"
	cutover  = "shard/move/cutover.go"
	plan     = "shard/setup/reopen.go"
	moves    = "./shard/move"
	setups   = "./shard/setup"
)

// movers are the rules of the mover, and of what reopens a server or takes it out.
var movers = []Mutant{
	// What comes next.
	{Name: "what was let go waits for other shards", File: nextStep, Old: "{toTake, toRecordOwner, toBegin, toClaim, toLoad}", New: "{toRecordOwner, toBegin, toClaim, toLoad, toTake}", Package: moves, Tests: "^TestNext$"},
	{Name: "a claim of another mover counts as this one's", File: nextStep, Old: "same := to.term == from.term && to.attempt == from.attempt", New: "same := to.term == from.term", Package: moves, Tests: "^TestNextOfAShard$"},
	{Name: "a claim of another term counts as this one's", File: nextStep, Old: "same := to.term == from.term && to.attempt == from.attempt", New: "same := to.attempt == from.attempt", Package: moves, Tests: "^TestNextOfAShard$"},
	{Name: "a shard moves that two servers serve", File: nextStep, Old: "	case from.serves() && to.serves():\n		return \"\", &StuckError{", New: "	case false:\n		return \"\", &StuckError{", Package: moves, Tests: "^TestNextOfAShard$"},
	{Name: "a shard goes back to a copy that was dropped", File: nextStep, Old: "	case from.serves() && !to.loaded && g.back:\n", New: "	case false:\n", Package: moves, Tests: "^TestNextOfAShard$"},
	{Name: "a shard goes back whose move has ended", File: nextStep, Old: "case from.serves() && from.attempt != g.attempt && from.batch == \"\" && g.back:", New: "case false:", Package: moves, Tests: "^TestNextOfAShard$"},
	{Name: "a move that was aborted in part is continued", File: nextStep, Old: "case from.serves() && from.attempt != g.attempt && from.batch == \"\" && to.batch != \"\":", New: "case false:", Package: moves, Tests: "^TestNextOfAShard$"},
	{Name: "a promoted target is waited for", File: nextStep, Old: "case from.there && !from.here && from.state == topology.StateOpen && to.state == topology.StateMoved && to.loaded:", New: "case false:", Package: moves, Tests: "^TestNextOfAShard$"},
	{Name: "a shard moves though what it is sent back by was lost", File: nextStep, Old: "	if !f.target.slot && moved && !g.back {\n", New: "	if !f.target.slot && moved && false {\n", Package: moves, Tests: "^TestNext$"},
	{Name: "a slot back that was lost is made anew", File: steps, Old: "|| !t.slot && s.enabled {", New: "{", Package: moves, Tests: "^TestNext$"},
	{Name: "a slot that was lost is made anew", File: steps, Old: "if s.lost || t.lost || !s.slot && t.subscription ||", New: "if s.lost || t.lost ||", Package: moves, Tests: "^TestNext$"},
	{Name: "a slot that has lost what it kept passes", File: steps, Old: "if s.lost || t.lost || !s.slot", New: "if t.lost || !s.slot", Package: moves, Tests: "^TestNext$"},
	{Name: "what is copied is sent back", File: steps, Old: "missing: func(_, b stream) bool { return !b.slot && b.published > 0 },", New: "missing: func(_, b stream) bool { return false },", Package: moves, Tests: "^TestNext$"},
	// What is looked at before a shard changes over, or a copy goes.
	{Name: "a shard changes over that was not compared", File: mover, Old: "	if !m.verified[p.shard] {\n", New: "	if false {\n", Package: moves, Tests: "^TestCompared$"},
	{Name: "a shard that was not let go gives no ids", File: cutover, Old: "		m.cancelCutover(ctx, from, p.shard, a)\n", New: "", Package: moves, Tests: "^TestGeneratorIsEnded$"},
	{Name: "a copy is dropped of which the owner knows less", File: finish, Old: "		if copied {\n", New: "		if copied && false {\n", Package: moves, Tests: "^TestOwnerPutBack$"},
	{Name: "a copy is dropped that has rows of its own", File: "shard/move/surplus.go", Old: "if c.surplus != \"\" && m.options.DropRowsOf != other.Name {", New: "if false {", Package: moves, Tests: "^TestSurplus$"},
	{Name: "a copy is dropped before a standby has the shard", File: finish, Old: "	if err := m.patiently(ctx, func() error { return m.awaitStandbys(ctx) }); err != nil {\n", New: "	if err := error(nil); err != nil {\n", Package: moves, Tests: "^TestStandbyBehind$"},
	// To reopen a server, and to take one out.
	{Name: "a shard is opened though a server has not answered", File: plan, Old: "			return nil, &AwayError{server, name, unlisted(name, server, views)}\n", New: "			continue\n", Package: setups, Tests: "^TestReopen$"},
	{Name: "a shard is opened though it is open on another server", File: plan, Old: "		case other.Serves():\n", New: "		case false:\n", Package: setups, Tests: "^TestPlanReopen$"},
	{Name: "a shard is opened at a term that a lost server may have had", File: plan, Old: "row.Term+unseen+1)", New: "row.Term)", Package: setups, Tests: "^TestReopen$"},
	{Name: "a copy is opened without a word that rows may be missing", File: plan, Old: "		err = &IncompleteError{row.Shard, nil, r.Server, row.MovedTo, doubt}\n", New: "		doubt = nil\n", Package: moves, Tests: "^TestIncompleteTarget$"},
	{Name: "a shard is opened above a clock that is wrong", File: "shard/setup/clock.go", Old: "latest.says.Sub(next.says) > apart", New: "latest.says.Sub(next.says) > 1000*apart", Package: setups, Tests: "^TestAboveClocks$"},
	{Name: "a server comes whose clock is wrong", File: "shard/setup/clock.go", Old: "t.ahead.Abs() > apart", New: "t.ahead.Abs() > 1000000*apart", Package: setups, Tests: "^TestInitClock$"},
	{Name: "a server is taken out that a shard is on its way to", File: "shard/setup/remove.go", Old: "	SELECT shard INTO has FROM firn.move LIMIT 1;\n", New: "	SELECT shard INTO has FROM firn.move LIMIT 0;\n", Package: setups, Tests: "^TestRemoveWaits$"},
	{Name: "a server is taken out while a shard comes to it", File: "shard/setup/remove.go", Old: "	LOCK TABLE firn.shard, firn.move IN SHARE ROW EXCLUSIVE MODE;\n", New: "", Package: setups, Tests: "^TestRemoveWaits$"},
	{Name: "writers wait until all tables have guards", File: "shard/install/owner.sql", Old: "at_most CONSTANT integer := 8;", New: "at_most CONSTANT integer := 1000;", Package: "./shard/move", Tests: "^TestGuardsInBatches$"},
	{Name: "what replication writes is sent back after a late step", File: "shard/install/owner.sql", Old: " AND coalesce(firn.given_to(s), v.name) = v.name;", New: ";", Package: "./shard/move", Tests: "^TestLockedLate$"},
	{Name: "another copy than others know is taken for the server", File: "shard/check/twin.go", Old: "if v != nil && known != v.Incarnation && !slices.Contains(v.Formerly, known) {", New: "if v != nil && known == \"\" {", Package: "./shard/check", Tests: "^TestRefuseTwins$"},
	{Name: "a copy of a server is not believed to be that server", File: "shard/check/twin.go", Old: " && !slices.Contains(v.Formerly, known) {", New: " && slices.Index(v.Formerly, known) < 1 {", Package: "./shard/check", Tests: "^TestRefuseTwins$"},
	{Name: "a copy is complete whose server was told where the shard has gone since", File: plan, Old: "	case err == nil && word != row.MovedTo:", New: "	case false:", Package: "./shard/move", Tests: "^TestIncompleteForwarded$"},
	{Name: "ranges of keys are divided", File: "shard/topology/keys.go", Old: "slices.Equal(k.bounds[:n], other.bounds)", New: "true", Package: "./shard/topology", Tests: "^TestExtends$"},
	{Name: "a range of keys that was added is not heard of", File: "shard/ranges.go", Old: "|| c.heard(time.Now().Add(-rangesFor))", New: "|| true", Package: "./shard", Tests: "^TestRangeAdded$"},
	{Name: "a key above all ranges is used where no server answers", File: "shard/ranges.go", Old: "if c.look(ctx, c.names(\"\"), asked) != nil || !c.heard(asked) {", New: "if c.look(ctx, c.names(\"\"), asked) != nil {", Package: "./shard", Tests: "^TestRangeUnheard$"},
	{Name: "a file is applied to one copy of a shard whose move has begun", File: "shard/migrate/apply.go", Old: "		moving = fmt.Sprintf(", New: "		_ = fmt.Sprintf(", Package: "./shard/migrate", Tests: "^TestMoveBegins$"},
	{Name: "a move begins while a file is applied", File: "shard/migrate/apply.go", Old: "WHERE shard = %d FOR SHARE; ", New: "WHERE shard = %d; ", Package: "./shard/migrate", Tests: "^TestMoveWaits$"},
}
