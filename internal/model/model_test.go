package model_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/model"
	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// searches are all that is searched. First come the protocols as they are, in which
// nothing may be found, then each without one of its rules.
var searches = []model.Search{
	{Model: "lease", Name: "as it is", Define: "PUTS=3"},
	{Model: "lease", Name: "with a grant file", Define: "PUTS=3 FILE"},
	{Model: "lease", Name: "an operator takes the worker away", Define: "PUTS=3 OPERATOR"},
	{Model: "lease", Name: "a restored store", Define: "PUTS=2 RESTORE"},
	{Model: "segment", Name: "as it is", Define: "PUTS=4"},
	{Model: "lossy", Name: "as it is", Define: "TIME=5"},
	{Model: "move", Name: "two movers", Define: "ATTEMPTS=2 WRITES=1 IDS=1"},
	{Model: "move", Name: "the source fails", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=0"},
	{Model: "move", Name: "the target fails", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=1"},

	{Model: "lease", Name: "as it is, 4 Puts", Define: "PUTS=4", Long: true},
	{Model: "lease", Name: "with a grant file, 3 processes", Define: "PUTS=3 PROCESSES=3 FILE", Long: true},
	{Model: "lease", Name: "an operator, 4 Puts", Define: "PUTS=4 OPERATOR", Long: true},
	{Model: "lease", Name: "a restored store, 3 Puts", Define: "PUTS=3 RESTORE", Long: true},
	{Model: "segment", Name: "5 Puts", Define: "PUTS=5", Long: true},
	{Model: "lossy", Name: "4 Puts", Define: "PUTS=4 TIME=4", Long: true},
	{Model: "lossy", Name: "W is 2", Define: "TIME=7 W=2", Long: true},
	{Model: "lossy", Name: "clocks are off by 1", Define: "SKEW=1", Long: true},
	{Model: "move", Name: "two movers, there, back and taken over", Define: "ATTEMPTS=3 WRITES=1 IDS=2", Long: true},
	{Model: "move", Name: "the source fails, three attempts", Define: "ATTEMPTS=3 WRITES=1 IDS=1 MOVERS=1 FAIL=0", Long: true},
	{Model: "move", Name: "two movers, the source fails", Define: "ATTEMPTS=2 WRITES=1 IDS=1 FAIL=0", Long: true},
	{Model: "move", Name: "two movers, the target fails", Define: "ATTEMPTS=2 WRITES=1 IDS=1 FAIL=1", Long: true},

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
	{Model: "lease", Define: "PROCESSES=3 FILE MUT_STALEFILE", Finds: "repeat"},
	{Model: "lease", Define: "PUTS=3 FILE MUT_NOLOCK", Finds: "repeat"},
	{Model: "lease", Define: "OPERATOR MUT_OPERATOR", Finds: "repeat"},

	{Model: "segment", Define: "MUT_BLIND", Finds: "repeat"},
	{Model: "segment", Define: "MUT_VALUE", Finds: "repeat"},
	{Model: "segment", Define: "MUT_OPENBACK", Finds: "repeat"},
	{Model: "segment", Define: "MUT_BLINDBACK", Finds: "repeat"},
	{Model: "segment", Define: "MUT_READBACK", Finds: "repeat"},
	{Model: "segment", Define: "MUT_LOSSY", Finds: "repeat"},

	{Model: "lossy", Define: "W=2 MUT_SHORT", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=5 TTL=2 MUT_EARLY", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=4 MUT_LATE", Finds: "repeat"},
	{Model: "lossy", Define: "PUTS=4 TIME=3 MUT_EAGER", Finds: "repeat"},

	{Model: "move", Define: "ATTEMPTS=2 MUT_TERM", Finds: "stuck"},
	{Model: "move", Define: "ATTEMPTS=3 WRITES=1 MUT_ANYMARK", Finds: "owners"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=2 MOVERS=1 MUT_NOWORD", Finds: "repeated"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 MUT_BATCH", Finds: "stuck"},
	{Model: "move", Define: "ATTEMPTS=1 WRITES=1 IDS=2 MOVERS=1 MUT_FLOOR", Finds: "repeated"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=0 MUT_IDENTITY", Finds: "owners"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=0 MUT_REOPENLOOK", Finds: "owners"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=0 MUT_COPYOFCOPY", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=1 FAIL=0 MUT_SUBSCRIBE", Finds: "lost", Long: true},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=0 MUT_REVOKE", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=1 MUT_OLDCOPY", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=2 WRITES=1 IDS=1 MOVERS=1 FAIL=1 MUT_BYWORD", Finds: "lost"},
	{Model: "move", Define: "ATTEMPTS=3 WRITES=1 IDS=1 MOVERS=1 FAIL=0 MUT_LATER", Finds: "lost"},
}

// TestModels runs the short searches, and with FIRN_MODELS=long all.
func TestModels(t *testing.T) {
	spin, cc := testserver.Spin(t)
	long := os.Getenv("FIRN_MODELS") == "long"
	checker := model.Checker{Spin: spin, CC: cc, Dir: "../../docs/model", Memory: 1000}
	if long {
		checker.Memory = 8000
	}
	for _, s := range searches {
		name := s.Model + " " + s.Name
		if s.Finds != "" {
			name = s.Model + " " + s.Define
		}
		t.Run(name, func(t *testing.T) {
			if s.Long && !long {
				t.Skip("long: make model")
			}
			if !long {
				t.Parallel() // a long one takes the memory that there is
			}
			r, err := checker.Run(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s.pml %s: %d states, depth %d, complete %t, found %q, %s", s.Model, s.Define, r.States, r.Depth, r.Complete, r.Found, r.Took.Round(10*time.Millisecond))
			switch {
			case s.Finds != "" && !strings.Contains(r.Found, s.Finds):
				t.Errorf("found %q, want %q: the rule is not needed, or the model does not see it\n%s", r.Found, s.Finds, r.Story)
			case s.Finds == "" && r.Found != "":
				t.Errorf("found %q:\n%s", r.Found, r.Story)
			case s.Finds == "" && !r.Complete:
				t.Errorf("not all states were searched")
			}
		})
	}
}

// A search that was cut off is no result: neither by the depth nor by the memory.
func TestIncomplete(t *testing.T) {
	spin, cc := testserver.Spin(t)
	checker := model.Checker{Spin: spin, CC: cc, Dir: "../../docs/model", Memory: 80}
	r, err := checker.Run(t.Context(), model.Search{Model: "lease", Define: "PUTS=4"})
	if err != nil || r.Complete || r.States == 0 {
		t.Errorf("%+v, %v, with 80 MB", r, err)
	}
}
