package move

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/shard/check"
)

// TestSurplusUnknown: of tables that a migration has changed in one copy nobody knows whether rows are missing.
func TestSurplusUnknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		found check.Comparison
		says  string
		do    string
	}{
		{check.Comparison{Second: 2}, "has rows that c lacks, which serves: 2 rows", "write to c what it lacks"},
		{check.Comparison{Unlike: []string{"users"}}, "may have rows that c lacks, which serves: tables whose rows were not compared, as their columns differ (users)", "compare these tables by hand"},
	} {
		err := &SurplusError{Shard: 4, Server: "b", Owner: "c", Found: tt.found.Text(), Old: true}
		if !strings.HasSuffix(err.Error(), tt.says) || !strings.HasPrefix(err.Do(), tt.do) || !strings.HasSuffix(err.Do(), "firn shard finish 4 --drop-rows-of b") {
			t.Errorf("%v\n%s", err, err.Do())
		}
	}
}
