package httpapi_test

import (
	"testing"

	"github.com/firn-id/firn/server"
)

// What each token has asked for is counted by its name, over a Replace too, and so are tokens that the
// server does not have; listeners and the last reload say what the program says of them.
func TestProcessMetrics(t *testing.T) {
	shop := server.Token{Name: "shop", Hash: server.HashToken("s"), Rights: map[string]server.Right{"*": server.Admin | server.Issue}}
	other := server.Token{Name: "other", Hash: server.HashToken("o"), Rights: map[string]server.Right{"*": server.Issue}}
	o := &server.Options{Tokens: []server.Token{shop, other}}
	series := photo(t)
	s := newServer(t, o, series)
	h := handler(t, s, everything)
	for range 2 {
		call(h, "POST", "/v1/series/photo/next?n=5", "Authorization", "Bearer s")
		call(h, "POST", "/v1/series/photo/next", "Authorization", "Bearer unknown")
		if err := s.Replace(o, series); err != nil {
			t.Fatal(err)
		}
	}
	all := scrape(t, h, "Authorization", "Bearer s")
	for _, tt := range []struct {
		name, label string
		want        float64
	}{
		{"firn_token_requests_total", "shop", 2},
		{"firn_token_values_total", "shop", 10},
		{"firn_token_values_total", "other", 0},
		{"firn_unknown_tokens_total", "", 2},
		{"firn_connections", "resp", 3},
		{"firn_connections_accepted_total", "resp", 9},
		{"firn_connections_refused_total", "resp", 2},
		{"firn_connections_dropped_total", "resp", 1},
		{"firn_connections", "http", 0},
		{"firn_last_reload_successful", "", 0},
		{"firn_last_reload_timestamp_seconds", "", 1_800_000_000},
	} {
		if got := value(t, all, tt.name, tt.label); got != tt.want {
			t.Errorf("%s of %q: %v, want %v", tt.name, tt.label, got, tt.want)
		}
	}
}
