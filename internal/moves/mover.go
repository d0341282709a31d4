package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// This file has this program move a shard in a process of its own, so that it can be
// killed.

// order names the variable with what the process is to do.
const order = "FIRN_MOVES_ORDER"

// An Order is what a mover is to do.
type Order struct {
	From, To  string // addresses of servers a and b
	Shard     int64
	Do        string            // "move", "revert", "finish" or "abort"
	Addresses map[string]string // how the other server reaches each
	Lag       time.Duration     // how far the copy may be behind when the shard changes over; 0: as usual
}

var errNoMover = errors.New("this process is no mover")

// asMover does what the order says; errNoMover where there is none.
func asMover() error {
	text := os.Getenv(order)
	if text == "" {
		return errNoMover
	}
	signal.Ignore(os.Interrupt) // Ctrl-C goes to all processes of a terminal, and the run is to come to its end
	var o Order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	servers := make([]topology.Server, 2)
	for i, url := range []string{o.From, o.To} {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			return err
		}
		servers[i] = topology.Server{Name: string(rune('a' + i)), Config: config}
	}
	out := json.NewEncoder(os.Stdout)
	var last move.Phase
	m := move.New(servers[0], servers[1], &move.Options{LockWait: 4 * time.Minute, Addresses: o.Addresses, Lag: o.Lag, Progress: func(p move.Progress) {
		if p.Phase != last {
			last = p.Phase
			out.Encode(Said{At: time.Now(), Phase: p.Phase})
		}
	}})
	defer m.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var moved []move.Moved
	var err error
	switch shards := []int64{o.Shard}; o.Do {
	case "move":
		moved, err = m.Move(ctx, shards)
	case "revert":
		moved, err = m.Revert(ctx, shards)
	case "finish":
		_, err = m.Finish(ctx, shards)
	case "abort":
		_, err = m.Abort(ctx, shards)
	}
	if err != nil {
		return err
	}
	return out.Encode(Said{At: time.Now(), Moved: moved})
}

// A mover is such a process.
type mover struct {
	*exec.Cmd
	n      int64 // of the shard
	errs   bytes.Buffer
	phases chan move.Phase // as they begin; closed at its end
	ended  chan struct{}

	said []Said // what it said, after its end
	err  error
}

// lag is more than the usual where harms are done: their pauses compare with nothing, and a machine with two
// cores is seldom up to date to 50 ms after a crash.
func (w *world) lag() time.Duration {
	if w.faults {
		return 2 * time.Second
	}
	return 0
}

// startMover starts one.
func (w *world) startMover(do string, n int64) (*mover, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(Order{w.urls["a"], w.urls["b"], n, do, w.addresses, w.lag()})
	if err != nil {
		return nil, err
	}
	m := &mover{Cmd: exec.Command(path), n: n, phases: make(chan move.Phase, 100), ended: make(chan struct{})}
	m.Env = append(os.Environ(), order+"="+string(text))
	m.Stderr = &m.errs
	out, err := m.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.Start(); err != nil {
		return nil, err
	}
	go m.listen(out)
	return m, nil
}

// listen hears what the mover says until it has ended. One that was killed may have left half of a line.
func (m *mover) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var s Said
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			continue
		}
		m.said = append(m.said, s)
		select {
		case m.phases <- s.Phase:
		default:
		}
	}
	if m.err = m.Wait(); m.err != nil {
		m.err = fmt.Errorf("the mover: %w: %s", m.err, strings.TrimSpace(m.errs.String()))
	}
	close(m.phases)
	close(m.ended)
}

// until waits until the mover is in a phase, or past it, and then some time. It is false if the mover
// ended before.
func (m *mover) until(phase move.Phase, delay time.Duration) bool {
	for phase != "" {
		now, runs := <-m.phases
		if !runs {
			return false
		}
		if slices.Index(phases, now) >= slices.Index(phases, phase) {
			break
		}
	}
	select {
	case <-m.ended:
		return false
	case <-time.After(delay):
		return true
	}
}

// result waits for its end, and takes down what it said.
func (m *mover) result(o *outcome) error {
	<-m.ended
	o.said = append(o.said, m.said...)
	for _, s := range m.said {
		for _, one := range s.Moved {
			o.Pause = max(o.Pause, one.Pause)
		}
	}
	return m.err
}
