package postgres

import (
	"context"
	"fmt"
)

// AwaitedStandbys says for which standbys commits wait, and how many are connected; "" if commits
// wait for none. Get, Put and List wait with them. AwaitedStandbys does not: it tells
// why a call does not end.
func (s *Store) AwaitedStandbys(ctx context.Context) (string, error) {
	l, err := s.query(ctx)
	if err != nil || l.names == "" || l.standby {
		return "", s.table.Explain(ctx, s.db, err)
	}
	return fmt.Sprintf("synchronous_standby_names = '%s', %s", l.names, l.company()), nil
}
