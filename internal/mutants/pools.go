package mutants

const (
	create  = "pool/create.go"
	recover = "pool/recover.go"
	workers = "pool/workers.go"
)

// pools are the rules of what operators do to pools.
var pools = []Mutant{
	{Name: "an operator's release lowers the horizon", File: operate, Old: "Horizon: max(r.Horizon, floor), TTL", New: "Horizon: floor, TTL"},
	{Name: "a recovery leaves workers to their holders", File: recover, Old: "if w.Horizon >= p.Floor && (w.Owner == \"\" || !held) {", New: "if w.Horizon >= p.Floor || held || !held {", Like: "the store is restored"},
	{Name: "a recovery adds no outage budget", File: recover, Old: "now.Add(outage), rec.Version}", New: "now, rec.Version}", With: "a recovery of a pool adds no outage budget", Like: "the store is restored"},
	{Name: "a recovery of a pool adds no outage budget", File: recover, Old: "r.now.Add(p.OutageLimit());", New: "r.now;", With: "a recovery adds no outage budget", Like: "the store is restored"},
	{Name: "a recovery trusts the clock that it reads", File: create, Old: "	return now.Add(2 * term.Skew)", New: "	return now", Like: "the store is restored, and clocks step"},
	{Name: "a recovery does not look at horizons that are further ahead", File: recover, Old: "		if w.Horizon > to {", New: "		if w.Horizon > to && p.Floor < 0 {", Package: "./cmd/firn", Tests: "^TestRecoverAboveAClockThatWasAhead$"},
	{Name: "a pool that the store may have lost starts at once", File: create, Old: "floor = max(floor, left, clamp(p.layout, latest(rec).Add(max(p.OutageLimit(), term.OutageDurable))))", New: "floor = max(floor, left)", Like: "all records are deleted"},
	{Name: "a pool that the store may have lost starts without an outage budget", File: create, Old: "latest(rec).Add(max(p.OutageLimit(), term.OutageDurable))))", New: "latest(rec)))", Like: "all records are deleted, and grants reach far"},
	{Name: "a pool is created at once where records of workers are left", File: create, Old: "if len(remains) > 0 {", New: "if len(remains) < 0 {", Like: "a pool's record is deleted"},
	{Name: "the holders of a pool whose record was deleted keep their workers", File: create, Old: "		if w.Owner == \"\" {\n			continue\n		}\n", New: "		if w.Term > 0 {\n			continue\n		}\n", Package: "./pool", Tests: "^TestEnsureFreesHolders$"},
	{Name: "other pools are looked at only before a range is reserved", File: create, Old: "	inherited, err := p.alone(ctx, s)\n	if err != nil {\n		return Info{}, errors.Join", New: "	var inherited inheritance\n	if err != nil {\n		return Info{}, errors.Join", Like: "pools are created at the same time"},
	{Name: "a worker is given up that a process holds", File: workers, Old: "			e.Name = r.Name\n", New: "", Package: "./pool", Tests: "^TestNarrowFreesTheDead$"},
	{Name: "a worker is given up that has issued ahead of the clock", File: workers, Old: "horizon.After(earliest(rec)) {", New: "horizon.IsZero() {", With: "a pool starts below what another one has issued", Like: "pools hand workers to each other"},
	{Name: "a pool starts below what another one has issued", File: workers, Old: "	p.Pool = p.Above(inherited.floor(p.layout, store.Record{Read: p.read}), p.Store)\n", New: "	_ = inherited\n", Like: "pools hand workers to each other"},
	{Name: "a pool forgets what workers that it gave up have issued", File: workers, Old: "		p.Past = max(p.Past, r.Horizon)\n", New: "", With: "a worker is given up that has issued ahead of the clock", Like: "pools hand workers to each other"},
}
