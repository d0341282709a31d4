package testserver

import "testing"

// What is not known to have ended is nobody else's to end.
func TestAliveUnknown(t *testing.T) {
	gone := []identity{{PID: 1 << 30, Start: "never"}}
	if got := alive(gone); len(got) != 0 {
		t.Errorf("%v run", got)
	}
	t.Setenv("PATH", t.TempDir()) // there is no ps
	if got := alive(gone); len(got) != 1 {
		t.Error("nothing is known, and yet it has ended")
	}
}
