package config

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
)

func TestKnobValues(t *testing.T) {
	for _, tt := range []struct {
		knob, text string
		want       lease.Options
	}{
		{"layout", "js53", lease.Options{Layout: firn.JS53()}},
		{"worker", "recycle", lease.Options{}},
		{"worker", "fresh", lease.Options{Choice: lease.Fresh()}},
		{"worker", "0", lease.Options{Choice: lease.Only(0)}},
		{"worker", "7", lease.Options{Choice: lease.Only(7)}},
		{"worker", "hostname", lease.Options{Choice: lease.Prefer(0)}},
		{"lanes", "4", lease.Options{Lanes: 4}},
		{"renew", "1m", lease.Options{Renew: time.Minute}},
		{"ttl", "1m30s", lease.Options{TTL: 90 * time.Second}},
		{"outage", "1h", lease.Options{Outage: time.Hour}},
		{"max-ahead", "1s", lease.Options{MaxAhead: time.Second}},
		{"max-ahead", "0", lease.Options{MaxAhead: -1}},
		{"wait", "0s", lease.Options{Wait: 1}},
		{"wait", "1m", lease.Options{Wait: time.Minute}},
		{"grant-file", "/run/grant", lease.Options{GrantFile: "/run/grant"}},
	} {
		var o LeaseOptions
		err := KeyNamed(LeaseKeys, tt.knob).Set(&o, tt.text)
		if err != nil || !reflect.DeepEqual(o.Options, tt.want) {
			t.Errorf("%s %s: %+v, %v", tt.knob, tt.text, o.Options, err)
		}
	}
	for text, want := range map[string]term.Range{"1024": {First: 0, Last: 1023}, "512-1023": {First: 512, Last: 1023}, "7-7": {First: 7, Last: 7}} {
		var o LeaseOptions
		if err := SetWorkers(&o, text); err != nil || o.Workers != want || !o.Ranged {
			t.Errorf("workers %s: %+v, %v", text, o.Workers, err)
		}
	}
	for knob, texts := range map[string][]string{
		"layout":    {"", "frn"},
		"workers":   {"", "0", "-1", "1-", "-", "5-4", "0x10", "1_000", "1-2-3", "9223372036854775808", "many"},
		"worker":    {"", "-1", "Fresh", "1.5"},
		"lanes":     {"", "0", "-1", "9999999999"},
		"renew":     {"", "0", "10", "-1s", "1 s", "soon"},
		"ttl":       {"0s"},
		"outage":    {"0"},
		"max-ahead": {"-1ms", "10"},
		"wait":      {"-1s", "5"},
	} {
		for _, text := range texts {
			if err := KeyNamed(LeaseKeys, knob).Set(new(LeaseOptions), text); err == nil {
				t.Errorf("%s %q: no error", knob, text)
			}
		}
	}
}

// What is said to be the default is what a lease takes.
func TestKnobDefaults(t *testing.T) {
	for _, k := range LeaseKeys {
		switch k.Name {
		case "layout", "workers", "grant-file": // said in words
			continue
		}
		text, _, _ := strings.Cut(k.Standard, ",")
		var o LeaseOptions
		if err := k.Set(&o, text); err != nil {
			t.Errorf("%s: its default: %v", k.Name, err)
		}
	}
	var o LeaseOptions
	if err := errors.Join(KeyNamed(LeaseKeys, "renew").Set(&o, "15s"), KeyNamed(LeaseKeys, "ttl").Set(&o, KeyNamed(LeaseKeys, "ttl").Standard)); err != nil {
		t.Fatal(err)
	}
	// 30 s are the least that goes with 15 s; more than that is refused.
	if err := o.Faults(); err != nil {
		t.Error(err)
	}
	o.TTL, o.Renew = 0, 15*time.Second
	if err := o.Faults(); err != nil {
		t.Error(err)
	}
	o.Renew++
	if err := o.Faults(); err == nil {
		t.Error("ttl has another default")
	}
}

func TestConfigPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"pools:\n  a: {layout: 'frn'}":            "x:2:16: pools.a.layout: there is no such preset; is it firn?",
		"pools:\n  a: {layout: frn}":              "x:2:15: pools.a.layout: there is no such preset; is it firn?",
		"pools:\n  a: &p {ttl: 1x}\n  b: *p":      "x:2:15: pools.a.ttl: ",
		"pools: {a: {ttl: &t 1x}, b: {wait: *t}}": "x:1:36: pools.b.wait: ",
		"pools: [a]":                            "x:1:8: pools has keys and values, and is not a list",
		"pools: {a: {<<: {}}}":                  `x:1:13: a pool has no key "<<"; there are layout, workers, `,
		"pools: {a/b: {}}":                      `x:1:9: pools.a/b: pool "a/b": a name has no slash`,
		"{":                                     "x:2:1: ",
		"a: *b":                                 "x:1:4: ",
		"store: \xff":                           "x:1:1: ",
		"store: memory:":                        "x:1:14: ",
		"store: 'memory:'":                      "x:1:8: store: memory: forgets with this process",
		"series:\n\ta: {kind: flake}":           "x:2:1: a tab; YAML indents with spaces",
		"store:":                                "x:1:7: store has no value",
		"series: {a: {kind: flake, shard: -1}}": `x:1:34: series.a.shard: "-1" is not a number from 0 on`,
		"series: {a: {kind: sequence, x1: 1, stores: [sqlite:1, 2]}}":                          `x:1:56: series.a.stores[1]: "2": `,
		"pools: {notes: {}}\nseries: {photo: {kind: flake}, note: {kind: flake, pool: notes}}": "x:2:10: series.photo has no pool, and another series names one",
		"series: {a: {kind: sequence, stores: [sqlite:1, sqlite:1]}}":                          "x:1:49: series.a.stores[1] is there twice",
		"series: {a: {kind: sequence, stores: sqlite:1}}":                                      "x:1:38: series.a.stores is a list of URLs, [A, B]",
		"series: {a: {kind: sequence, stores: [sqlite:1]}}":                                    "x:1:38: series.a.stores: a sequence is spread over 2 to 64 stores, not 1",
		"series: {a: {kind: ticket}}":                                                          "x:1:20: series.a: there is no kind ticket: it is a sequence over several stores; in firn.yaml: kind: sequence, stores: [URL, URL]",
		"series: {a: {kind: sequence, stores: [sqlite:1, sqlite:2], order: strict}}":           "x:1:67: series.a: order is for a sequence in one store, and this one has several",
		"series: {a: {first: 1, kind: flake}}":                                                 "x:1:14: first is for series of kind sequence, and this is a flake",
		"series: {a: {first: 1}}":                                                              "x:1:10: series.a has no kind; there are flake, sequence, document",
		"series: {a: {type: sequence}}":                                                        `x:1:14: a series has no key "type"; is it kind?`,
		"series: {a: {Kind: sequence}}":                                                        `x:1:14: a series has no key "Kind"; is it kind?`,
		"series: {a: {kind: sequnce, first: 1}}":                                               `x:1:20: series.a: there is no kind "sequnce"; is it sequence?`,
		"series: {a: {kind: sequence, frist: 1}}":                                              `x:1:30: a sequence has no key "frist"; is it first?`,
		"series: {a: {kind: sequence, start: 1}}":                                              `x:1:30: a series has no key "start": it is first`,
		"series: {a: {kind: sequence, cycle: true}}":                                           `x:1:30: a series has no key "cycle": to begin again would repeat every number`,
		"series: {a: {kind: sequence, first: 0}}":                                              `x:1:37: series.a.first: "0" is not a number from 1 on`,
		"series: {a: {kind: sequence, cache: -5}}":                                             `x:1:37: series.a.cache: "-5" is not a number from 1 on`,
		"series: {a: {kind: sequence, max: 5, first: 7}}":                                      "x:1:35: series.a: max 5 is below first, 7",
		"series: {a: {kind: sequence, order: sorted}}":                                         `x:1:37: series.a.order: "sorted" is neither free nor strict`,
		"series: {a: {kind: sequence, on-lossy-store: yes}}":                                   `x:1:46: series.a.on-lossy-store: "yes": it can only be may-repeat`,
		"series: {a: {kind: document}}":                                                        "x:1:10: series.a has no pattern, such as INV-{yyyyMMdd}-{6}",
		"series: {a: {kind: document, pattern: 'A{0}'}}":                                       `x:1:39: series.a: pattern "A{0}": column 2: a counter has 1 to 18 digits, not 0`,
		"series: {a: {kind: document, pattern: '{yyyy}{6}'}}":                                  "x:1:10: series.a: zone: a date needs a time zone",
		"series: {a: {kind: document, pattern: '{yyyy}{6}', zone: Mars/X}}":                    `x:1:58: series.a: zone "Mars/X": unknown time zone Mars/X`,
		"series: {a: {kind: document, pattern: '{6}', zone: UTC}}":                             "x:1:52: series.a: zone UTC: the pattern {6} has no date",
		"series: {a: {kind: document, pattern: '{6}', pool: main}}":                            "x:1:46: pool is for series of kind flake, and this is a document",
		"series: {a: {kind: document, pattern: 'A{6}', public: base62}}":                       "x:1:55: series.a.public: a public form is of a number, and the texts of A{6} are none; those of a pattern of digits only are, such as {yyyyMMdd}{6}",
		"series: {a: {kind: document, pattern: '{6}', answers: public}}":                       "x:1:55: series.a: answers is public, and it has no public form: public is missing",
		"series: {a: {kind: document, pattern: '{yyyy}{16}', zone: UTC, public: hashids}}":     `x:1:39: series.a: pattern "{yyyy}{16}": column 1: texts of digits only are numbers too, and this could pass 9223372036854775807: it has 20 digits, and 18 would do`,
		"series: {a: {kind: document, pattern: '{6}', pattern: '{7}'}}":                        "x:1:46: pattern is there twice, first on line 1",
		"pools: {a: {worker: 600, workers: 0-511}}":                                            "x:1:21: pools.a: worker 600: workers says 0-511",
		"pools: {a: {workers: 0-1023, layout: sid}}":                                           "x:1:22: pools.a: workers 0-1023: layout sid has 0-63",
		"pools: {a: {lanes: 3, workers: 2}}":                                                   "x:1:20: pools.a: lanes 3: workers says 0-1, which are 2",
		"series: {a: {kind: flake, pool: b}}":                                                  `x:1:33: series.a: there is no pool "b"`,
		"pools: {z: {}}\nseries: {a: {kind: flake, pool: b}}":                                  `x:2:33: series.a: there is no pool "b"; there are z`,
	} {
		_, err := Parse("x", []byte(text))
		if err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
}

// A fault has no other for its cause.
func TestConfigFaultsOnce(t *testing.T) {
	for text, want := range map[string]int{
		"series: {a: {kind: sequence, stores: [[x], {y: z}]}}": 2,
		"series: {a: {type: sequence, first: x}}":              1,
	} {
		_, err := Parse("x", []byte(text))
		var wrong *FaultsError
		if !errors.As(err, &wrong) || len(wrong.Faults) != want {
			t.Errorf("%q:\n%v, want %d", text, err, want)
		}
	}
}

func TestConfigPathsOfItsOwn(t *testing.T) {
	c, err := Parse("/etc/firn/firn.yaml", []byte("store: sqlite:ids.db\npools: {a: {grant-file: grant}, b: {grant-file: /run/grant}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(c.store.Text, `\`, "/"); got != "sqlite:/etc/firn/ids.db" {
		t.Error(got)
	}
	if got := strings.ReplaceAll(c.Pools[0].knobs["grant-file"].Text, `\`, "/"); got != "/etc/firn/grant" {
		t.Error(got)
	}
	if got := c.Pool("b").Options.GrantFile; got != "/run/grant" {
		t.Error(got)
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// The files in the documentation are right, and the one that shows every setting
// does, with its default.
func TestDocumentedConfig(t *testing.T) {
	const page = "../docs/reference/firn-yaml.md"
	var blocks [][]string
	for _, path := range []string{"../docs/guides/configuration.md", page} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks = yamlBlock.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Fatalf("%s shows no config", path)
		}
		for _, b := range blocks {
			if _, err := Parse(path, []byte(b[1])); err != nil {
				t.Error(err)
			}
		}
	}
	shown, err := Parse(page, []byte(strings.ReplaceAll(blocks[0][1], "# grant-file:", "grant-file:")))
	if err != nil {
		t.Fatal(err)
	}
	main := shown.Pool(pool.Default)
	for _, k := range LeaseKeys {
		v, ok := main.knobs[k.Name]
		standard, _, _ := strings.Cut(k.Standard, ",")
		switch {
		case !ok:
			t.Errorf("%s is not shown", k.Name)
		case k.Name != "layout" && k.Name != "workers" && k.Name != "grant-file" && v.Text != standard:
			t.Errorf("%s is shown as %s, and is %s", k.Name, v.Text, standard)
		}
	}
	for series, free := range map[string][]string{"orders": {"first", "on-lossy-store"}, "invoice": {"pattern", "zone", "names", "on-lossy-store"}} {
		one, err := shown.SeriesNamed(series)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range CounterKeys {
			v, ok := one.keys[k.Name]
			switch kind := one.Kind.Text; {
			case !k.Of(kind):
			case !ok && !slices.Contains(free, k.Name):
				t.Errorf("series.%s.%s is not shown", series, k.Name)
			case ok && !slices.Contains(free, k.Name) && v.Text != standardOf(&k, kind):
				t.Errorf("series.%s.%s is shown as %s, and is %s", series, k.Name, v.Text, standardOf(&k, kind))
			}
		}
	}
	if got := main.Options.Workers.Count(); got != firn.Default().Workers() {
		t.Errorf("workers are shown as %d", got)
	}
}

// Whatever a file says, it is read, or its faults have a place in it.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{
		"store: sqlite:ids.db\npools: {main: {layout: firn, workers: 1-5}}\nseries: {a: {kind: flake, pool: main}}",
		"a: &x {b: *x}", "a: 1\n---\nb: 2", "- a", "pools: {a: &p {ttl: 1x}, b: *p}", "? [a]: b", "a: !!binary x",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("x", data)
		var wrong *FaultsError
		switch {
		case err == nil && c == nil:
			t.Error("neither a config nor an error")
		case err != nil && (!errors.As(err, &wrong) || len(wrong.Faults) == 0):
			t.Errorf("error %v", err)
		case err != nil:
			lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + strings.Count(string(data), "\u0085") +
				strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029")
			for _, f := range wrong.Faults {
				if f.Line < 1 || f.Column < 1 || f.Line > lines+2 || f.Text == "" {
					t.Errorf("fault %+v", f)
				}
			}
		}
	})
}
