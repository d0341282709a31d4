package firn

import (
	"encoding"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

var (
	_ encoding.TextMarshaler   = Layout{}
	_ encoding.TextUnmarshaler = (*Layout)(nil)
)

func TestParseLayout(t *testing.T) {
	const canonical = "time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z"
	for text, want := range map[string]string{
		"firn":    canonical,
		canonical: canonical,
		"time:41,worker:10,seq:12;epoch=2025-01-01T00:00:00Z":                    canonical,
		"time:41@1000us,worker:10,seq:12;epoch=2025-01-01T07:00:00+07:00":        canonical,
		"time:41@1ms,worker:10,seq:12;epoch=2024-12-31T16:00:00.000000000-08:00": canonical,
		"leaf;epoch=2025-01-01T00:00:00Z":                                        canonical,
		"leaf;epoch=1735689600000":                                               canonical,
		"time:41,worker:10,seq:12;epoch=1735689600000":                           canonical,
		"twitter;epoch=2020-01-01T00:00:00.12Z":                                  "time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2020-01-01T00:00:00.12Z",

		// In any order, down to one bit, up to 63 and 64.
		"seq:12,shard:10,time:41@1ms;epoch=2025-01-01T00:00:00Z":                                    "seq:12,shard:10,time:41@1ms;epoch=2025-01-01T00:00:00Z",
		"time:1@1ms;epoch=2025-01-01T00:00:00Z":                                                     "time:1@1ms;epoch=2025-01-01T00:00:00Z",
		"time:63@1us;epoch=2025-01-01T00:00:00Z":                                                    "time:63@1us;epoch=2025-01-01T00:00:00Z",
		"time:2@1ms,worker:62;epoch=2025-01-01T00:00:00Z":                                           "time:2@1ms,worker:62;epoch=2025-01-01T00:00:00Z",
		"a:1,b_1:1,c2:1,time:30@1s,shard:1,seq:1,abcdefghijklmnop:1,g:1;epoch=1970-01-01T00:00:00Z": "a:1,b_1:1,c2:1,time:30@1s,shard:1,seq:1,abcdefghijklmnop:1,g:1;epoch=1970-01-01T00:00:00Z",

		// The first epoch and the last.
		"time:41;epoch=1970-01-01T00:00:00Z":           "time:41@1ms;epoch=1970-01-01T00:00:00Z",
		"time:41;epoch=2262-04-11T23:47:16.854775807Z": "time:41@1ms;epoch=2262-04-11T23:47:16.854775807Z",

		// Ticks in the longest unit that divides them.
		"time:9@1us;epoch=2025-01-01T00:00:00Z":          "time:9@1us;epoch=2025-01-01T00:00:00Z",
		"time:9@1500us;epoch=2025-01-01T00:00:00Z":       "time:9@1500us;epoch=2025-01-01T00:00:00Z",
		"time:9@10ms;epoch=2025-01-01T00:00:00Z":         "time:9@10ms;epoch=2025-01-01T00:00:00Z",
		"time:9@1500ms;epoch=2025-01-01T00:00:00Z":       "time:9@1500ms;epoch=2025-01-01T00:00:00Z",
		"time:9@1000ms;epoch=2025-01-01T00:00:00Z":       "time:9@1s;epoch=2025-01-01T00:00:00Z",
		"time:9@90s;epoch=2025-01-01T00:00:00Z":          "time:9@90s;epoch=2025-01-01T00:00:00Z",
		"time:9@120s;epoch=2025-01-01T00:00:00Z":         "time:9@2m;epoch=2025-01-01T00:00:00Z",
		"time:9@60m;epoch=2025-01-01T00:00:00Z":          "time:9@1h;epoch=2025-01-01T00:00:00Z",
		"time:9@3600000000us;epoch=2025-01-01T00:00:00Z": "time:9@1h;epoch=2025-01-01T00:00:00Z",
	} {
		l, err := ParseLayout(text)
		if err != nil || l.String() != want {
			t.Errorf("%s:\n%s, %v, want\n%s", text, l, err, want)
			continue
		}
		if again, err := ParseLayout(want); err != nil || again != l {
			t.Errorf("%s: %s, %v", want, again, err)
		}
	}
}

func TestParseLayoutErrors(t *testing.T) {
	const epoch = ";epoch=2025-01-01T00:00:00Z"
	const tick = `a tick is a whole number of us, ms, s, m or h, such as 10ms, not `
	for _, c := range []struct {
		text   string
		column int
		reason string
	}{
		{"", 1, "this is neither a preset nor fields such as time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z"},
		{"twiter", 1, "there is no such preset; is it twitter?"},
		{"Twitter", 1, "there is no such preset; is it twitter?"},
		{"SONY-FLAKE", 1, "there is no such preset; is it sonyflake?"},
		{"sid_single", 1, "there is no such preset; is it sid-single?"},
		{"twiter;epoch=2020-01-01T00:00:00Z", 1, "there is no such preset; is it twitter?"},
		{"granite", 1, "this is neither a preset nor fields such as time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z"},

		// Fields and names.
		{"worker:10,seq:12" + epoch, 1, "there is no time field, such as time:41@1ms"},
		{"time:41,,seq:12" + epoch, 9, "a field is missing"},
		{"time:41," + epoch, 9, "a field is missing"},
		{":41" + epoch, 1, "a field is missing"},
		{"time:20,seq:1,time:20" + epoch, 15, "field time is there twice"},
		{"time:41,worker:5,worker:5" + epoch, 18, "field worker is there twice"},
		{"time:41,Worker:5" + epoch, 9, "a name is of a-z, 0-9 and _ and begins with a letter"},
		{"time:41, worker:5" + epoch, 9, "a name is of a-z, 0-9 and _ and begins with a letter"},
		{"time:41,wörker:5" + epoch, 10, "a name is of a-z, 0-9 and _ and begins with a letter"},
		{"time:41,1st:5" + epoch, 9, "a name is of a-z, 0-9 and _ and begins with a letter"},
		{"time:41,_a:5" + epoch, 9, "a name is of a-z, 0-9 and _ and begins with a letter"},
		{"time:41,abcdefghijklmnopq:5" + epoch, 25, "a name has at most 16 bytes, not 17"},
		{"time:41,id:5" + epoch, 9, "id is not a name for a field: decoded ids have it in JSON"},
		{"time:41,layout:5" + epoch, 9, "layout is not a name for a field: decoded ids have it in JSON"},
		{"time:41,unix_ms:5" + epoch, 9, "unix_ms is not a name for a field: decoded ids have it in JSON"},
		{"time:41,sequence:5" + epoch, 9, "the sequence is called seq"},
		{"timestamp:41,seq:5" + epoch, 1, "the timestamp is called time"},
		{"time:30,a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1" + epoch, 37, "a layout has at most 8 fields"},

		// Widths.
		{"time:41,seq" + epoch, 12, "field seq has no width, such as seq:10"},
		{"time:41,seq:" + epoch, 13, `the width of seq is 1 to 63 bits, not ""`},
		{"time:41,seq:0" + epoch, 13, `the width of seq is 1 to 63 bits, not "0"`},
		{"time:41,seq:01" + epoch, 13, `the width of seq is 1 to 63 bits, not "01"`},
		{"time:41,seq:+1" + epoch, 13, `the width of seq is 1 to 63 bits, not "+1"`},
		{"time:41,seq:64" + epoch, 13, `the width of seq is 1 to 63 bits, not "64"`},
		{"time:41,seq:1:2" + epoch, 13, `the width of seq is 1 to 63 bits, not "1:2"`},
		{"time:41,seq:99999999999999999999" + epoch, 13, `the width of seq is 1 to 63 bits, not "99999999999999999999"`},
		{"time:41,worker:12,seq:12" + epoch, 19, "65 bits are 1 too many: there are 64"},
		{"time:41,worker:63,seq:12" + epoch, 9, "116 bits are 52 too many: there are 64"},
		{"worker:11,time:41,seq:12" + epoch, 19, "64 bits are 1 too many: there are 63, or 64 where time comes first"},
		{"time:1,worker:63" + epoch, 1, "the time would be the sign bit alone"},

		// Ticks.
		{"time:41@" + epoch, 9, tick + `""`},
		{"time:41@ms" + epoch, 9, tick + `"ms"`},
		{"time:41@10" + epoch, 9, tick + `"10"`},
		{"time:41@1µs" + epoch, 9, tick + `"1µs"`},
		{"time:41@1ns" + epoch, 9, tick + `"1ns"`},
		{"time:41@1d" + epoch, 9, tick + `"1d"`},
		{"time:41@1MS" + epoch, 9, tick + `"1MS"`},
		{"time:41@1.5ms" + epoch, 9, tick + `"1.5ms"`},
		{"time:41@01ms" + epoch, 9, tick + `"01ms"`},
		{"time:41@-1ms" + epoch, 9, tick + `"-1ms"`},
		{"time:41@0ms" + epoch, 9, tick + `"0ms"`},
		{"time:41@1m30s" + epoch, 9, tick + `"1m30s"`},
		{"time:41@1ms@1ms" + epoch, 9, tick + `"1ms@1ms"`},
		{"time:20@2h" + epoch, 9, "a tick lasts 1us to 1h, not 2h"},
		{"time:20@3600001ms" + epoch, 9, "a tick lasts 1us to 1h, not 3600001ms"},
		{"time:20@18446744073709551615h" + epoch, 9, "a tick lasts 1us to 1h, not 18446744073709551615h"},
		{"time:41,seq:12@1ms" + epoch, 15, "seq has no tick; time has one"},
		{"seq:1,time:62@1ms" + epoch, 7, "the time lasts 146138512 years; the most is 1000000"},
		{"time:34@1h" + epoch, 1, "the time lasts 1959870 years; the most is 1000000"},

		// Epochs and options.
		{"time:41@1ms", 12, "the epoch is missing, such as ;epoch=2025-01-01T00:00:00Z"},
		{"time:41;", 9, `unknown option ""; there is epoch=2025-01-01T00:00:00Z`},
		{"twitter;", 9, `unknown option ""; there is epoch=2025-01-01T00:00:00Z`},
		{"twitter;epoch", 9, `unknown option "epoch"; there is epoch=2025-01-01T00:00:00Z`},
		{"twitter;tick=1ms", 9, `unknown option "tick=1ms"; there is epoch=2025-01-01T00:00:00Z`},
		{"twitter;Epoch=2025-01-01T00:00:00Z", 9, `unknown option "Epoch=2025-01-01T00:00:00Z"; there is epoch=2025-01-01T00:00:00Z`},
		{"twitter" + epoch + ";", 36, `unknown option ""; there is epoch=2025-01-01T00:00:00Z`},
		{"twitter" + epoch + epoch, 36, "the epoch is there twice"},
		{"twitter;epoch=", 15, `an epoch is such as 2025-01-01T00:00:00Z, not ""`},
		{"twitter;epoch=2025-01-01", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01"`},
		{"twitter;epoch=2025-01-01T00:00:00", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:00"`},
		{"twitter;epoch=2025-01-01 00:00:00Z", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01 00:00:00Z"`},
		{"twitter;epoch=2025-01-01T0:00:00Z", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T0:00:00Z"`},
		{"twitter;epoch=2025-01-01T00:00:00,5Z", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:00,5Z"`},
		{"twitter;epoch=2025-01-01T00:00:00.Z", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:00.Z"`},
		{"twitter;epoch=2025-01-01t00:00:00z", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01t00:00:00z"`},
		{"twitter;epoch=2025-01-01T00:00:60Z", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:60Z"`},
		{"twitter;epoch=2025-01-01T00:00:00+24:00", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:00+24:00"`},
		{"twitter;epoch=2025-01-01T00:00:00+01:60", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:00+01:60"`},
		{"twitter;epoch=2025-01-01T00:00:00+0100", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:00+0100"`},
		{"twitter;epoch=2025-01-01T00:00:00ZZ", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-01-01T00:00:00ZZ"`},
		{"twitter;epoch=2025-02-29T00:00:00Z", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "2025-02-29T00:00:00Z"`},
		{"twitter;epoch=1288834974", 15, `an epoch in milliseconds has 12 or 13 digits, such as 1735689600000, not "1288834974"`}, // seconds
		{"twitter;epoch=01288834974657", 15, `an epoch in milliseconds has 12 or 13 digits, such as 1735689600000, not "01288834974657"`},
		{"twitter;epoch=9223372036855", 15, `an epoch in milliseconds has 12 or 13 digits, such as 1735689600000, not "9223372036855"`},
		{"twitter;epoch=-1288834974657", 15, `an epoch is such as 2025-01-01T00:00:00Z, not "-1288834974657"`},
		{"twitter;epoch=2025-01-01T00:00:00.0000000001Z", 15, "an epoch is a whole number of nanoseconds"},
		{"twitter;epoch=1969-12-31T23:59:59.999999999Z", 15, "an epoch is not before 1970"},
		{"twitter;epoch=1970-01-01T00:00:00+00:01", 15, "an epoch is not before 1970"},
		{"twitter;epoch=2262-04-11T23:47:16.854775808Z", 15, "an epoch is not after 2262-04-11T23:47:16.854775807Z"},
		{"twitter;epoch=" + strings.Repeat("9", 50), 15, `an epoch in milliseconds has 12 or 13 digits, such as 1735689600000, not "` + strings.Repeat("9", 40) + `"...`},
	} {
		l, err := ParseLayout(c.text)
		syntax, ok := errors.AsType[*SyntaxError](err)
		if !ok || l.IsValid() || syntax.Kind != "layout" || syntax.Text != c.text || syntax.Offset+1 != c.column || syntax.Reason != c.reason {
			t.Errorf("%s: %v, %v\nwant column %d: %s", c.text, l, err, c.column, c.reason)
		}
	}
	_, err := ParseLayout("time:41,seq:0" + epoch)
	fails(t, err, `firn: layout "time:41,seq:0;epoch=2025-01-01T00:00:00Z", column 13: the width of seq is 1 to 63 bits, not "0"`)
}

func TestMustLayout(t *testing.T) {
	defer func() {
		fails(t, recover().(error), `firn: layout "twiter", column 1: there is no such preset; is it twitter?`)
	}()
	MustLayout("twiter")
	t.Error("MustLayout returned")
}

func TestLayoutText(t *testing.T) {
	var config struct{ Layout Layout }
	if err := json.Unmarshal([]byte(`{"Layout":"sonyflake"}`), &config); err != nil || config.Layout != MustLayout("sonyflake") {
		t.Errorf("%v, %v", config, err)
	}
	b, err := json.Marshal(config)
	if err != nil || string(b) != `{"Layout":"time:39@10ms,seq:8,machine:16;epoch=2014-09-01T00:00:00Z"}` {
		t.Errorf("%s, %v", b, err)
	}
	if err := config.Layout.UnmarshalText([]byte("nothing at all")); err == nil || config.Layout != MustLayout("sonyflake") {
		t.Errorf("%v, %v", config, err)
	}
}

// checkCanonical: the text of a layout parses to it and no other does.
func checkCanonical(t *testing.T, l Layout) {
	t.Helper()
	again, err := ParseLayout(l.String())
	if err != nil || again != l || again.String() != l.String() {
		t.Fatalf("%s: %s, %v", l, again, err)
	}
}

func TestCanonicalText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 5000 {
		checkCanonical(t, randomLayout(r))
	}
}

func FuzzParseLayout(f *testing.F) {
	for name, l := range Presets() {
		f.Add(name)
		f.Add(l.String())
		f.Add(name + ";epoch=2020-02-29T12:00:00.5+07:00")
	}
	f.Add("seq:12,time:41,shard:10;epoch=2262-04-11T23:47:16.854775807Z")
	f.Add("a:1,b:1,c:1,d:1,e:1,f:1,g:1,time:56@1us;epoch=1970-01-01T00:00:00Z")
	f.Add("time:33@1h,x:31;epoch=2020-01-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLayout(s)
		if err != nil {
			syntax, ok := errors.AsType[*SyntaxError](err)
			if !ok || syntax.Text != s || syntax.Offset < 0 || syntax.Offset > len(s) || len(err.Error()) > 1200 || l.IsValid() {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		checkCanonical(t, l)
		years := l.End().Year() - l.Epoch().Year()
		if l.Bits() > 64 || l.Bits() == 64 && !l.Ordered() || l.Last() < 1 || l.Workers() < 1 || l.Shards() < 1 || years < 0 || years > maxYears+1 {
			t.Fatalf("%q: %s ends at %s", s, l, l.End())
		}
	})
}
