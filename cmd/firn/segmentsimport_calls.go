package main

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
)

// This file finds what a query makes PostgreSQL run. A transaction for reading does not keep
// a function from ending a session or writing a file, so nothing VOLATILE is run: neither a
// function that the query or a view calls, nor one behind an operator, an aggregate, a cast
// or the CHECK of a domain. What a function does inside that its owner declared to be STABLE
// or IMMUTABLE cannot be seen.

var (
	textLiteral  = regexp.MustCompile(`'[^']*'`) // in a plan
	calledName   = regexp.MustCompile(`(?:"([^"]+)"|([\pL_][\pL\pN_$]*))\s*\(`)
	namedThing   = regexp.MustCompile(`"([^"]+)"|([\pL_][\pL\pN_$]*)`)
	operatorSign = regexp.MustCompile("[-+*/<>=~!@#%^&|`?]+")
)

// changersSQL finds what may change something, by the names that are called ($1), all names
// ($2) and the operators ($3) of a query and its plan. A cast may leave no trace in them: one
// that may change something is found wherever it is in the database. The view pg_sequences
// calls pg_sequence_last_value, which only reads.
const changersSQL = `
WITH RECURSIVE volatile AS (
	SELECT oid FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND oid <> 'pg_catalog.pg_sequence_last_value(regclass)'::regprocedure
), checked (oid) AS ( -- types whose values are checked by such a function
	SELECT c.contypid FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_constraint'::regclass AND d.objid = c.oid
		LEFT JOIN pg_catalog.pg_operator AS o ON d.refclassid = 'pg_catalog.pg_operator'::regclass AND o.oid = d.refobjid
		WHERE c.contypid <> 0 AND coalesce(o.oprcode, CASE d.refclassid WHEN 'pg_catalog.pg_proc'::regclass THEN d.refobjid END) IN (SELECT oid FROM volatile)
	UNION
	SELECT t.oid FROM checked AS k, pg_catalog.pg_type AS t WHERE t.typbasetype = k.oid OR t.typelem = k.oid
		OR EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = t.typrelid AND a.atttypid = k.oid)
)
SELECT what FROM (
	SELECT 'function ' || proname FROM pg_catalog.pg_proc WHERE proname = ANY ($1) AND oid IN (SELECT oid FROM volatile)
	UNION ALL SELECT 'aggregate ' || p.proname FROM pg_catalog.pg_aggregate AS a JOIN pg_catalog.pg_proc AS p ON p.oid = a.aggfnoid JOIN volatile AS v
		ON v.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn) WHERE p.proname = ANY ($1)
	UNION ALL SELECT 'operator ' || oprname FROM pg_catalog.pg_operator WHERE oprname = ANY ($3) AND oprcode IN (SELECT oid FROM volatile)
	UNION ALL SELECT 'CHECK of the type ' || typname FROM pg_catalog.pg_type WHERE typname = ANY ($2) AND oid IN (SELECT oid FROM checked)
	UNION ALL SELECT 'CHECK of an argument of ' || proname FROM pg_catalog.pg_proc WHERE proname = ANY ($1) AND EXISTS (SELECT FROM checked AS k WHERE k.oid = ANY (proargtypes))
	UNION ALL SELECT 'cast to ' || format_type(casttarget, NULL) FROM pg_catalog.pg_cast WHERE castfunc IN (SELECT oid FROM volatile)
) AS all_of_them (what) LIMIT 1`

// checkCalls returns an error if the query would run something in PostgreSQL that may change
// anything.
func checkCalls(ctx context.Context, tx *sql.Tx, query string) error {
	plan, err := planOf(ctx, tx, query)
	if err != nil {
		return err
	}
	text := query + "\n" + plan
	var what string
	err = tx.QueryRowContext(ctx, changersSQL, namesIn(calledName, text), namesIn(namedThing, text), operatorSign.FindAllString(text, -1)).Scan(&what)
	switch {
	case err == nil:
		return bad("--from runs the %s, by itself or in a view, which may change something (VOLATILE), and it may only read", what).
			hint("write the SELECT over tables, without that")
	case errors.Is(err, sql.ErrNoRows):
		return nil
	}
	return err
}

// namesIn are the names that an expression finds in a text, as catalogs have them.
func namesIn(re *regexp.Regexp, text string) []string {
	var names []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1]+strings.ToLower(m[2]))
	}
	return names
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
		plan.WriteString(textLiteral.ReplaceAllString(line, " ? ") + "\n")
	}
	return plan.String(), rows.Err()
}
