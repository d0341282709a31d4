package mutants

const (
	drawDated   = "internal/dated/draw.go"
	handDated   = "internal/dated/hand.go"
	readDated   = "internal/dated/read.go"
	writeDated  = "internal/dated/write.go"
	recordDated = "internal/dated/dated.go"
	placeDated  = "internal/dated/place.go"
)

// Schedules of documents: on a durable store, on one whose clock is set, on one that is restored or
// copied, and on one that forgets.
const (
	onDurable  = "documents"
	onDated    = "documents, and a store's clock that is set"
	onRestored = "documents of a store that is restored"
	onCopied   = "documents of a store that is copied"
	onLossy    = "documents of a store that forgets"
)

// documents are the rules of internal/dated/draw.go, by their numbers there, and what else a document
// promises.
var documents = []Mutant{
	// 1
	{Name: "a document's grant begins one count low", File: writeDated, Old: "Next: c.Count + 1}", New: "Next: c.Count}", Like: onDurable},
	// 2
	{Name: "a write of a document's counter of unknown outcome counts as done", File: writeDated, Old: "	case a.Err != nil:\n		// It", New: "	case a.Err != nil && a.Record.Version == \"\" && !errors.Is(a.Err, store.ErrConflict):\n		// It", Like: onDurable},
	{Name: "a document's span in doubt is settled without its version", File: own, Old: "o.tried != \"\" && o.doubt.Key == key && o.tried == v\n", New: "o.tried != \"\" && o.doubt.Key == key\n", Like: onDurable},
	// 3
	{Name: "a date begins anew when a process comes to it", File: readDated, Old: "	d.known, d.looked, d.blind = held{", New: "	if d.known.period != period {\n		c.Count = 0\n	}\n	d.known, d.looked, d.blind = held{", Like: onDated},
	// 4
	{Name: "texts of two dates are equal", File: "document/text.go", Old: "			dst = q.date.append(dst, period)", New: "			_ = period", Like: onDated},
	{Name: "texts of two hours are equal", File: "document/date.go", Old: "	at := d.from\n", New: "	at := 0\n", Package: "./document", Tests: "^TestHours$"},
	{Name: "texts have the last digits of the counter", File: "document/text.go", Old: "	return append(dst, digits...)\n", New: "	return append(dst, digits[max(len(digits)-1, 0):]...)\n", Like: onDurable},
	// 5
	{Name: "a document that was begun anew passes", File: readDated, Old: "	case def.ID != d.def.ID:", New: "	case false:", Like: onDated},
	{Name: "a document whose definition is gone passes", File: readDated, Old: "		d.forgot(\"it is gone\")\n", New: "", Like: onDated},
	{Name: "a definition that is older than the known one passes", File: readDated, Old: "	case def.Mark() < d.def.Mark():", New: "	case false:", Like: onLossy},
	{Name: "a document's counter that is below what was granted passes", File: readDated, Old: "ok && (c.Count < top || ", New: "ok && (", Package: "./document", Tests: "^TestForgotten$"},
	{Name: "a recovery that the store has forgotten is taken for a later one", File: recordDated, Old: "(max(max(d.Mark(), r.Above)>>markBits, r.Now.Unix())+1)<<markBits", New: "(d.Mark()>>markBits+1)<<markBits", Package: "./document", Tests: "^TestRecoveryThatIsForgotten$"},
	{Name: "recoveries of one time have one mark", File: recordDated, Old: " | int64(r.Random>>(64-markBits))", New: "", Package: "./document", Tests: "^TestRecoveriesAtOneInstant$"},
	// 6
	{Name: "another store of documents passes", File: "internal/dated/period.go", Old: "	return record.CheckOther(fmt.Sprintf(\"document %q\", name), have, want)", New: "	_, _ = fmt.Sprint(name, have, want), record.CheckOther\n	return nil", Like: onCopied},
	// 7
	{Name: "a document's store is not asked after the acknowledgement", File: writeDated, Old: "d.proven = d.durability.Durable && d.def.Instance == \"\"", New: "d.proven = true", Like: onLossy},
	{Name: "documents are granted by another instance of the store", File: recordDated, Old: "return p.Instance != d.Instance && ", New: "return p.Instance == \"\" && ", Like: onLossy},
	{Name: "documents are granted by another instance where the store cannot forget any more", File: recordDated, Old: "(d.Instance != \"\" || !p.Durable)", New: "!p.Durable", Package: "./document", Tests: "^TestDurableAfterItForgot$"},

	{Name: "a counter of documents that was forgotten is not raised", File: recordDated, Old: "&& (there || period <= r.Through) {", New: "&& there {", Like: onLossy},
	{Name: "a new name of a template begins at 1 after a recovery", File: writeDated, Old: "	c := d.def.RaisedTo(d.known.counter, d.known.version != \"\", d.known.period)\n", New: "	c := Counter{V: record.Format, Raised: d.def.Mark()}\n	if d.Template == \"\" || d.known.version != \"\" {\n		c = d.def.RaisedTo(d.known.counter, true, d.known.period)\n	}\n", Like: onLossy},
	{Name: "a name of a template shares the counter of another", File: placeDated, Old: "	return CountersOf(p.Template) + p.rest() + \"/\"\n", New: "	return CountersOf(p.Template) + p.rest()[:0] + \"a/\"\n", Like: onDurable},
	{Name: "a name of a template is not written down", File: "document/names.go", Old: "	_, err = record.Create(ctx, st, at.Record(), record.Encode(dated.NameRecord{V: record.Format}))\n", New: "	_ = record.Create\n", Package: "./document", Tests: "^TestTemplate"},
	{Name: "a recovery does not see the marks of the counters of names", File: "document/recover.go", Old: "range append(list, ofNames...) {\n		if !rec.Read", New: "range append(list, ofNames[:0]...) {\n		if !rec.Read", Package: "./document", Tests: "^TestTemplateMarks$"},
	{Name: "counts that were handed back are not raised", File: recordDated, Old: "max(c.Count, c.Reached)+r.By", New: "c.Count+r.By", Package: "./document", Tests: "^TestHandedBackToAnOlderStore$"},
	{Name: "counts are given out that a process had before a recovery", File: readDated, Old: "			d.before, d.own = d.own, block.Own{}\n			d.drop()\n", New: "			d.before, d.own = d.own, block.Own{}\n", Like: onLossy},
	{Name: "a count that was written on another date is used", File: writeDated, Old: "!d.looked && !written.IsZero() && d.Period(written) != g.Period", New: "false && d.Period(written) != g.Period", Like: onDated},
	{Name: "a process that was suspended trusts what it read of the store's clock", File: "internal/dated/sight.go", Old: "asleep.Abs() <= slop && ", New: "asleep.Abs() >= 0 && ", Package: "./internal/dated", Tests: "^TestSight$"},
	{Name: "the store's clock is trusted for long after it was read", File: "internal/dated/sight.go", Old: "now.Mono-s.sent.Mono <= sightFor", New: "now.Mono-s.sent.Mono <= 60*sightFor", Like: onDated},
	{Name: "a counter passes that has heeded fewer recoveries than the process knows", File: readDated, Old: "(c.Count < top || c.Raised < d.def.Mark())", New: "c.Count < top", Package: "./document", Tests: "^TestCounterOfBefore$"},
	{Name: "counts in hand are used on another date", File: drawDated, Old: "		if d.hand.Period == period {", New: "		if d.hand.Period != \"\" || period == \"\" {", Like: onDated},
	{Name: "counts are lost with the call that gives up", File: handDated, Old: "		d.hand.Next = g.Next\n	default:\n		d.keep(g)", New: "		_ = g\n	default:", Like: onDurable},
	{Name: "counts are handed back though somebody has drawn since", File: writeDated, Old: "d.hand.version != d.known.version || !ok", New: "!ok", With: "numbers are handed back though somebody has written since", Like: onDurable},
}
