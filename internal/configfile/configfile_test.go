package configfile

import (
	"slices"
	"strings"
	"testing"
)

// What is overlooked here is a program that takes another store than the command.
func TestNamesStore(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                     false,
		"series: { photo: { kind: flake } }\n": false,
		"# store: sqlite:ids.db\n":             false,
		"  # the store is the default file\n":  false,
		"series:\n  t: { kind: sequence, stores: [sqlite:/a.db, sqlite:/b.db] }\n": false,
		"pools: { a: { outage: 5m } } # while the store is away\n":                 false,
		"series: { store: { kind: flake } }":                                       false,
		"series:\n  store: { kind: flake }\n":                                      false,
		"# all\n\n---\nseries: { store: {} }\n":                                    true, // refused without need
		"---\n# names\nseries:\n  store:\n    kind: flake\n":                       false,
		"pools:\n  store: {}\n\nseries: {\n  store: { kind: flake },\n}\n":         false,
		"series:\n  store: { kind: flake }\nstore: sqlite:ids.db\n":                true,
		"series:\n  store: {}\n'store': sqlite:ids.db\n":                           true,
		"series:\n  store: {}\n? store\n: sqlite:ids.db\n":                         true,
		"series:\n  store: {}\n!!str store: sqlite:ids.db\n":                       true,
		"series:\n  store: {}\n---\n  store: sqlite:ids.db\n":                      true,
		"  series: {}\n  store: sqlite:ids.db\n":                                   true, // the root is indented
		"{\n  series: {},\n  store: sqlite:ids.db\n}\n":                            true,
		"series: {}\rstore: sqlite:ids.db\n":                                       true,
		"series: {} # a\u2028store: sqlite:ids.db\n":                               true,
		"# a\rstore: sqlite:ids.db\n":                                              true,
		"x: &a { store: sqlite:ids.db }\n<<: *a\n":                                 true,
		"series:\n\tstore: {}\n":                                                   true, // a tab is no indentation
		"pools: { 'a #b': {} } \nstore : sqlite:ids.db\n":                          true,
		"{ file: 'a #b', store: sqlite:ids.db }":                                   true,
		"store: sqlite:ids.db\n":                                                   true,
		"pools: { a: {} }\nstore: sqlite:ids.db":                                   true,
		"{ pools: { a: {} }, store: 'sqlite:ids.db' }":                             true,
		"{\r\n  \"store\"\r\n    : sqlite:ids.db }\r\n":                            true,
		"? store\n: sqlite:ids.db\n":                                               true,
		"--- !!map\n'store': sqlite:ids.db # the store\n":                          true,
		"\ufeffstore: sqlite:ids.db\n":                                             true,
		"\xff\xfes\x00t\x00o\x00r\x00e\x00:\x00 \x00x\x00":                         true,
	} {
		if got := NamesStore([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		goos, home, env string // XDG_CONFIG_HOME or AppData
		want            []string
	}{
		{"linux", "/home/a", "", []string{"firn.yaml", "/home/a/.config/firn/firn.yaml", "/etc/firn/firn.yaml"}},
		{"linux", "/home/a", "/cfg", []string{"firn.yaml", "/cfg/firn/firn.yaml", "/etc/firn/firn.yaml"}},
		{"linux", "/home/a", "cfg", []string{"firn.yaml", "/home/a/.config/firn/firn.yaml", "/etc/firn/firn.yaml"}},
		{"linux", "", "", []string{"firn.yaml", "/etc/firn/firn.yaml"}},
		{"darwin", "/Users/a", "", []string{"firn.yaml", "/Users/a/.config/firn/firn.yaml", "/etc/firn/firn.yaml"}},
		{"windows", `/Users/a`, "Roaming", []string{"firn.yaml", "Roaming/firn/firn.yaml"}},
	} {
		got := Paths(tt.goos, func(string) string { return tt.env }, tt.home)
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], `\`, "/")
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s, home %q, env %q: %q", tt.goos, tt.home, tt.env, got)
		}
	}
}

// Places are those of what is wrong, wherever the value came from.
