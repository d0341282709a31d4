package mutants

const (
	pageClient = "internal/pagefile/client.go"
	pageAgent  = "internal/pagefile/agent.go"
	pageHeader = "internal/pagefile/header.go"
	pageOpened = "page/open_linux.go"
	pageServed = "page/serve_linux.go"
)

// pages are the rules of a shared page, which random schedules of its clients and agents find.
var pages = []Mutant{
	paged("a number of a page is not compared after it was taken", pageClient, "		if last > c.Memory.Load(Horizon) {\n", "		if false {\n", "a client that lost a race takes the next number without a look"),
	paged("a client that lost a race takes the next number without a look", pageClient, "		if !c.Memory.CompareAndSwap(Number, word, last) {\n			continue\n		}\n", "		for !c.Memory.CompareAndSwap(Number, word, last) {\n			word = c.Memory.Load(Number)\n			first, last = word+1, word+1\n		}\n", "a number of a page is not compared after it was taken"),
	paged("a number of a page is compared only after it was taken", pageClient, "	if first > horizon {\n		return first, 0, Ended\n	}\n	clock,", "	horizon = Closed >> 2\n	clock,", ""),
	paged("a client does not wait for the clock", pageClient, "	if first>>h.SeqBits*tick > clock+uint64(h.Ahead) {\n", "	if false {\n", ""),
	paged("a client takes by an exchange that does not compare", pageClient, "		if !c.Memory.CompareAndSwap(Number, word, last) {\n			continue\n		}\n", "		c.Memory.Store(Number, last)\n", ""),
	paged("a page is closed without an exchange", pageAgent, "word := a.Memory.Swap(Number, Closed)\n", "word := a.Memory.Load(Number)\n", ""),
	paged("closed is a field of its own", pageClient, "		word := c.Memory.Load(Number)\n		first, last, do", "		if c.Memory.Load(ClosedAt) != 0 {\n			return 0, 0, Shut\n		}\n		word := c.Memory.Load(Number)\n		first, last, do", "a page is closed without an exchange"),
	paged("a page says less than the exchange took out", pageAgent, "		a.last = min(word, a.horizon)\n", "		a.last = min(word-1<<a.SeqBits, a.horizon)\n", ""),
	paged("a client does not see that its process has left the page", pageClient, "		if c.Left.Load() {\n", "		if c.Left.Load() && false {\n", ""),
	paged("a client reads the word before it marks the page as left", pageClient, "	c.Left.Store(true)\n	word := c.Memory.Load(Number)\n", "	word := c.Memory.Load(Number)\n	c.Left.Store(true)\n", ""),
	paged("a client forgets what it took from another page", pageClient, "	first = max(word, above) + 1\n", "	first = word + 1\n", ""),
	paged("a client forgets the page before the last", pageClient, "	return max(c.Last(c.TickOf(word)), c.Above)", "	return c.Last(c.TickOf(word))", ""),
	paged("a closed page does not say how far it got", pageAgent, "		a.Memory.Store(ClosedAt, word)\n", "		a.Memory.Store(ClosedAt, 1)\n", ""),
	{Name: "a page of another run of the system is used", File: pageHeader, Old: "	case p.Boot != q.Boot:\n", New: "	case false:\n", Package: "./internal/pagefile", Tests: "^TestDiffers$"},
	{Name: "a page of another time namespace is used", File: pageHeader, Old: "	case p.TimeNamespace != q.TimeNamespace:\n", New: "	case false:\n", Package: "./internal/pagefile", Tests: "^TestDiffers$"},
	{Name: "a copy of a page is used", File: pageHeader, Old: "	case p.Device != q.Device || p.Inode != q.Inode || p.Born != q.Born:\n", New: "	case false:\n", Package: "./internal/pagefile", Tests: "^TestDiffers$"},
	{Name: "a client changes to a page of another pool", File: pageHeader, Old: "	case h.PoolID != n.PoolID:\n", New: "	case false:\n", Package: "./internal/pagefile", Tests: "^TestAlike$"},
	{Name: "a damaged page is released at its word", File: pageAgent, Old: "		if word < a.seen {", New: "		if false {", Package: "./internal/pagefile", Tests: "^TestDamaged$"},
	tested("an agent keeps a page whose word ran away", pageAgent, "ahead > tooFar+a.Ahead && word > a.Base {", "false && ahead > tooFar {", "./internal/pagefile", "TestDamaged"),
	tested("a client that leaves waits for a word that ran away", pageClient, "	word = min(word, uint64(max(c.Now(), 0)+c.Ahead+tooFar)/uint64(c.Tick)<<c.SeqBits)\n", "", "./internal/pagefile", "TestLeave"),
	tested("a client that leaves forgets numbers ahead of the clock", pageClient, "+c.Ahead+tooFar)", "+c.Ahead)", "./internal/pagefile", "TestLeave"),
	tested("a client draws no lane", pageClient, "	if c.Lanes < 2 || c.Lane != 0 {\n", "	if true {\n", "./internal/pagefile", "TestDraw"),
	tested("a client draws in the page of another lane", pageClient, "	if c.Lanes < 2 || c.Lane != 0 {\n", "	if c.Lanes < 2 {\n", "./internal/pagefile", "TestDraw"),
	tested("all clients draw one lane", pageClient, "CompareAndSwap(Draws, n, n+1)", "CompareAndSwap(Draws, n, n)", "./internal/pagefile", "TestDraw"),
	tested("a page may be of a lane that its agent does not have", pageHeader, "		h.Lanes > MaxLanes || h.Lane > 0 && h.Lane >= h.Lanes {\n", "		h.Lanes > MaxLanes {\n", "./internal/pagefile", "TestHeader"),
	tested("all lanes have one path", pageHeader, "	if lane == 0 {\n", "	if true {\n", "./page", "TestLanes"),
	tested("a lane may be the page of another pool", pageOpened, "c.Alike(next.Header) != \"\" || next.Lane != lane ", "next.Lane != lane ", "./page", "TestLanesThatAreMissing"),
	tested("a lane may be the page of another lane", pageOpened, " || next.Lane != lane || !next.Gives() {", " || !next.Gives() {", "./page", "TestLanesThatAreMissing"),
	tested("a lane may be a page that is closed", pageOpened, " || next.Lane != lane || !next.Gives() {", " || next.Lane != lane {", "./page", "TestLanesThatAreMissing"),
	tested("a client keeps to a lane that its agent does not have any more", pageOpened, "max(first.Lanes, 1) <= c.Lane {", "false {", "./page", "TestLanes"),
	tested("a client of a lane changes to another pool", pageOpened, "other == nil && c.Alike(first.Header) == \"\" && max(", "other == nil && max(", "./page", "TestLanesOfAnotherPool"),
	tested("clients follow a clock that was read long ago", pageServed, "	if s.setAt != 0 {\n", "	if false {\n", "./page", "TestSetClockLate"),
}

// tested is a mutant that one test finds.
func tested(name, file, old, changed, pkg, test string) Mutant {
	return Mutant{Name: name, File: file, Old: old, New: changed, Package: pkg, Tests: "^" + test + "$"}
}

// paged is a mutant that the schedules of package pagefile find.
func paged(name, file, old, changed, with string) Mutant {
	return Mutant{Name: name, File: file, Old: old, New: changed, With: with, Package: "./internal/pagefile", Tests: "^TestSchedules$"}
}
