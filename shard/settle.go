package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// What is done after an error, before the next try.
type action int

const (
	giveUp action = iota
	follow        // go where the shard went
	wait          // it may open again here
	look          // look at all servers: try again if the shard is elsewhere
	reach         // the server does not answer: it may again, or the shard be elsewhere
)

// answers say what is done where firn.enter, or the connection to it, fails with an
// SQLSTATE. The others, and all that do not have to do with the shard, are the
// caller's.
var answers = map[string]struct {
	do     action
	advice string
}{
	"ID001": {wait, "firn shard status says whether it moves, or waits for firn shard reopen"},
	"ID002": {follow, "firn shard status says whether it moves, and firn shard doctor compares what the servers say"},
	"ID003": {look, "if the original is permanently gone, firn shard reopen opens it here"},
	"ID005": {look, "firn shard doctor compares what the servers say"},
	"ID006": {look, "does the server's pool lead to another cluster?"},
	"3F000": {look, "the database knows nothing of firn: does the server's pool lead to it?"},
	"42P01": {look, ""},
	"42883": {look, "the firn of the database is older: firn shard init brings it up to date"},
	"42501": {giveUp, "the role that the pool connects as needs to be granted that of firn shard init --role"},

	"53300": {reach, ""}, // too many connections
	"57P01": {reach, ""}, // terminated by an administrator
	"57P02": {reach, ""}, // a crash
	"57P03": {reach, ""}, // it starts
}

// settle does what an error asks for before the next try. Where there is to be none,
// it returns the error.
func (r *run) settle(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return r.ended(ctx, err)
	}
	if r.trouble.IsZero() {
		r.trouble, r.said = time.Now(), make(map[string]error)
	}
	c := r.cluster
	if r.stage != routing {
		r.said[r.server] = err
	}
	do, advice := r.actionFor(err)
	switch do {
	case giveUp:
		return r.explain(err, advice)
	case follow:
		c.follow(r.number, r.server, movedTo(err))
		if r.hop() {
			return nil
		}
		if time.Since(r.trouble) >= min(strange, c.wait) { // they may be of before, and another one have it
			c.refresh(c.names(""))
		}
	case look:
		if c.look(ctx, c.names(""), time.Now()) != nil {
			return r.ended(ctx, err)
		}
		if server, none := c.route(r.number); none != nil || server == r.server {
			return r.explain(err, advice)
		}
		if r.hop() {
			return nil
		}
	case wait:
		if time.Since(r.trouble) >= min(strange, c.wait) {
			c.refresh(c.names(r.server))
		}
	case reach:
		c.refresh(c.names(r.server))
	}
	if waited := time.Since(r.trouble); waited >= c.wait {
		return r.explain(r.lost(err, waited), advice)
	}
	return r.rest(ctx, err)
}

// hop says whether a shard is followed at once: as often as there are servers. What is
// followed more often is between two that point at each other, as they do while it moves
// and one of them is away: it is waited for like a shard that is closed.
func (r *run) hop() bool {
	r.hops++
	return r.hops <= len(r.cluster.servers)
}

// lost adds to the error of the last try what the other servers have said.
func (r *run) lost(err error, waited time.Duration) error {
	for _, name := range slices.Sorted(maps.Keys(r.said)) {
		if name != r.server || r.stage == routing {
			err = fmt.Errorf("%w; %s said: %v", err, name, r.said[name])
		}
	}
	if len(r.said) > 1 {
		err = fmt.Errorf("%w; waited %s", err, waited.Round(time.Millisecond))
	}
	return err
}

// strange is for how long a shard is closed when it moves, at most.
const strange = 500 * time.Millisecond

// actionFor says what is done after an error.
func (r *run) actionFor(err error) (action, string) {
	code := sqlstate(err)
	a, known := answers[code]
	var nowhere *noServer
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &nowhere):
		return reach, ""
	case r.stage == routing || r.stage == working:
		return giveUp, ""
	case a.do == follow && movedTo(err) == "":
		return wait, "" // a fence that names no server: firn.enter does
	case known:
		return a.do, a.advice
	case strings.HasPrefix(code, "08"), code == "" && (r.stage == entering || errors.As(err, &connect)):
		return reach, "" // the connection was lost, or there was none
	}
	return giveUp, ""
}

// movedTo is where the error of a shard that has moved says it went.
func movedTo(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "ID002" {
		return e.Detail
	}
	return ""
}

// explain adds to an error where it was met.
func (r *run) explain(err error, advice string) error {
	if r.stage == routing {
		return err
	}
	return &TxError{r.number, r.server, err, advice}
}

// How long it is rested between tries: a sixth of how long the trouble lasts, so that
// a shard which opens again is found soon after.
const (
	minRest = 2 * time.Millisecond
	maxRest = 250 * time.Millisecond
)

// rest waits a moment, a different one for each who waits.
func (r *run) rest(ctx context.Context, err error) error {
	pause := min(max(minRest, time.Since(r.trouble)/6), maxRest)
	t := time.NewTimer(pause/2 + rand.N(pause))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return r.ended(ctx, err)
	}
}

// ended is the error where the caller's context ended before there was another try. It
// is the context's too, whenever that happened, unless the caller's function has run.
func (r *run) ended(ctx context.Context, err error) error {
	if r.stage != working && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w, while %w", ctx.Err(), err)
	}
	if r.stage != working && !r.trouble.IsZero() {
		err = r.lost(err, time.Since(r.trouble))
	}
	return r.explain(err, "")
}
