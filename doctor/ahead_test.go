package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/memory"
)

// The records of a process whose clock was ahead stay when all clocks are right again. Doctor does not
// only say to set a clock and to run it again, which would end in the same warning until that day.
func TestRecordsOfAClockThatWasAhead(t *testing.T) {
	s := memory.New()
	if _, err := pool.Create(t.Context(), s, "web", &pool.Options{Workers: 3}); err != nil {
		t.Fatal(err)
	}
	l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "web", Choice: lease.Only(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	tomorrow := time.Now().UTC().Format("2006-01-02T15")
	found, _ := examined(t, s, func() time.Time { return time.Now().AddDate(0, 0, -1) })
	wantFinding(t, found, "clock", Warning, "record pool/web/worker/1 was written at "+tomorrow)
	for _, want := range []string{"if both are right by now, the record may stay, and this warning ends at that time", "worker 1 of pool web is out of use until " + tomorrow} {
		if do := found["clock"].Do; !strings.Contains(do, want) {
			t.Errorf("%q does not say %q", do, want)
		}
	}
}
