package takeover

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// This file finds what a query makes PostgreSQL run. A transaction for reading does not keep
// a function from ending a session or writing a file, so nothing VOLATILE is run: neither a
// function that the query, a view or a policy calls, nor one behind an operator, an aggregate,
// a cast or the CHECK of a domain. What a function does inside that its owner declared to be
// STABLE or IMMUTABLE cannot be seen.
//
// Everything is found by its name, in the text of the query and in the definitions of all that
// the text names, and so on. A name that means several things stands for all of them. The plan
// comes second: it has what no text names, but not what stands in VALUES, LIMIT or a window's
// frame, and planning already reads the literals of composite types, ranges and arrays, which
// runs the CHECK of each domain in them.

var (
	planQuoted   = regexp.MustCompile(`"[^"]*"|'[^']*'`) // a literal may have line breaks, and a name quotes
	calledName   = pattern(quotedOrBare + `[\s\v]*\(`)
	namedThing   = pattern(quotedOrBare)
	operatorSign = regexp.MustCompile("[-+*/<>=~!@#%^&|`?]+")
)

const quotedOrBare = `(?:"((?:[^"]|"")+)"|([\pL_][\pL\pN_$]*))`

// wordSigns are the operators that words stand for: IN, LIKE, BETWEEN, NULLIF, DISTINCT and
// others, which a plan shows as words too.
var wordSigns = []string{"=", "<>", "<", "<=", ">", ">=", "~~", "!~~", "~~*", "!~~*"}

// changersSQL finds what may change something, by the names that are called ($1). The view
// pg_sequences calls pg_sequence_last_value, which only reads; the last ones are STABLE, and
// read a view or a value whose name is a text. A cast may leave no trace in a text, nor may
// what sorts, groups or hashes: one that may change something is found wherever it is in the
// database. Functions of operator classes that take an internal argument are written in C, and
// PostGIS does not say that they only read.
const changersSQL = `
SELECT what FROM (
	SELECT 'function ' || proname FROM pg_catalog.pg_proc WHERE proname = ANY ($1)
		AND (provolatile = 'v' AND NOT (proname = 'pg_sequence_last_value' AND pronamespace = 'pg_catalog'::pg_catalog.regnamespace) OR proname ~ '^(table|schema|database)_to_xml|^pg_input_')
	UNION ALL SELECT 'cast to ' || format_type(casttarget, NULL) FROM pg_catalog.pg_cast AS c JOIN pg_catalog.pg_proc AS p ON p.oid = c.castfunc WHERE provolatile = 'v'
	UNION ALL SELECT 'operator class ' || opfname FROM pg_catalog.pg_opfamily AS f JOIN (
		SELECT amprocfamily, amproc::oid FROM pg_catalog.pg_amproc
		UNION ALL SELECT amopfamily, oprcode FROM pg_catalog.pg_amop JOIN pg_catalog.pg_operator AS o ON o.oid = amopopr
	) AS part (family, function) ON family = f.oid JOIN pg_catalog.pg_proc AS p ON p.oid = function
	WHERE provolatile = 'v' AND p.oid >= 16384 AND 'internal'::pg_catalog.regtype <> ALL (proargtypes::oid[])
) AS all_of_them (what) LIMIT 1`

// definitionsSQL returns the definitions of what is called ($1), of what has a name ($2) and
// of operators ($3), each with the word for it in an error, if it has one. Objects from 16384
// on are not PostgreSQL's own.
const definitionsSQL = `
SELECT '', pg_catalog.pg_get_viewdef(oid) FROM pg_catalog.pg_class WHERE relkind = 'v' AND relname = ANY ($2)
UNION SELECT 'policy ' || polname, pg_catalog.pg_get_expr(polqual, polrelid) FROM pg_catalog.pg_policy AS p JOIN pg_catalog.pg_class AS c ON c.oid = p.polrelid
	WHERE relname = ANY ($2) AND polqual IS NOT NULL
UNION SELECT 'CHECK of the type ' || typname, pg_catalog.pg_get_constraintdef(c.oid) FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_type AS t ON t.oid = c.contypid
	WHERE typname = ANY ($2)
UNION SELECT '', pg_catalog.quote_ident(p.typname) FROM pg_catalog.pg_type AS t, LATERAL (
		SELECT refobjid FROM pg_catalog.pg_depend WHERE classid = 'pg_catalog.pg_type'::regclass AND objid = t.oid AND refclassid = 'pg_catalog.pg_type'::regclass
		UNION ALL SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid = t.typrelid AND t.typrelid <> 0
	) AS part (id) JOIN pg_catalog.pg_type AS p ON p.oid = part.id
	WHERE t.typname = ANY ($2) AND t.oid >= 16384 AND p.oid >= 16384
UNION SELECT '', pg_catalog.quote_ident(t.typname) FROM pg_catalog.pg_proc AS p, LATERAL unnest(p.proargtypes::oid[] || p.prorettype) AS part (id)
	JOIN pg_catalog.pg_type AS t ON t.oid = part.id WHERE proname = ANY ($1) AND p.oid >= 16384 AND t.oid >= 16384
UNION SELECT 'function ' || proname, pg_catalog.pg_get_function_arguments(oid) FROM pg_catalog.pg_proc
	WHERE proname = ANY ($1) AND oid >= 16384 AND pronargdefaults > 0
UNION SELECT 'operator ' || oprname, pg_catalog.quote_ident(proname) || '()' FROM pg_catalog.pg_operator AS o JOIN pg_catalog.pg_proc AS p ON p.oid = o.oprcode
	WHERE oprname = ANY ($3) AND o.oid >= 16384
UNION SELECT 'aggregate ' || f.proname, pg_catalog.quote_ident(p.proname) || '()' FROM pg_catalog.pg_aggregate AS a JOIN pg_catalog.pg_proc AS f ON f.oid = a.aggfnoid
	JOIN pg_catalog.pg_proc AS p ON p.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
	WHERE f.proname = ANY ($1) AND f.oid >= 16384`

// checkCalls returns an error if the query would run something in PostgreSQL that may change
// anything. Nothing is planned before its text is found to be harmless.
func checkCalls(ctx context.Context, tx *sql.Tx, query string) error {
	c := callCheck{tx, map[definition]bool{}}
	if err := c.check(ctx, definition{text: query}); err != nil {
		return err
	}
	plan, err := planOf(ctx, tx, query)
	if err != nil {
		return err
	}
	return c.check(ctx, definition{text: plan})
}

// A definition is a text that PostgreSQL runs, and what it defines.
type definition struct{ what, text string }

// A callCheck checks each definition once.
type callCheck struct {
	tx   *sql.Tx
	done map[definition]bool
}

// check returns an error if a definition runs what may change something, itself or by what it
// names.
func (c callCheck) check(ctx context.Context, d definition) error {
	if c.done[d] {
		return nil
	}
	c.done[d] = true
	text := withoutQuotes(d.text)
	called, named := namesIn(calledName(), text), namesIn(namedThing(), text)
	var what string
	err := c.tx.QueryRowContext(ctx, changersSQL, called).Scan(&what)
	if err == nil {
		if d.what != "" {
			what = d.what
		}
		return bad("--query runs the %s, by itself or in a view, which may change something (VOLATILE), and it may only read", what).
			hint(WrittenOut)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	all, err := c.definitions(ctx, called, named, append(operatorSign.FindAllString(text, -1), wordSigns...))
	if err != nil {
		return err
	}
	for _, next := range all {
		if err := c.check(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// definitions are those of all that has one of these names.
func (c callCheck) definitions(ctx context.Context, called, named, signs []string) (all []definition, err error) {
	rows, err := c.tx.QueryContext(ctx, definitionsSQL, called, named, signs)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var d definition
		if err := rows.Scan(&d.what, &d.text); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

// withoutQuotes is a text whose literals have no double quotes: between those of two literals
// there would be a name.
func withoutQuotes(text string) string {
	return planQuoted.ReplaceAllStringFunc(text, func(quoted string) string {
		if quoted[0] == '"' {
			return quoted
		}
		return strings.ReplaceAll(quoted, `"`, " ")
	})
}

// namesIn are the names that an expression finds in a text, as catalogs have them. Whether
// PostgreSQL makes a letter small that is not of ASCII depends on the database: both are taken.
func namesIn(re *regexp.Regexp, text string) []string {
	var names []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		quoted, bare := strings.ReplaceAll(m[1], `""`, `"`), m[2]
		names = append(names, quoted+strings.ToLower(bare), quoted+smallASCII(bare))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// smallASCII makes letters of ASCII small, and no others.
func smallASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// planOf returns how PostgreSQL would run a query, which it does not run.
func planOf(ctx context.Context, tx *sql.Tx, query string) (string, error) {
	rows, err := tx.QueryContext(ctx, "EXPLAIN (VERBOSE, COSTS OFF) "+query)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		plan.WriteString(line + "\n")
	}
	return planQuoted.ReplaceAllStringFunc(plan.String(), func(quoted string) string {
		if quoted[0] == '"' {
			return quoted
		}
		return " ? "
	}), rows.Err()
}
