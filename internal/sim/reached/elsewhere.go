package main

// An exception is what no schedule reaches, in a file: the lines that have a text, or all of it.
type exception struct {
	file, text string
	why        string
}

// Why something is not reached.
const (
	words    = "what an error says: the tests of the package and of the command"
	shown    = "only shown to people or programs: the tests of the package that shows it"
	byPeople = "what an operator does that the simulation has no part in: the tests of package pool"
	never    = "no driver does this; the fuzz tests of the package do"
	tested   = "a file of another system, pool or firn: the tests of the package"
	fuzzed   = "a record that is well formed and says what cannot be: the fuzz tests of the package"
	hasty    = "a clock that is set several times while one call draws; each time is reached"
)

// elsewhere is what the simulation does not reach, and what shows that it is right.
var elsewhere = []exception{
	{"internal/block/refusal.go", "", words},
	{"internal/term/errors.go", "", words},
	{"internal/dated/refusal.go", "", words},
	{"internal/supply/supply.go", "func (e *Outage) Error()", words},
	{"internal/supply/lane.go", "func (l *Lane) Status()", shown},
	{"internal/block/driver.go", "func (d Driver) Pace()", shown},
	{"internal/block/pace.go", "func (p Pace) Step()", shown},
	{"internal/block/keys.go", "func Key(", shown},
	{"internal/dated/dated.go", "if d.Names < 0", fuzzed},
	{"internal/dated/place.go", "if n.Names < 0", fuzzed},
	{"internal/dated/place.go", "if p.Template, rest, ok =", never},
	{"internal/term/left.go", "", shown},
	{"internal/term/look.go", "func (s State) Why()", shown},
	{"internal/term/look.go", "case !s.Lossy:", shown},
	{"internal/term/look.go", "case s.look.why", shown},
	{"internal/term/look.go", "seen by another process", shown},
	{"internal/term/look.go", "func (s State) Unseen()", shown},
	{"internal/term/term.go", "func (p Phase) String()", shown},
	{"internal/term/term.go", "func (s State) Mute()", shown},
	{"internal/holder/process.go", "func (p *Process) StartsAt()", shown},
	{"internal/holder/process.go", "func (p *Process) Durable()", shown},
	{"internal/term/rules.go", "func (r *Rules) StartDelay(", shown},
	{"internal/term/operate.go", "func Past(", byPeople},
	{"internal/term/operate.go", "func (p Pool) NeverHeld(", byPeople},
	{"internal/term/operate.go", "func (p Pool) In(", byPeople},
	{"internal/block/block.go", "panic(", never},
	{"internal/block/block.go", "if s.Over {", never},
	{"internal/term/term.go", "panic(", never},
	{"internal/term/read.go", "panic(", never},
	{"internal/block/write.go", "math.IsNaN(rate)", fuzzed},
	{"internal/block/record.go", "r.Offset < 0", fuzzed},
	{"internal/block/record.go", "r.Granted < r.before()", fuzzed},
	{"internal/term/record.go", "p.Limit < 0", fuzzed},
	{"internal/term/record.go", "p.Outage < 0", fuzzed},
	{"internal/term/record.go", "r.Horizon < 0", fuzzed},
	{"internal/block/record.go", `case r.ID == "":`, fuzzed},
	{"internal/term/pool.go", "r.First < 0", fuzzed},
	{"internal/term/pool.go", "r.Last >= l.Workers()", fuzzed},
	{"internal/term/pool.go", "if err != nil {", fuzzed},
	{"internal/term/read.go", "if err != nil {", fuzzed},
	{"internal/grantfile/grantfile.go", "case b.V != format:", tested},
	{"internal/grantfile/grantfile.go", `case at.Boot == "":`, tested},
	{"internal/grantfile/grantfile.go", "case b.Pool != of.Pool", tested},
	{"internal/grantfile/grantfile.go", "n == Size", tested},
	{"internal/grantfile/grantfile.go", "if err != nil {", never},
	{"internal/dated/series.go", "func (s *Series) Last()", shown},
	{"internal/dated/series.go", "func (s *Series) Durability()", shown},
	{"internal/dated/series.go", "func (s *Series) Err()", shown},
	{"internal/dated/dated.go", "r.By < 0", fuzzed},
	{"internal/dated/dated.go", "min(c.Count, c.Reached, c.Raised) < 0", fuzzed},
	{"internal/dated/dated.go", "max(c.Count, c.Reached) > MaxCount", fuzzed},
	{"internal/dated/period.go", "if !ok {", never},
	{"internal/dated/write.go", "if err != nil {", never},
	{"internal/dated/read.go", "if d.tries++; d.tries == 2*attempts {", hasty},
	{"internal/dated/write.go", "if d.tries == attempts {", hasty},
	{"internal/dated/read.go", "case !p.Durable && !d.Lossy:", "a store that becomes one that can forget while a document is open: TestLossy of package document"},
}
