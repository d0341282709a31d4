package daemon

import (
	"time"

	"github.com/firn-id/firn/server"
)

// traffic is what each listener counts.
func (f *front) traffic() []server.Traffic {
	var all []server.Traffic
	if !f.options.RESP.Off() {
		s := &f.stats
		all = append(all, server.Traffic{
			Listener: "resp", Open: s.Conns.Load(), Accepted: s.Accepted.Load(), Refused: s.Rejected.Load(), Dropped: s.Dropped.Load(),
		})
	}
	for _, l := range f.web {
		all = append(all, server.Traffic{Listener: l.name, Open: l.now.Load(), Accepted: l.accepted.Load(), Refused: l.refused.Load()})
	}
	return all
}

// A reloading is what came of reading the settings.
type reloading struct {
	at  time.Time
	err error // nil: they are in force
}

// lastReload is what came of it last.
func (f *front) lastReload() (time.Time, error) {
	last := f.reloaded.Load()
	return last.at, last.err
}
