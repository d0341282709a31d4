package migrate

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []statement
	}{
		{"none", " \n-- nothing\n/* at /* all */ */;;", nil},
		{"two", "SELECT 1;\nSELECT 2;\n", []statement{{"SELECT 1", 1}, {"SELECT 2", 2}}},
		{"without the last semicolon", "SELECT 1;\n\n  SELECT 2  \n", []statement{{"SELECT 1", 1}, {"SELECT 2", 3}}},
		{"a comment before", "-- who; what\n/* ; */ SELECT 1 -- a\n;", []statement{{"SELECT 1 -- a", 2}}},
		{"quotes", `SELECT 'a;''b;', "c;""d;";X`, []statement{{`SELECT 'a;''b;', "c;""d;"`, 1}, {"X", 1}}},
		{"backslashes", `SELECT 'a\';SELECT E'a\';b''c;', e'\\';X`, []statement{{`SELECT 'a\'`, 1}, {`SELECT E'a\';b''c;', e'\\'`, 1}, {"X", 1}}},
		{"a name that ends in e", `SELECT name'a\';X`, []statement{{`SELECT name'a\'`, 1}, {"X", 1}}},
		{"dollars", "SELECT $$;$a$;$$, $a$;$$;$b$;$a$, $1, a$b$;X", []statement{{"SELECT $$;$a$;$$, $a$;$$;$b$;$a$, $1, a$b$", 1}, {"X", 1}}},
		{"parentheses", "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); X", []statement{{"CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)", 1}, {"X", 1}}},
		{
			"a body", "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC; SELECT CASE WHEN true THEN 1 END; SELECT 2; END; X",
			[]statement{{"CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC; SELECT CASE WHEN true THEN 1 END; SELECT 2; END", 1}, {"X", 1}},
		},
		{"a column named end", `SELECT a AS "end"; X`, []statement{{`SELECT a AS "end"`, 1}, {"X", 1}}},
		{"savepoints", "SAVEPOINT a; ROLLBACK TO a; ROLLBACK WORK TO a; PREPARE p AS SELECT 1", []statement{{"SAVEPOINT a", 1}, {"ROLLBACK TO a", 1}, {"ROLLBACK WORK TO a", 1}, {"PREPARE p AS SELECT 1", 1}}},
		{"a copy", "COPY t FROM 'file'; COPY t TO STDOUT; SELECT stdin", []statement{{"COPY t FROM 'file'", 1}, {"COPY t TO STDOUT", 1}, {"SELECT stdin", 1}}},
		{"other letters", "SELECT größe$a;X", []statement{{"SELECT größe$a", 1}, {"X", 1}}},
	} {
		got, err := split(tt.text)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q gives %+v, %v; want %+v", tt.name, tt.text, got, err, tt.want)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1;\nBEGIN; SELECT 2":            "line 2: BEGIN: a file begins and ends no transaction",
		"begin;":                                "line 1: BEGIN:",
		"SELECT 1;\n\n /* x */ commit":          "line 3: COMMIT:",
		"START TRANSACTION":                     "START:",
		"END":                                   "END:",
		"ABORT":                                 "ABORT:",
		"ROLLBACK":                              "ROLLBACK:",
		"ROLLBACK AND CHAIN":                    "ROLLBACK:",
		"SELECT 1;\nCOPY t (a, b)\n FROM stdin": "line 2: COPY FROM STDIN: there is nothing to read",
		"PREPARE TRANSACTION 'x'":               "PREPARE:",
		"SELECT 1;\n\\i other.sql":              `line 2: \i is a command of psql`,
		"SELECT 1;\nSELECT 'a":                  "line 2: a text in ' that begins here does not end",
		"SELECT $x$ $$":                         "line 1: a text in $x$ that begins here does not end",
		"SELECT 1;\n-- a\n/* /* */ SELECT 2;":   "a comment that begins here does not end",
	} {
		if got, err := split(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %+v, %v; want %q", text, got, err, want)
		}
	}
}

// FuzzSplit: statements are parts of the text, in order, with nothing between them
// that could be one.
func FuzzSplit(f *testing.F) {
	f.Add("SELECT 1; SELECT 'a;b' -- c\n; /* ; */ SELECT $x$;$x$")
	f.Add("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END;")
	f.Fuzz(func(t *testing.T, text string) {
		statements, err := split(text)
		if err != nil {
			return
		}
		rest, line := text, 1
		for _, s := range statements {
			at := strings.Index(rest, s.text)
			if s.text == "" || at < 0 {
				t.Fatalf("%q has no statement %q in %q", text, s.text, rest)
			}
			again, err := split(s.text)
			if err == nil && len(again) != 1 {
				t.Fatalf("%q of %q is %+v", s.text, text, again)
			}
			rest = rest[at+len(s.text):]
			if s.line < line {
				t.Fatalf("%q: line %d after %d", text, s.line, line)
			}
			line = s.line
		}
	})
}
