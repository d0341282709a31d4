package setup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// This file doubts clocks. What a clock says once may stay in all later ids of a shard.

// apart is how far two clocks that agree may be from each other.
const apart = time.Hour

// thisHost is what messages call the clock of this process.
const thisHost = "this host"

// A ClockError says that two clocks differ by more than an hour, so that one of them is wrong.
type ClockError struct {
	Clock, Other    string // of which host: "server NAME" or "this host"
	Says, OtherSays time.Time
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("shard: the clock of %s says %s, and the clock of %s says %s: later ids would keep a wrong time", e.Clock, showTime(e.Says), e.Other, showTime(e.OtherSays))
}

func showTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Above returns the state above which a reopened shard makes ids: that of the latest clock, plus a margin for
// ids of the lost server that were ahead of its clock. Ahead says how far the clock of each server is
// ahead of now, the clock of this process. It returns a [*ClockError] where no other clock is within an
// hour of the latest.
func Above(l firn.Layout, now time.Time, ahead map[string]time.Duration, margin time.Duration) (state int64, err error) {
	type clock struct {
		host string
		says time.Time
	}
	all := []clock{{thisHost, now}}
	for name, d := range ahead {
		all = append(all, clock{"server " + name, now.Add(d)})
	}
	slices.SortFunc(all, func(a, b clock) int { return cmp.Or(b.says.Compare(a.says), cmp.Compare(a.host, b.host)) })
	latest := all[0]
	if len(all) < 2 {
		return 0, fmt.Errorf("shard: no server has said what its clock says")
	}
	if next := all[1]; latest.says.Sub(next.says) > apart {
		return 0, &ClockError{latest.host, next.host, latest.says, next.says}
	}
	seq, _ := l.Field("seq")
	return int64(l.Tick(latest.says.Add(margin))) << seq.Width, nil
}

// checkClocks returns a [*ClockError] where a server that is in no cluster yet has a clock
// that is more than an hour from this process's. The server's ids follow it from then on.
func checkClocks(sites []*site) error {
	for _, t := range sites {
		if joins := t.view == nil || t.view.Cluster == ""; joins && t.ahead.Abs() > apart {
			now := time.Now()
			return &ClockError{"server " + t.server.Name, thisHost, now.Add(t.ahead), now}
		}
	}
	return nil
}
