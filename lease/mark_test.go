package lease

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store/memory"
)

// A store that lets its callers wait does not hold up the mark of a grant file:
// ids go on to the horizon.
func TestMarkIsRaisedWhileTheStoreHangs(t *testing.T) {
	if bootID() == "" {
		t.Skip("this system has no boot id, so a grant file is void")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		o.GrantFile, o.Outage = filepath.Join(t.TempDir(), "grant"), time.Minute
		l := open(t, s, o)
		defer closed(t, l)
		time.Sleep(5 * time.Minute) // the ramp is over
		s.hang.Store(true)
		for end := time.Now().Add(45 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			begun := time.Now()
			id, err := l.Next(t.Context())
			if d := time.Since(begun); err != nil || d > 100*time.Millisecond {
				t.Fatalf("%s before the horizon: id %d, %v after %s", time.Until(l.State().EndsAt), id, err, d)
			}
		}
		s.hang.Store(false)
	})
}
