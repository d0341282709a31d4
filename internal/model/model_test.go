package model_test

import (
	"os"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/model"
	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// depth is the longest way that is followed, in steps.
const depth = 200_000

// searches are all that is searched. First come the protocols as they are, in which
// nothing may be found, then each without one of its rules.
var searches = []model.Search{
	{Model: "lease", Name: "with a grant file and an operator", Define: "PUTS=3 FILE OPERATOR"},
	{Model: "lease", Name: "a restored store", Define: "PUTS=2 RESTORE"},
	{Model: "segment", Name: "as it is", Define: "PUTS=4"},
	{Model: "lossy", Name: "as it is", Define: "TIME=4"},
	{Model: "lossy", Name: "the pool is marked meanwhile", Define: "TIME=2 MARK"},
	{Model: "pool", Name: "as it is", Define: "TRIES=3"},
	{Model: "move", Name: "two movers", Define: "ATTEMPTS=2 WRITES=1 IDS=1"},
	{Model: "move", Name: "the source fails", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=0"},
	{Model: "move", Name: "the target fails", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=1"},
	{Model: "move", Name: "an operator pauses it", Define: "ATTEMPTS=2 WRITES=0 IDS=0 PAUSE"},
	{Model: "twins", Name: "two operators and a mover", Define: "OPERATORS=2"},
	{Model: "page", Name: "as it is", Define: "NUMBERS=3"},

	{Model: "lease", Name: "as it is, 4 Puts", Define: "PUTS=4", Long: true},
	{Model: "lease", Name: "with a grant file, 3 processes", Define: "PUTS=3 PROCESSES=3 FILE", Long: true},
	{Model: "lease", Name: "an operator, 4 Puts", Define: "PUTS=4 OPERATOR", Long: true},
	{Model: "lease", Name: "a restored store, 3 Puts", Define: "PUTS=3 RESTORE", Long: true},
	{Model: "segment", Name: "5 Puts", Define: "PUTS=5", Long: true},
	{Model: "lossy", Name: "4 Puts", Define: "PUTS=4 TIME=4", Long: true},
	{Model: "lossy", Name: "4 Puts, only holders look how late they are", Define: "PUTS=4 TIME=4 MUT_WITHIN", Long: true},
	{Model: "lossy", Name: "4 Puts, only the store looks how late they are", Define: "PUTS=4 TIME=4 MUT_LATE", Long: true},
	{Model: "lossy", Name: "W is 2", Define: "TIME=7 W=2", Long: true},
	{Model: "lossy", Name: "clocks are off by 1", Define: "PUTS=2 TIME=5 SKEW=1", Long: true},
	{Model: "lossy", Name: "the pool is marked meanwhile, later", Define: "TIME=4 MARK", Long: true},
	{Model: "move", Name: "two movers, there, back and taken over", Define: "ATTEMPTS=3 WRITES=0 IDS=0", Long: true},
	{Model: "move", Name: "the source fails, three attempts", Define: "ATTEMPTS=3 WRITES=1 IDS=1 MOVERS=1 FAIL=0", Long: true},
	{Model: "move", Name: "the target fails, and ids", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=1", Long: true},
	{Model: "move", Name: "an operator pauses it, writes and ids", Define: "ATTEMPTS=2 WRITES=1 IDS=1 PAUSE", Long: true},
	{Model: "move", Name: "an operator pauses it, three attempts", Define: "ATTEMPTS=3 WRITES=0 IDS=0 PAUSE", Long: true},
	{Model: "move", Name: "two movers, the source fails", Define: "ATTEMPTS=2 WRITES=1 IDS=0 FAIL=0", Long: true},
	{Model: "move", Name: "two movers, the target fails", Define: "ATTEMPTS=2 WRITES=1 IDS=0 FAIL=1", Long: true},

	{Model: "lease", Define: "PUTS=3 MUT_BLIND", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 MUT_UNACKED", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 MUT_START", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 MUT_FENCE", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=5 PROCESSES=3 MUT_REL0", Finds: "repeat"},
	{Model: "lease", Define: "MUT_RELEARLY", Finds: "repeat"},
	{Model: "lease", Define: "MUT_RELOPEN", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 MUT_CONFLICT", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 MUT_ADOPT", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=4 TICKS=2 RESTORE MUT_COUNT", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 TICKS=2 RESTORE MUT_KEEPOWNER", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 RESTORE MUT_LOWFLOOR", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=2 RESTORE MUT_UNCUT", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 RESTORE MUT_FLOORONCE", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=4 RESTORE MUT_TOKEN", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 FILE MUT_LATEMARK", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 TICKS=2 PROCESSES=3 FILE MUT_STALEFILE", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 FILE MUT_NOLOCK", Finds: "repeat"},
	{Model: "lease", Define: "OPERATOR MUT_OPERATOR", Finds: "repeat"},

	{Model: "segment", Define: "MUT_BLIND", Finds: "repeat"},
	{Model: "segment", Define: "MUT_VALUE", Finds: "repeat"},
	{Model: "segment", Define: "MUT_OPENBACK", Finds: "repeat"},
	{Model: "segment", Define: "MUT_BLINDBACK", Finds: "repeat"},
	{Model: "segment", Define: "MUT_READBACK", Finds: "repeat"},
	{Model: "segment", Define: "PUTS=3 MUT_LOSSY", Finds: "repeat"},

	{Model: "lossy", Define: "TIME=3 W=2 MUT_SHORT", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=5 TTL=2 MUT_EARLY", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=4 MUT_LATE MUT_WITHIN", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=2 MUT_EAGER", Finds: "repeat"},
	{Model: "lossy", Define: "TIME=3 MARK MUT_BEFORE", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=2 MARK MUT_CHOSEN", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=4 MARK MUT_KNOWN MUT_WITHIN", Finds: "repeat", Long: true},

	{Model: "pool", Define: "MUT_ONEWRITE", Finds: "repeat"},
	{Model: "pool", Define: "MUT_LISTFIRST", Finds: "repeat"},
	{Model: "pool", Define: "MUT_NOVOID", Finds: "repeat"},
	{Model: "pool", Define: "MUT_BLIND", Finds: "repeat"},
	{Model: "pool", Define: "MUT_NOCONFIRM", Finds: "repeat"},
	{Model: "pool", Define: "MUT_HELD", Finds: "repeat"},
	{Model: "pool", Define: "MUT_USABLE", Finds: "repeat"},

	{Model: "move", Define: "ATTEMPTS=2 WRITES=0 IDS=0 MUT_TERM", Finds: "stuck"},
	{Model: "move", Define: "ATTEMPTS=3 WRITES=0 IDS=0 MOVERS=1 MUT_ANYMARK", Finds: "owners"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=2 MOVERS=1 MUT_NOWORD", Finds: "repeated"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MUT_BATCH", Finds: "stuck"},
	{Model: "move", Define: "ATTEMPTS=1 WRITES=1 IDS=2 MOVERS=1 MUT_FLOOR", Finds: "repeated"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=0 MUT_IDENTITY", Finds: "owners"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=0 MUT_REOPENLOOK", Finds: "owners"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=0 MUT_COPYOFCOPY", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 FAIL=0 MUT_SUBSCRIBE", Finds: "lost", Long: true},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=0 MUT_REVOKE", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=1 MUT_OLDCOPY", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=1 MUT_BYWORD", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=3 WRITES=1 IDS=0 MOVERS=1 FAIL=0 MUT_LATER", Finds: "lost", Long: true},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=0 MOVERS=1 FAIL=0 MUT_INPLACE", Finds: "owners"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=0 IDS=0 PAUSE MUT_COMMENTONLY", Finds: "despite"},
	{Model: "move", Define: "ATTEMPTS=3 WRITES=0 IDS=0 MOVERS=1 PAUSE MUT_LOOKONCE", Finds: "despite"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=0 IDS=0 PAUSE MUT_DISABLEFIRST", Finds: "stuck"},

	{Model: "twins", Define: "MUT_KNOW", Finds: "twice"},
	{Model: "twins", Define: "MUT_COPY", Finds: "astray"},
	{Model: "twins", Define: "MUT_SEEN", Finds: "twice"},

	{Model: "page", Define: "MUT_BEFORE", Finds: "repeat"},
	{Model: "page", Define: "MUT_FIELD", Finds: "repeat"},
	{Model: "page", Define: "MUT_LOW", Finds: "repeat"},
	{Model: "page", Define: "MUT_TWOWORDS", Finds: "repeat"},
	{Model: "page", Define: "MUT_INODE", Finds: "repeat"},
	{Model: "page", Define: "MUT_UNACKED", Finds: "repeat"},
	{Model: "page", Define: "MUT_EARLY", Finds: "repeat"},
	{Model: "page", Define: "MUT_GRANTFILE", Finds: "repeat"},
	{Model: "page", Define: "MUT_FORK", Finds: "repeat"},
	{Model: "page", Define: "MUT_BOOT", Finds: "repeat"},
}

// TestModels runs two searches of each model: the first one of the protocol as it is, and the first one
// without a rule, so that it is seen that a search finds something. FIRN_LONG=1 runs all short ones, and
// FIRN_MODELS=long all that there are.
func TestModels(t *testing.T) {
	spin, cc, quick := testserver.Spin(t)
	long := os.Getenv("FIRN_MODELS") == "long"
	checker := model.Checker{Spin: spin, CC: cc, QuickCC: quick, Dir: "../../docs/model", Memory: 1000, Depth: depth}
	if long {
		checker.Memory = 6000
	}
	type kind struct {
		model string
		finds bool
	}
	ran := map[kind]bool{}
	for _, s := range searches {
		k := kind{s.Model, s.Finds != ""}
		first := !ran[k]
		ran[k] = true
		name := s.Model + " " + s.Name
		if s.Finds != "" {
			name = s.Model + " " + s.Define
		}
		t.Run(name, func(t *testing.T) {
			if s.Long && !long {
				t.Skip("long: make model")
			}
			if !first && !long {
				testserver.OnlyLong(t)
			}
			if !long {
				t.Parallel() // a long one takes the memory that there is
			}
			r, err := checker.Run(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s.pml %s: %d states, depth %d, %d MB, complete %t, found %q, %s", s.Model, s.Define, r.States, r.Depth, r.Memory, r.Complete, r.Found, r.Took.Round(10*time.Millisecond))
			if err := s.Judge(r); err != nil {
				t.Error(err)
			}
		})
	}
}

// A search that was cut off is no result: neither by the depth nor by the memory. Of a
// protocol that is whole it is a failure, whatever it did not find.
func TestIncomplete(t *testing.T) {
	spin, cc, quick := testserver.Spin(t)
	for _, c := range []struct {
		model         string
		memory, depth int
	}{
		{"lease", 80, depth},
		{"segment", 1000, 30},
	} {
		checker := model.Checker{Spin: spin, CC: cc, QuickCC: quick, Dir: "../../docs/model", Memory: c.memory, Depth: c.depth}
		s := model.Search{Model: c.model, Define: "PUTS=4"}
		r, err := checker.Run(t.Context(), s)
		if err != nil || r.Complete || r.Found != "" || r.States == 0 || s.Judge(r) == nil {
			t.Errorf("%+v: %+v, %v, which is right: %t", c, r, err, s.Judge(r) == nil)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		finds    string
		found    string
		complete bool
		right    bool
	}{
		{"", "", true, true},
		{"", "", false, false},
		{"", "!(lost)", false, false},
		{"", "!(lost)", true, false},
		{"lost", "!(lost)", false, true},
		{"lost", "!(owners)", false, false},
		{"lost", "", true, false},
		{"lost", "", false, false},
	} {
		s := model.Search{Finds: c.finds}
		if err := s.Judge(model.Result{Found: c.found, Complete: c.complete}); (err == nil) != c.right {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
