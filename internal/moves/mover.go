package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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
	From, To string // addresses of servers a and b
	Shard    int64
	Do       string // "move", "revert", "finish" or "abort"
}

// asMover does what the order says; errNoMover where there is none.
func asMover() error {
	text := os.Getenv(order)
	if text == "" {
		return errNoMover
	}
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
	m := move.New(servers[0], servers[1], &move.Options{LockWait: 4 * time.Minute, Progress: func(p move.Progress) {
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
	out, errs bytes.Buffer
}

// startMover starts one.
func (w *world) startMover(do string, n int64) (*mover, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(Order{w.servers["a"].URL(), w.servers["b"].URL(), n, do})
	if err != nil {
		return nil, err
	}
	m := &mover{Cmd: exec.Command(path)}
	m.Env = append(os.Environ(), order+"="+string(text))
	m.Stdout, m.Stderr = &m.out, &m.errs
	return m, m.Start()
}

// wait waits for its end, and takes down what it said.
func (m *mover) wait(o *outcome) error {
	err := m.Wait()
	all := read(m.out.Bytes())
	o.said = append(o.said, all...)
	for _, s := range all {
		for _, one := range s.Moved {
			o.Pause = max(o.Pause, one.Pause)
		}
	}
	return err
}

// result is the error of a mover that has ended.
func (m *mover) result(err error) error {
	if err != nil {
		return fmt.Errorf("the mover: %w: %s", err, strings.TrimSpace(m.errs.String()))
	}
	return nil
}
