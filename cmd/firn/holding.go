package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/leash"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// A holding is COMMAND with the worker that is held for it.
type holding struct {
	cmd     *cobra.Command
	held    *lease.Worker
	program *leash.Program
	args    []string
	grace   time.Duration
	errs    io.Writer
	json    bool
	store   string // its URL, as hints name it

	horizon time.Time // highest seen
	why     string    // it was stopped, if it was
}

// run runs COMMAND, and returns its exit status when nothing is left of it.
func (h *holding) run(ctx context.Context, path string, signals <-chan os.Signal) (int, error) {
	now := h.held.State()
	variables := workerVariables(now.Layout, now.Worker)
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return variables[name] != ""
	})
	for name, value := range variables {
		env = append(env, name+"="+value)
	}
	var err error
	h.horizon = now.EndsAt
	h.program, err = leash.Start(path, h.args, env, now.EndsAt.Add(-holdLeash))
	if err != nil {
		return 0, cannotRun(h.args[0], err)
	}
	defer h.program.Off()
	// Whoever reads standard error may keep it waiting, but not the watch.
	var told sync.WaitGroup
	told.Go(func() {
		h.tell(holdEvent{Event: "start", Pool: now.Pool, Worker: &now.Worker, Horizon: phrase.Instant(now.EndsAt), PID: h.program.PID(), Environment: variables})
	})
	ctx, cancel := context.WithCancel(ctx)
	told.Go(func() { h.watch(ctx) })
	status := h.program.Wait(signals, func() {
		told.Go(func() {
			ui.PrintWarning(h.errs, "%s has ended and left processes behind, which are stopped too", h.args[0])
		})
	})
	cancel()
	told.Wait()
	if h.why != "" {
		status = exitStopped
	}
	return status, nil
}

// watch keeps COMMAND on the leash of the grant, and stops it when it has to stop.
func (h *holding) watch(ctx context.Context) {
	look := time.NewTicker(holdLook)
	defer look.Stop()
	done := h.held.Done()
	for {
		select {
		case <-ctx.Done():
			return
		case <-done:
			done = nil
			h.stop(h.held.Err())
		case <-look.C:
			if horizon := h.held.State().EndsAt; horizon.After(h.horizon) {
				h.horizon = horizon
				h.program.Until(horizon.Add(-holdLeash))
			}
		}
	}
}

// stop stops COMMAND, and says why.
func (h *holding) stop(err error) {
	h.why = phrase.Reason(err)
	f, left := h.verdict(err)
	h.program.Stop(left)
	report(h.errs, h.cmd, f)
}

// verdict is how to say that COMMAND has to stop, and how long it has for that.
func (h *holding) verdict(err error) (*ui.Failure, time.Duration) {
	f := classify(err)
	f.Err = fmt.Errorf("%s has to stop: %s", h.args[0], phrase.Reason(err))
	var lost *lease.LostError
	var forgot *store.ForgotError
	var other *store.OtherStoreError
	var step *lease.StepError
	switch {
	case errors.As(err, &lost):
		f = f.Hint("to see who has it: firn worker ls")
	case errors.As(err, &forgot):
		url := cmp.Or(h.store, forgot.Store)
		return hintLost(f, url, "stop all processes that use the store, then: "+remedy.Recover(url)), 0
	case errors.As(err, &other):
		return f, 0
	case errors.As(err, &step): // as above, what is issued from now on is not covered
		return f, 0
	}
	return f, max(min(h.grace, time.Until(h.horizon.Add(-holdKill))), 0)
}

// A holdEvent is the start or the end of COMMAND as --json prints it.
type holdEvent struct {
	Event       string            `json:"event"` // wait, start or end
	Pool        string            `json:"pool,omitempty"`
	Worker      *int64            `json:"worker,omitempty"`
	StartsAt    string            `json:"starts_at,omitempty"` // the pool's ids
	Horizon     string            `json:"horizon,omitempty"`   // of the first grant
	PID         int               `json:"pid,omitempty"`       // of COMMAND
	Environment map[string]string `json:"environment,omitempty"`
	Status      *int              `json:"status,omitempty"`
	Stopped     string            `json:"stopped,omitempty"` // why, if firn has stopped it
}

func (h *holding) tell(e holdEvent) {
	if h.json {
		json.NewEncoder(h.errs).Encode(e)
	}
}
