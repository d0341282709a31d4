package record_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

type counter struct {
	V     int   `json:"v"`
	Count int64 `json:"count,string"`
}

func (c counter) Version() int { return c.V }

func (c counter) Fault() string {
	if c.Count < 0 {
		return "has a negative number"
	}
	return ""
}

func TestRead(t *testing.T) {
	for value, want := range map[string]string{
		`{"v":1,"count":"7"}`:            "",
		`{"v":1,"count":"7","later":{}}`: "", // what a reader does not know it leaves alone
		`{"v":2,"count":"7"}`:            "has format 2, written by a later firn; this one knows 1",
		`{"v":2,"count":{"low":7}}`:      "has format 2, written by a later firn; this one knows 1",
		`{"v":0,"count":"7"}`:            "has no format number",
		`{"count":"7"}`:                  "has no format number",
		`{"v":-1}`:                       "has no format number",
		`{"v":1,"count":7}`:              "invalid use of ,string",
		`{"v":1,"count":"-7"}`:           "has a negative number",
		`{"v":1,"count":"7"`:             "unexpected end of JSON input",
		``:                               "unexpected end of JSON input",
	} {
		got, err := record.Read[counter](store.Record{Key: "k", Value: []byte(value), Version: "1"})
		if want == "" {
			if err != nil || got != (counter{1, 7}) || string(record.Encode(got)) != `{"v":1,"count":"7"}` {
				t.Errorf("%s: %+v, %v", value, got, err)
			}
			continue
		}
		var wrong *store.FormatError
		if !errors.As(err, &wrong) || wrong.Key != "k" || !strings.Contains(wrong.Reason, want) || got != (counter{}) {
			t.Errorf("%s: %+v, %v, want %q", value, got, err, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"orders": "", "a:b.c": "", "12345678": "",
		"":          `series "": a name has 1 to 8 bytes, not 0`,
		"123456789": `series "123456789": a name has 1 to 8 bytes, not 9`,
		"a/b":       `series "a/b": a name has no slash`,
		"a b":       `series "a b": a name is printable ASCII without spaces`,
		"ä":         `series "ä": a name is printable ASCII without spaces`,
	} {
		if got := record.CheckName("series", name, 8); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
