package phrase

import "testing"

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, all, lines string }{
		{"host-1", "host-1", "host-1"},
		{"é 日本", "é 日本", "é 日本"},
		{"a\x1b[31m\ab", `a\x1b[31m\ab`, `a\x1b[31m\ab`},
		{"a\u009bb", `a\u009bb`, `a\u009bb`},
		{"a\n\tb", `a\n\tb`, "a\n\tb"},
	} {
		if got := Printable(c.text); got != c.all {
			t.Errorf("Printable(%q) = %q", c.text, got)
		}
		if got := PrintableLines(c.text); got != c.lines {
			t.Errorf("PrintableLines(%q) = %q", c.text, got)
		}
	}
}
