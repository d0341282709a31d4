package console

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// How often the store is asked for workers while somebody looks, for how long it may
// think about it, and how many are shown.
const (
	rosterEvery = 5 * time.Second
	rosterWait  = 5 * time.Second
	rosterMost  = 100
)

// A roster knows the workers of the pools as they were a few seconds ago. Asking for
// them may wait for a store that is away, which the page must not.
type roster struct {
	ask func(context.Context) ([]Worker, error) // nil: there are none to show

	mu    sync.Mutex // guards the rest
	busy  bool
	asked time.Time
	heard time.Time // when the list was had; zero: not yet
	list  []Worker
	err   error // why it could not be had again
}

// now returns the list as it is known, and when that was. It sees to it that it is
// asked for again where it is old.
func (r *roster) now() (list []Worker, heard time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ask != nil && !r.busy && time.Since(r.asked) >= rosterEvery {
		r.busy, r.asked = true, time.Now()
		go r.refresh()
	}
	return r.list, r.heard, r.err
}

func (r *roster) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), rosterWait)
	defer cancel()
	list, err := r.ask(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy, r.err = false, err
	if err == nil {
		r.list, r.heard = list, time.Now()
	}
}

// A workerView is a worker as the page shows it.
type workerView struct {
	Store   string    `json:"store"`
	Pool    string    `json:"pool"`
	Worker  int64     `json:"worker"`
	Held    bool      `json:"held"`
	Ours    bool      `json:"ours"`
	Name    string    `json:"name"`
	Term    uint64    `json:"term"`
	Free    float64   `json:"free_seconds"`
	Horizon time.Time `json:"horizon"`
	Ahead   float64   `json:"ahead_seconds"` // the horizon was, when the list was had
}

// A rosterView are the workers of all pools: ours first, then those that are held.
type rosterView struct {
	Known   bool         `json:"known"` // somebody can be asked, and has answered
	Age     float64      `json:"age_seconds"`
	Problem string       `json:"problem,omitempty"`
	Workers []workerView `json:"workers"`
	More    int          `json:"more"` // that are left out
}

// view says which workers are ours by what the sources hold.
func (r *roster) view(sources []sourceView) *rosterView {
	if r.ask == nil {
		return nil
	}
	list, heard, err := r.now()
	v := &rosterView{Known: !heard.IsZero(), Problem: reason(err), Workers: []workerView{}}
	if v.Known {
		v.Age = time.Since(heard).Seconds()
	}
	for _, w := range list {
		ours := slices.ContainsFunc(sources, func(s sourceView) bool {
			return s.Store == w.Store && s.Pool == w.Pool && slices.Contains(s.Workers, w.Worker)
		})
		v.Workers = append(v.Workers, workerView{
			Store: w.Store, Pool: w.Pool, Worker: w.Worker, Held: w.Held, Ours: ours && w.Held, Name: w.Name, Term: w.Term,
			Free: w.Free.Seconds(), Horizon: w.Horizon.UTC(), Ahead: w.Horizon.Sub(heard).Seconds(),
		})
	}
	slices.SortStableFunc(v.Workers, func(a, b workerView) int {
		if a.rank() != b.rank() {
			return a.rank() - b.rank()
		}
		if a.Pool != b.Pool {
			return strings.Compare(a.Pool, b.Pool)
		}
		return int(a.Worker - b.Worker)
	})
	if v.More = max(len(v.Workers)-rosterMost, 0); v.More > 0 {
		v.Workers = v.Workers[:rosterMost]
	}
	return v
}

func (w workerView) rank() int {
	switch {
	case w.Ours:
		return 0
	case w.Held:
		return 1
	}
	return 2
}
