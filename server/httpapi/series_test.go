package httpapi_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/firn-id/firn/server"
)

// Each token sees the series that it has any right to, and no state but the admin's.
func TestWhoSeesSeries(t *testing.T) {
	all := []*server.Series{orders(t, "orders", nil), photo(t)}
	guarded := handler(t, newServer(t, &server.Options{Tokens: tokens}, all...), nil)
	unguarded := handler(t, newServer(t, nil, all...), nil)
	type seen struct {
		Name  string
		Kind  string
		State *struct {
			Durable *bool
			Lease   *struct {
				Pool    string
				Workers []int64
			}
			Counter *struct{ Last string }
		}
	}
	for _, tt := range []struct {
		name    string
		headers []string
		want    []string
		state   bool
	}{
		{"admin", bearer(admin), []string{"orders", "photo"}, true},
		{"issuer", bearer(issuer), []string{"photo"}, false},
		{"reader", bearer(reader), []string{"orders", "photo"}, false},
		{"anybody", nil, []string{"orders", "photo"}, true},
	} {
		h := guarded
		if tt.headers == nil {
			h = unguarded
		}
		got := call(h, "GET", "/v1/series", tt.headers...)
		var list struct{ Series []seen }
		if err := json.Unmarshal(got.body, &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range list.Series {
			names = append(names, s.Name)
			if (s.State != nil) != tt.state {
				t.Errorf("%s: %s has state %+v", tt.name, s.Name, s.State)
			}
			if !tt.state {
				continue
			}
			if s.Kind == "flake" && (s.State.Lease.Pool != "default" || len(s.State.Lease.Workers) != 1 || !*s.State.Durable) {
				t.Errorf("%s: %+v", tt.name, s.State)
			}
			if s.Kind == "sequence" && s.State.Counter.Last != "9223372036854775807" {
				t.Errorf("%s: %+v", tt.name, s.State)
			}
		}
		if !slices.Equal(names, tt.want) {
			t.Errorf("%s sees %v, want %v", tt.name, names, tt.want)
		}
		var one seen
		if err := json.Unmarshal(call(h, "GET", "/v1/series/photo", tt.headers...).body, &one); err != nil || one.Name != "photo" || (one.State != nil) != tt.state {
			t.Errorf("%s: %+v, %v", tt.name, one, err)
		}
	}
}

// Asking what a series is makes none.
func TestSeriesAreNotMadeByLooking(t *testing.T) {
	s := newServer(t, &server.Options{Others: unknown(t)})
	h := handler(t, s, nil)
	if got := call(h, "GET", "/v1/series/photo"); got.status != 404 {
		t.Error(got)
	}
	for _, one := range s.All() {
		t.Errorf("there is a series %s", one.Name())
	}
	if got := call(h, "POST", "/v1/series/photo/next"); got.status != 200 {
		t.Fatal(got)
	}
	if got := call(h, "GET", "/v1/series/photo"); got.status != 200 {
		t.Error(got)
	}
}
