package move

import (
	"errors"
	"testing"
)

// ownTypes are types of a tenant's, with functions that PostgreSQL would call for a check and for a cast.
const ownTypes = `
CREATE FUNCTION insta0.passes(integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE DOMAIN insta0.checked AS integer CHECK (insta0.passes(VALUE));
CREATE TYPE insta0.mood AS ENUM ('low', 'medium', 'high');
CREATE FUNCTION insta0.show(insta0.mood) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a function of a tenant was called''; END';
CREATE FUNCTION insta0.mood(text) RETURNS insta0.mood LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a function of a tenant was called''; END';
CREATE CAST (insta0.mood AS text) WITH FUNCTION insta0.show(insta0.mood);
CREATE CAST (text AS insta0.mood) WITH FUNCTION insta0.mood(text);
CREATE TYPE insta0.pair AS (a integer, b text);
CREATE TABLE insta0.of_domain (k insta0.checked PRIMARY KEY, v text);
CREATE TABLE insta0.of_enum (n integer, k insta0.mood, v text, PRIMARY KEY (k, n));
CREATE TABLE insta0.of_composite (k insta0.pair PRIMARY KEY, v text);
CREATE TABLE insta0.of_char (k char(7), s varchar(3), b bit(4), v text, PRIMARY KEY (k, s, b));
`

const ownRows = `
INSERT INTO insta0.of_domain SELECT n FROM generate_series(1, 35) AS n;
INSERT INTO insta0.of_enum SELECT n, m FROM generate_series(1, 15) AS n, unnest(enum_range(NULL::insta0.mood)) AS m;
INSERT INTO insta0.of_composite SELECT ROW(n % 4, 'b"' || n)::insta0.pair FROM generate_series(1, 25) AS n;
INSERT INTO insta0.of_char SELECT 'x' || n, n % 7, (n % 16)::bit(4) FROM generate_series(1, 45) AS n;
CREATE OR REPLACE FUNCTION insta0.passes(integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a function of a tenant was called''; END';
`

// extensionTypes are keys whose operators are not in pg_catalog.
const extensionTypes = `
CREATE TABLE insta0.of_ltree (k public.ltree PRIMARY KEY, v text);
CREATE TABLE insta0.of_both (m insta0.mood, k public.ltree, n bigint, v text, PRIMARY KEY (m, k, n));
CREATE TABLE insta0.of_citext (k public.citext PRIMARY KEY, v text);
`

const extensionRows = `
INSERT INTO insta0.of_ltree SELECT ('a.b' || n)::public.ltree FROM generate_series(1, 35) AS n;
INSERT INTO insta0.of_both SELECT m, ('a.b' || n % 4)::public.ltree, n FROM generate_series(1, 15) AS n, unnest(enum_range(NULL::insta0.mood)) AS m;
INSERT INTO insta0.of_citext SELECT (CASE n % 2 WHEN 0 THEN 'a' ELSE 'A' END || n)::public.citext FROM generate_series(1, 35) AS n;
`

// TestVerifyKeys: rows are told by keys of every type, and no function of a tenant's runs with the rights of
// whoever compares.
func TestVerifyKeys(t *testing.T) {
	a, b := pair(t, 1)
	b.must(t, "CREATE SCHEMA insta0")
	changes := map[string]string{
		"of_domain":    "k = 17",
		"of_enum":      "k = 'medium' AND n = 14",
		"of_composite": "(k).b = 'b\"9'",
		"of_char":      "k = 'x31'",
	}
	sets := [][2]string{{ownTypes, ownRows}}
	if a.one(t, "SELECT count(*)::text FROM pg_available_extensions WHERE name IN ('ltree', 'citext')") == "2" {
		sets = append(sets, [2]string{"CREATE EXTENSION ltree SCHEMA public; CREATE EXTENSION citext SCHEMA public;" + extensionTypes, extensionRows})
		changes["of_ltree"], changes["of_both"], changes["of_citext"] = "k = 'a.b20'", "m = 'high' AND n = 11", "k = 'a8'"
	} else {
		t.Log("the server has no extensions: keys of their types are left out")
	}
	for _, set := range sets {
		a.must(t, set[0]+set[1])
		b.must(t, set[0])
	}
	copyRows(t, a, b)
	b.must(t, "CREATE OR REPLACE FUNCTION insta0.passes(integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a function of a tenant was called''; END'")
	if _, err := Verify(t.Context(), a.Server, b.Server, "insta0", inSmall); err != nil {
		t.Fatal(err)
	}
	for table, where := range changes {
		b.must(t, "SET search_path = insta0, public; UPDATE "+table+" SET v = 'changed' WHERE "+where+"; RESET search_path")
		_, err := Verify(t.Context(), a.Server, b.Server, "insta0", inSmall)
		var d *DifferentError
		if !errors.As(err, &d) || d.Table != table || d.What != "differs" || d.More != 0 {
			t.Errorf("%s: %v", table, err)
		}
		b.must(t, "UPDATE insta0."+table+" SET v = NULL")
	}
}
