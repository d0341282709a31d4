package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/firn-id/firn"
)

// A Definition is what the SQL of one logical shard makes.
type Definition struct {
	Number int64
	Schema string

	// Tables get a generator each, TABLE_next_id, so that ids are unique within a
	// table of the shard only, and each table has the layout's whole rate. None:
	// one generator, next_id, for all tables.
	Tables []string

	// Roles may draw ids.
	Roles []string
}

// WriteSQL writes, in one transaction, what makes a shard in a database that may
// know nothing of firn yet.
func WriteSQL(w io.Writer, l firn.Layout, s Definition) error {
	var b strings.Builder
	b.WriteString("BEGIN;\nSET LOCAL client_min_messages = warning;\nSET LOCAL standard_conforming_strings = on;\n")
	if err := WriteGenerator(&b, l); err != nil {
		return err
	}
	if err := WriteGrants(&b, s.Roles...); err != nil {
		return err
	}
	if err := WriteShard(&b, l, s); err != nil {
		return err
	}
	b.WriteString("COMMIT;\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteGrants writes the SQL that lets roles use the functions that all shards of a
// database share; "public" is all roles. What they may do in each shard is for
// [WriteShard].
func WriteGrants(w io.Writer, roles ...string) error {
	for _, role := range roles {
		if _, err := fmt.Fprintf(w, "GRANT EXECUTE ON FUNCTION firn.id, firn.advance(regclass, bigint), firn.states, firn.is_here, firn.cure, firn.check_here, firn.await_opening, firn.enter,\n\tfirn.now_state, firn.pack, firn.decode, firn.first_id, firn.last_id TO %s;\n", grantee(role)); err != nil {
			return err
		}
	}
	return nil
}

// Code names the SQL of [WriteGenerator] and [WriteMoves] for a layout: another version
// of firn, whose SQL is another, has another name for it.
func Code(l firn.Layout) (string, error) {
	h := sha256.New()
	for _, write := range []func(io.Writer, firn.Layout) error{WriteGenerator, WriteMoves} {
		if err := write(h, l); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// WriteShard writes the SQL that makes a shard, in a database that has the SQL of
// [WriteGenerator] for the same layout, and of [WriteGrants]. It may be run again, and opens no shard that
// is closed. A function next_id that is there is called once, and replaced in place if
// what it gives is an id of this shard and layout: what it gave is left behind by a
// second. Otherwise the SQL fails, since the new ids could be below the old ones.
func WriteShard(w io.Writer, l firn.Layout, s Definition) error {
	if err := CheckLayout(l); err != nil {
		return err
	}
	if err := s.check(l); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n-- Shard %d.\n", s.Number)
	names := s.functions()
	for _, name := range names {
		fmt.Fprintf(&b, checkReplaced, literal(s.Schema), literal(name), s.Number, literal(l.String()))
	}
	fmt.Fprintf(&b, "DO $do$ BEGIN PERFORM firn.create_shard(%d, %s", s.Number, literal(s.Schema))
	for _, name := range names {
		fmt.Fprintf(&b, ", %s", literal(name))
	}
	b.WriteString("); END $do$;\n")
	for _, role := range s.Roles {
		schema, role := identifier(s.Schema), identifier(role)
		fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA %s TO %s;\n", schema, role)
		for _, name := range names {
			fmt.Fprintf(&b, "GRANT USAGE ON SEQUENCE %s.%s TO %s;\n", schema, identifier(name+"_counter"), role)
			fmt.Fprintf(&b, "GRANT SELECT ON SEQUENCE %s.%s TO %s;\n", schema, identifier(name+"_offset"), role)
			fmt.Fprintf(&b, "GRANT EXECUTE ON FUNCTION %s.%s(), %[1]s.%[3]s(integer) TO %[4]s;\n", schema, identifier(name), identifier(name+"s"), role)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// checkReplaced is the SQL that refuses to replace a function whose ids are of another
// layout or shard. Functions of firn are not called: they give none where they were
// restored.
const checkReplaced = `DO $do$
DECLARE
	schema text := %[1]s;
	name text := %[2]s;
	id bigint;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
			WHERE n.nspname = schema AND p.proname = name AND p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND p.prosrc NOT LIKE '%%firn.id(%%') THEN
		RETURN;
	END IF;
	BEGIN
		EXECUTE format('SELECT %%I.%%I()', schema, name) INTO id;
	EXCEPTION WHEN OTHERS THEN
		RAISE EXCEPTION 'firn: the function %%.%% that is there fails: %%', schema, name, SQLERRM
			USING HINT = 'if it never gave an id, drop it, and run this again';
	END;
	IF NOT EXISTS (SELECT FROM firn.decode(id) AS d WHERE d.shard = %[3]d AND abs(extract(epoch FROM d."time" - clock_timestamp())) < 60) THEN
		RAISE EXCEPTION 'firn: the function %%.%% that is there gives %%, which is no id that shard %[3]d makes now in the layout %%', schema, name, id, %[4]s
			USING HINT = 'firn shard sql --layout LAYOUT says the layout of its ids, for one as Instagram published it --layout instagram --epoch MILLISECONDS';
	END IF;
END $do$;
`

// functions are the names of the functions that give ids.
func (s Definition) functions() []string {
	if len(s.Tables) == 0 {
		return []string{"next_id"}
	}
	names := make([]string, len(s.Tables))
	for i, table := range s.Tables {
		names[i] = table + "_next_id"
	}
	return names
}

// maxName is how long a name of PostgreSQL may be, in bytes; ours add "_counter".
const maxName = 63

func (s Definition) check(l firn.Layout) error {
	if s.Number < 0 || s.Number >= l.Shards() {
		return fmt.Errorf("shard: shard %d: layout %s has shards 0 to %d", s.Number, name(l), l.Shards()-1)
	}
	for _, name := range append(s.functions(), s.Schema) {
		switch {
		case name == "":
			return fmt.Errorf("shard: shard %d has no schema", s.Number)
		case len(name)+len("_counter") > maxName:
			return fmt.Errorf("shard: name %q is longer than %d bytes", name, maxName-len("_counter"))
		case strings.ContainsRune(name, 0):
			return fmt.Errorf("shard: name %q has a zero byte", name)
		}
	}
	switch s.Schema {
	case "firn", "pg_catalog", "information_schema":
		return fmt.Errorf("shard: schema %s is not for shards", s.Schema)
	}
	return nil
}

// grantee is a role, or PUBLIC, which no role can be called.
func grantee(role string) string {
	if role == "public" {
		return "PUBLIC"
	}
	return identifier(role)
}

// identifier quotes a name.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal quotes a text. Backslashes are doubled by none of it: the SQL is for
// standard_conforming_strings, the default.
func literal(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
