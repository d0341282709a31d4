package move

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// An UnlikeError says that the schema that was made on the target is not that of the shard. The copy
// was not kept, and no row was copied.
type UnlikeError struct {
	Shard int64
	Lines []string // in which they differ, each with the server that has it
}

func (e *UnlikeError) Error() string {
	return fmt.Sprintf("the schema of shard %d that was just made is another one: %s", e.Shard, strings.Join(e.Lines, "; "))
}

// unlike refuses a schema that was just made on the target and is not that of the source: default
// rights of the target's database add to what a dump has, and a dump of a schema has no extensions.
// Servers of two versions do not print all expressions in the same way, so these are not compared then.
func (m *Mover) unlike(ctx context.Context, tx pgx.Tx, p pairOf) error {
	const version = "SELECT current_setting('server_version_num')::integer / 10000"
	var from, to int
	if err := m.source.conn.QueryRow(ctx, version).Scan(&from); err != nil {
		return m.source.fault(err)
	}
	if err := tx.QueryRow(ctx, version).Scan(&to); err != nil {
		return err
	}
	const lines = "SELECT string_to_array(firn.fingerprint($1, $2), E'\n')"
	var source, target []string
	if err := m.source.conn.QueryRow(ctx, lines, p.source.schema, from != to).Scan(&source); err != nil {
		return m.source.fault(err)
	}
	if err := tx.QueryRow(ctx, lines, p.source.schema, from != to).Scan(&target); err != nil {
		return err
	}
	differ := slices.Concat(only(m.source.Name, source, target), only(m.target.Name, target, source))
	if len(differ) == 0 {
		return nil
	}
	return &UnlikeError{p.shard, differ}
}

// only are the lines that the server has and the other one does not.
func only(server string, has, other []string) (lines []string) {
	in := make(map[string]bool, len(other))
	for _, line := range other {
		in[line] = true
	}
	for _, line := range has {
		if !in[line] {
			lines = append(lines, server+" has "+line)
		}
	}
	return lines
}
