package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store/memory"
)

// template returns a series that is the template bill:*, with at most so many names.
func template(t *testing.T, names int) *server.Series {
	t.Helper()
	st := memory.New()
	if _, err := document.Create(t.Context(), st, "bill:*", &document.Options{Pattern: "{1+}", Names: names}); err != nil {
		t.Fatal(err)
	}
	p, err := document.ParsePattern("{1+}")
	if err != nil {
		t.Fatal(err)
	}
	return server.Texts("bill:*", nil, &server.SeriesOptions{Pattern: p, Names: func(ctx context.Context, name string) (server.TextSource, error) {
		s, err := document.Open(ctx, st, name, &document.Options{Template: "bill:*"})
		if err != nil {
			return nil, err
		}
		return s, nil
	}})
}

func TestTemplate(t *testing.T) {
	s := newServer(t, nil, template(t, 2))
	x := enter(t, s, "")
	for _, tt := range []struct {
		name string
		want int64
	}{{"bill:a", 1}, {"bill:b", 1}, {"bill:a", 2}, {"bill:a", 3}, {"bill:b", 2}} {
		if got := draw(t, x, tt.name, 1); int64(got[0].ID) != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got[0].ID, tt.want)
		}
	}
	var full *document.FullError
	if _, err := x.Next(t.Context(), "bill:c", nil, 1); !errors.As(err, &full) || server.Retry(err) || !strings.Contains(server.Hint(err), "more names") {
		t.Errorf("%v", err)
	}
	if got := draw(t, x, "bill:a", 1); got[0].ID != 4 {
		t.Errorf("after a name that was refused: %d", got[0].ID)
	}
	for _, name := range []string{"bill:", "bill:*", "bill", "order:1", "bill:/"} {
		if got, err := x.Next(t.Context(), name, nil, 1); err == nil {
			t.Errorf("%s gives %v", name, got)
		}
	}
	if got := counted(s); len(got) != 1 || got["bill:*"] != 6 {
		t.Errorf("counted: %v", got)
	}
}

// A right to a name wins, then the longest prefix, then "*".
func TestTemplateRights(t *testing.T) {
	tokens := func(secret string, rights map[string]server.Right) server.Token {
		return server.Token{Name: secret, Hash: server.HashToken(secret), Rights: rights}
	}
	s := newServer(t, &server.Options{Tokens: []server.Token{
		tokens("prefix", map[string]server.Right{"bill:*": server.Issue, "bill:closed": server.Decode, "bill:eu:*": server.Decode}),
		tokens("name", map[string]server.Right{"bill:a": server.Issue}),
		tokens("others", map[string]server.Right{"*": server.Issue, "bill:*": server.Decode}),
		tokens("none", map[string]server.Right{"order:*": server.Issue}),
	}}, template(t, 0))
	for token, want := range map[string]string{"prefix": "bill:a bill:b", "name": "bill:a", "others": "", "none": ""} {
		x, can := enter(t, s, token), []string{}
		for _, name := range []string{"bill:a", "bill:b", "bill:closed", "bill:eu:1"} {
			_, err := x.Next(t.Context(), name, nil, 1)
			if err == nil {
				can = append(can, name)
			} else if !errors.Is(err, server.ErrDenied) {
				t.Errorf("%s, %s: %v", token, name, err)
			}
		}
		if got := strings.Join(can, " "); got != want {
			t.Errorf("%s can draw from %q, want %q", token, got, want)
		}
	}
}

// A name stands for one counter.
func TestTemplateBelongs(t *testing.T) {
	_, err := server.New(nil, template(t, 0), server.Numbers("bill:a", nil, nil))
	if err == nil || !strings.Contains(err.Error(), "bill:a and bill:*") {
		t.Errorf("%v", err)
	}
}

// A name that gave ids because the server knew no template belongs to the template from then on.
func TestTemplateTakesNames(t *testing.T) {
	o, _ := anyName(t)
	s := newServer(t, o)
	x := enter(t, s, "")
	draw(t, x, "bill:a", 1)
	if err := s.Replace(o, template(t, 0)); err != nil {
		t.Fatal(err)
	}
	if got := draw(t, x, "bill:a", 1); got[0].ID != 1 {
		t.Errorf("%d", got[0].ID)
	}
}
