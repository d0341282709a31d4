package redis

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
)

// page is how many records the server looks at before it turns to others: some
// milliseconds.
const page = 10_000

// List implements [store.Store]. The server looks at all records, whatever their
// keys, 10,000 with each command.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Record, error) {
	pattern, count := escape.Replace(prefix)+"*", strconv.Itoa(page)
	found := make(map[string]store.Record) // by key: a page may repeat what another had
	run := ""
	for cursor := "0"; ; {
		items, err := s.strings(ctx, 3, listScript, cursor, pattern, count)
		if err != nil {
			return nil, err
		}
		// A cursor means something else to another server, or to this one when it
		// was started again: records would be missing.
		if cursor != "0" && items[2] != run {
			return nil, s.errorf("another server has answered in the middle of a list; try again")
		}
		cursor, run = items[1], items[2]
		now, err := instant(items[0])
		if err != nil {
			return nil, s.explain(err)
		}
		list, err := records(now, items[3:])
		if err != nil {
			return nil, s.explain(err)
		}
		for _, r := range list {
			found[r.Key] = r
		}
		if cursor == "0" {
			break
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) }), nil
}

// escape makes a prefix a pattern that matches itself.
var escape = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)
