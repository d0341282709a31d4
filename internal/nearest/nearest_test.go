package nearest

import "testing"

func TestName(t *testing.T) {
	names := []string{"firn", "twitter", "instagram", "js53", "x"}
	for word, want := range map[string]string{
		"frn": "firn", "twiter": "twitter", "instgram": "instagram", "firn": "firn", "": "", "y": "", "leaf": "", "fi": "firn", "js": "js53", "fxrm": "", "intsagrm": "instagram",
		"tiwtter": "twitter", "f": "",
	} {
		if got := Name(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Name("aab", []string{"aac", "aad"}); got != "aac" {
		t.Errorf("of two equally near: %q", got)
	}
}

func TestMisspelled(t *testing.T) {
	names := []string{"orders", "user:1", "cat", "ab", "invoice-2026"}
	for word, want := range map[string]string{
		"ordrs": "orders", "ordres": "orders", "order": "orders", "Orders": "orders", "photo": "", "user:2": "", "orders2": "", "uzer:1": "user:1",
		"cat": "", "car": "cat", "ac": "", "border": "orders", "invoice-2027": "", "invoices-2026": "invoice-2026",
		"ord": "", "odersr": "orders", "onvioce-2026": "invoice-2026", "rodres": "orders",
	} {
		if got := Misspelled(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"twiter", "twitter", 1}, {"ab", "ba", 1}, {"frist", "first", 1}, {"abc", "bca", 2}, {"ca", "abc", 3}} {
		if got := distance(tt.a, tt.b); got != tt.want || distance(tt.b, tt.a) != got {
			t.Errorf("%q, %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
