package move

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// load makes the schemas of shards on the target, without rows.
func (m *Mover) load(ctx context.Context, some []pairOf) error {
	program, err := dumper(ctx, m.source)
	if err != nil {
		return err
	}
	// A dump leaves settings behind.
	c, err := m.target.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	for _, p := range some {
		err := errChanged
		for tries := 0; errors.Is(err, errChanged) && tries < staleTries; tries++ {
			err = m.loadOne(ctx, program, c, p)
		}
		if err := m.inWay(ctx, c, p, err); err != nil {
			return err
		}
	}
	return nil
}

var errChanged = errors.New("the schema was changed while it was dumped")

func (m *Mover) loadOne(ctx context.Context, program string, c *pgx.Conn, p pairOf) error {
	var before string
	if err := m.source.conn.QueryRow(ctx, "SELECT coalesce(firn.fingerprint($1, false), '')", p.source.schema).Scan(&before); err != nil {
		return m.source.fault(err)
	}
	var names []string
	if err := m.source.conn.QueryRow(ctx, "SELECT array_agg(name::text ORDER BY name) FROM firn.generator WHERE shard = $1", p.shard).Scan(&names); err != nil {
		return m.source.fault(err)
	}
	dump, err := m.dump(ctx, program, p.source.schema)
	if err != nil {
		return err
	}
	return m.target.fault(pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		var missing bool
		err := tx.QueryRow(ctx, "SELECT firn.begin_load($1, $2, $3)", p.shard, p.target.term, p.target.attempt).Scan(&missing)
		if err != nil || !missing {
			return err
		}
		if _, err := tx.Exec(ctx, dump); err != nil {
			return fmt.Errorf("the schema %s cannot be made: %w", p.source.schema, err)
		}
		_, err = tx.Exec(ctx, "SET search_path = pg_catalog, pg_temp; SET client_min_messages = error")
		if err == nil {
			_, err = tx.Exec(ctx, "SELECT firn.end_load($1, $2, $3, VARIADIC $4::name[])", p.shard, p.target.term, p.target.attempt, names)
		}
		if err == nil {
			err = m.unlike(ctx, tx, p)
		}
		if err != nil {
			return err
		}
		return m.noteCopied(ctx, p, before)
	}))
}

// noteCopied has the source keep what its schema is, before the target commits its copy.
func (m *Mover) noteCopied(ctx context.Context, p pairOf, before string) error {
	var noted bool
	err := m.source.conn.QueryRow(ctx, "SELECT firn.note_copied($1, $2, $3, $4)", p.shard, p.source.term, p.source.attempt, before).Scan(&noted)
	if err != nil {
		return m.source.fault(err)
	}
	if !noted {
		return errChanged
	}
	return nil
}

// dump is the SQL of a schema without rows.
func (m *Mover) dump(ctx context.Context, program, schema string) (string, error) {
	conninfo, secret := m.source.conninfo()
	pattern := `"` + strings.ReplaceAll(schema, `"`, `""`) + `"`
	cmd := exec.CommandContext(ctx, program, "--schema-only", "--no-publications", "--no-subscriptions", "--schema="+pattern, "--dbname="+conninfo)
	cmd.Env = append(os.Environ(), secret...)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		failed := fmt.Errorf("pg_dump: %s", strings.TrimSpace(string(ended.Stderr)))
		if lost := m.source.conn.Ping(ctx); lost != nil { // by the source: who waits for it can run pg_dump again
			failed = fmt.Errorf("%w: %w", failed, lost)
		}
		return "", m.source.fault(failed)
	} else if err != nil {
		return "", err
	}
	return plain(string(out)), nil
}

var (
	restricted = regexp.MustCompile(`(?m)^\\restrict (\w+)\n`)
	timeout    = regexp.MustCompile(`(?m)^SET transaction_timeout = 0;\n`)
)

// plain leaves out of a dump what is not for all servers: two commands for psql, which
// have a word of chance, and a setting that older ones do not know. Only what stands
// before the first object is looked at: after that, what looks so may be part of a text.
func plain(dump string) string {
	head, objects, _ := strings.Cut(dump, "\n-- Name: ")
	if found := restricted.FindStringSubmatch(head); found != nil {
		head = strings.Replace(head, found[0], "", 1)
		objects = strings.Replace(objects, "\n\\unrestrict "+found[1]+"\n", "\n", 1)
	}
	return timeout.ReplaceAllLiteralString(head, "") + "\n-- Name: " + objects
}

// ErrNoDump says that this host has no pg_dump that can read the source: it takes the version of
// the source or a newer one.
var ErrNoDump = errors.New("pg_dump is not here in the version of the source, or newer")

// places are where pg_dump is, besides in the path, in as many versions as are installed. Of Debian's, the
// path has a program that chooses one of them.
var places = []string{"/usr/lib/postgresql/*/bin/pg_dump", "/usr/pgsql-*/bin/pg_dump", "/opt/homebrew/opt/postgresql@*/bin/pg_dump"}

// dumper finds the oldest pg_dump that is not older than the server: what a newer one
// writes, other servers may not understand. (That of 18 gives columns of 17.12 an option that 18 refuses.)
func dumper(ctx context.Context, e *end) (string, error) {
	if err := e.connect(ctx); err != nil {
		return "", err
	}
	var version int
	if err := e.conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::integer").Scan(&version); err != nil {
		return "", e.fault(err)
	}
	var candidates []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		found, err := exec.LookPath(filepath.Join(dir, "pg_dump"))
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(found); err == nil && filepath.Base(real) == "pg_wrapper" {
			continue
		}
		candidates = append(candidates, found)
	}
	for _, place := range places {
		found, err := filepath.Glob(place)
		if err != nil {
			return "", err
		}
		candidates = append(candidates, found...)
	}
	var program string
	oldest := math.MaxInt
	for _, c := range candidates {
		out, err := exec.CommandContext(ctx, c, "--version").Output()
		switch {
		case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", err
		}
		var major int
		if _, err := fmt.Sscanf(string(out), "pg_dump (PostgreSQL) %d", &major); err == nil && major >= version/10000 && major < oldest {
			program, oldest = c, major
		}
	}
	if program != "" {
		return program, nil
	}
	return "", fmt.Errorf("%w: it is PostgreSQL %d", ErrNoDump, version/10000)
}
