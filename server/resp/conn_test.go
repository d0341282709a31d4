package resp

import "testing"

// What a lost connection has left unanswered is not answered to the next one.
func TestRelease(t *testing.T) {
	w := &work{}
	w.out = append(w.out, "+OK\r\n"...)
	w.group.asked = append(w.group.asked, asked{values: 3})
	w.group.values = 3
	w.release()
	if len(w.out) != 0 || len(w.group.asked) != 0 || w.group.values != 0 {
		t.Errorf("%+v", w)
	}
}
