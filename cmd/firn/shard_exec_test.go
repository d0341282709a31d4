//go:build !windows

package main

import (
	"strings"
	"testing"
)

// TestShardsExecComments: comments do not hide what a statement is, wherever they stand.
func TestShardsExecComments(t *testing.T) {
	t.Parallel()
	_, flags := twoServers(t, 2)
	const reads, copies = "without --write a statement begins with SELECT", "COPY has nothing to read from"
	for _, tt := range []struct {
		sql  string
		want string // of the error; empty: it runs
		more []string
	}{
		{sql: "-- how many? (a note)\nSELECT 7"},
		{sql: "--note\nSELECT 7"},
		{sql: "--note\r/* of /* all */ shards */ ( SELECT 7 ) -- really"},
		{sql: "\n-- a\n\t-- b = c\n/**/VALUES (7)"},
		{sql: "--=\nSELECT 7"},
		{sql: "-- SELECT\nDROP SCHEMA insta0", want: reads},
		{sql: "/* /* */ SELECT */ DO $$BEGIN END$$", want: reads},
		{sql: "/* SELECT 1 */ DO $$BEGIN END$$", want: reads},
		{sql: "-- nothing", want: "there is no statement"},
		{sql: "/* no end SELECT 1", want: "there is no statement"},
		{sql: "/* /* */ all */ copy t FROM STDIN", want: copies, more: []string{"--write"}},
		{sql: "-- a\nCOPY t FROM STDIN", want: copies, more: []string{"--write"}},
		{sql: "-- a\nSELECT 1; DROP SCHEMA insta0", want: "cannot insert multiple commands"},
		{sql: "-- a\nSELECT 1 INTO t", want: "read-only transaction"},
		{sql: "--unknown", want: "unknown flag"},
	} {
		args := append(append([]string{"shard", "exec"}, tt.more...), tt.sql)
		out, errs, code := called(t, append(args, flags...)...)
		switch {
		case tt.want == "" && (code != 0 || strings.Count(out, "7\n") != 2):
			t.Errorf("%q: exit code %d\n%s%s", tt.sql, code, out, errs)
		case tt.want != "" && (code == 0 || !strings.Contains(errs, tt.want)):
			t.Errorf("%q: exit code %d, no %q in\n%s%s", tt.sql, code, tt.want, out, errs)
		}
	}
}
