package console

import (
	"slices"
	"time"

	"github.com/firn-id/firn/internal/phrase"
)

// rosterMost is how many workers are shown.
const rosterMost = 100

// A roster knows the workers of the pools.
type roster struct{ news[[]Worker] }

// A workerView is a worker as the page shows it.
type workerView struct {
	Store   string    `json:"store"`
	Pool    string    `json:"pool"`
	Worker  int64     `json:"worker"`
	Text    string    `json:"text"`
	State   string    `json:"state"`
	Ours    bool      `json:"ours"`
	Name    string    `json:"name"`
	Term    uint64    `json:"term"`
	Free    float64   `json:"free_seconds"`
	Horizon time.Time `json:"horizon"`
	Ahead   float64   `json:"ahead_seconds"` // the horizon was, when the list was had
}

// A rosterView are the workers of all pools: ours first, then those that are held.
type rosterView struct {
	newsView
	Workers []workerView `json:"workers"`
	More    int          `json:"more"` // that are left out
}

// view says which workers are ours by what the sources hold.
func (r *roster) view(sources []sourceView) *rosterView {
	if r.ask == nil {
		return nil
	}
	list, heard, err := r.now()
	v := &rosterView{newsView: newsOf(heard, err), Workers: []workerView{}}
	for _, w := range list {
		ours := slices.ContainsFunc(sources, func(s sourceView) bool {
			return s.State.Store == w.Store && s.State.Pool() == w.Pool && s.State.Lease != nil && slices.Contains(s.State.Lease.Workers, w.Worker)
		})
		v.Workers = append(v.Workers, workerView{
			Store: w.Store, Pool: w.Pool, Worker: w.Worker, Text: w.Text, State: w.State, Ours: ours && isTaken(w.State), Name: w.Name, Term: w.Term,
			Free: w.Free.Seconds(), Horizon: w.Horizon.UTC(), Ahead: w.Horizon.Sub(heard).Seconds(),
		})
	}
	slices.SortStableFunc(v.Workers, func(a, b workerView) int {
		if a.rank() != b.rank() {
			return a.rank() - b.rank()
		}
		if a.Pool != b.Pool {
			return phrase.CompareNames(a.Pool, b.Pool)
		}
		return int(a.Worker - b.Worker)
	})
	if v.More = max(len(v.Workers)-rosterMost, 0); v.More > 0 {
		v.Workers = v.Workers[:rosterMost]
	}
	return v
}

// isTaken reports whether a process may hold a worker in that state.
func isTaken(state string) bool { return state != "free" && state != "unusable" }

func (w workerView) rank() int {
	switch {
	case w.Ours:
		return 0
	case isTaken(w.State):
		return 1
	}
	return 2
}
