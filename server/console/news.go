package console

import (
	"context"
	"sync"
	"time"
)

// newsWait is for how long somebody else may think about an answer.
const newsWait = 5 * time.Second

// News is what somebody else said a few seconds ago. To ask may take long where they
// are away, which the page must not.
type news[T any] struct {
	ask   func(context.Context) (T, error) // nil: there is nobody
	every time.Duration                    // how often they are asked at most

	mu    sync.Mutex // guards the rest
	busy  bool
	asked time.Time
	heard time.Time // when they said it; zero: not yet
	said  T
	err   error // why it could not be had again
}

// now returns what is known, and when that was said. It sees to it that they are asked
// again where it is old.
func (n *news[T]) now() (said T, heard time.Time, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ask != nil && !n.busy && time.Since(n.asked) >= n.every {
		n.busy, n.asked = true, time.Now()
		go n.refresh()
	}
	return n.said, n.heard, n.err
}

func (n *news[T]) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), newsWait)
	defer cancel()
	said, err := n.ask(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy, n.err = false, err
	if err == nil {
		n.said, n.heard = said, time.Now()
	}
}

// A newsView is how old news are, as the page shows it.
type newsView struct {
	Known   bool    `json:"known"` // somebody has answered
	Age     float64 `json:"age_seconds"`
	Problem string  `json:"problem,omitempty"`
}

func newsOf(heard time.Time, err error) newsView {
	v := newsView{Known: !heard.IsZero(), Problem: reason(err)}
	if v.Known {
		v.Age = time.Since(heard).Seconds()
	}
	return v
}
