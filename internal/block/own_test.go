package block_test

import (
	"testing"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/store"
)

// A span in doubt is granted only by a record under its key that bears its version.
func TestOwnSettle(t *testing.T) {
	span := block.Span{Key: "a", Above: 10, To: 20}
	for name, tt := range map[string]struct {
		own     block.Own
		key     string
		version string
		done    bool
	}{
		"its version":                  {block.Own{}.Unknown(span, "mine"), "a", "mine", true},
		"another's version":            {block.Own{}.Unknown(span, "mine"), "a", "other", false},
		"its version, of another date": {block.Own{}.Unknown(span, "mine"), "b", "mine", false},
		"nothing was sent":             {block.Own{}.Unknown(span, ""), "a", "", false},
		"nothing in doubt":             {block.Own{}, "a", "", false},
	} {
		own, got, done := tt.own.Settle(tt.key, store.Version(tt.version))
		if done != tt.done || done && got != span || own.InDoubt() {
			t.Errorf("%s: settled %v, as %+v; in doubt after it: %v", name, done, got, own.InDoubt())
		}
		if _, _, again := own.Settle(tt.key, store.Version(tt.version)); again {
			t.Errorf("%s: it is granted twice", name)
		}
	}
}

// What is handed back is the end of the unbroken run of own spans, above what was used, and
// only by whoever wrote last.
func TestOwnHandBack(t *testing.T) {
	span := func(key string, above, to int64) block.Span { return block.Span{Key: key, Above: above, To: to} }
	one := block.Own{}.Granted(span("a", 10, 20), "1")
	for name, tt := range map[string]struct {
		own     block.Own
		version string
		used    int64
		to      int64
		ok      bool
	}{
		"nothing was granted":           {block.Own{}, "", 0, 0, false},
		"some is used":                  {one, "1", 15, 15, true},
		"all is used":                   {one, "1", 20, 20, false},
		"none is used":                  {one, "1", -5, 10, true},
		"somebody has written since":    {one, "2", 15, 15, false},
		"two spans, one after another":  {one.Granted(span("a", 20, 30), "2"), "2", 12, 12, true},
		"two spans, another's between":  {one.Granted(span("a", 25, 30), "2"), "2", 12, 25, true},
		"the second is of another date": {one.Granted(span("b", 20, 30), "2"), "2", 12, 20, true},
	} {
		to, ok := tt.own.HandBack(store.Version(tt.version), tt.used)
		if ok != tt.ok || ok && to != tt.to {
			t.Errorf("%s: handed back down to %d: %v; want %d: %v", name, to, ok, tt.to, tt.ok)
		}
	}
}
