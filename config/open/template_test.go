package open_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
)

// Names of a template are series of their own to a program.
func TestTemplate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.yaml")
	const text = "store: sqlite:ids.db\nseries: { \"bill:*\": { kind: document, pattern: \"{1+}\" } }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	app := open.Config(cfg, nil)
	defer app.Close()
	for _, want := range []struct {
		name string
		id   int64
	}{{"bill:a", 1}, {"bill:b", 1}, {"bill:a", 2}} {
		src, err := app.Source(t.Context(), want.name)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := src.Next(t.Context()); err != nil || int64(id) != want.id {
			t.Errorf("%s: %d, %v; want %d", want.name, id, err, want.id)
		}
	}
	s, err := app.Document(t.Context(), "bill:b")
	if err != nil {
		t.Fatal(err)
	}
	if one, err := s.Next(t.Context()); err != nil || one.Text != "2" {
		t.Errorf("%+v, %v", one, err)
	}
}
