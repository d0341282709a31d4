package sim

// A wrong is what a store or an operator does wrong, against which firn has no rule.
type wrong struct {
	name       string // empty: nothing
	overwrites bool   // the store carries out a process's Put whatever the record's version is
	counts     bool   // versions are counts, so that a restored store uses them again
	hastens    bool   // an operator restores a store, and lets processes use it meanwhile
	belittles  bool   // an operator says that a store has lost less than it has
	shares     bool   // two processes have one grant file
}

// wrongs are what the checker has to see.
var wrongs = []draw{
	{name: "the store ignores the version of a Put", wrong: wrong{overwrites: true}},
	{name: "the store's versions are counts", in: restoring, wrong: wrong{counts: true}},
	{name: "processes use a store while it is restored", in: restoring, wrong: wrong{hastens: true}},
	{name: "an operator says too small a loss of numbers", in: counterRestored, wrong: wrong{belittles: true}},
	{name: "an operator says too small a loss of documents", in: documentsRestored, wrong: wrong{belittles: true}},
	{name: "two processes have one grant file", kind: embedded, in: files, wrong: wrong{shares: true}},
}
