package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/shard"
	fromurl "github.com/firn-id/firn/store/open"
)

func newServe() *cobra.Command {
	var o serveCommand
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Give ids to any language, over the Redis protocol and HTTP",
		Long: `Give ids to any language: INCR photo from any Redis client, or POST
/v1/series/photo/next over HTTP. The series are those of firn.yaml; without any, each
name gives ids of the pool of --pool, or default. docs/server.md has all of it.
Without series, on a store that was recovered and so may have lost a counter, a name
that no counter has gives nothing, unless --kind flake says that none was lost.

It listens on this host only. Beyond that it wants tokens or client certificates, and
a --store that all servers share. Several servers on one store never give the same id.

While the store is away ids go on for the outage budget; /readyz says so before they
end. If the store is away at the start, the server comes up, is not ready, and begins
by itself when the store answers. What will not pass by itself ends the start.

SIGHUP reads firn.yaml, certificates and keys again; no connection is dropped, and
where anything is wrong everything stays as it was. SIGINT and SIGTERM stop it: what
was asked is answered, workers and numbers are given back, and the exit code is 0. A
second one ends it at once.

Where it listens is printed to standard output, what happens to standard error; with
--json both are JSON, an object a line.`,
		Example: `  firn serve
  firn serve --store postgres://app@db/app --config /etc/firn/firn.yaml
  firn serve --resp unix:/run/firn/resp.sock --http off
  firn serve token --name shop`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.load = func() (*servePlan, error) {
				s, err := loadSettings(cmd)
				if err != nil {
					return nil, err
				}
				return s.servePlan()
			}
			if err := noPoolVariables(); err != nil {
				return err
			}
			o.hints = hinter{cmd}
			o.json, o.stray = wantsJSON(cmd), strayVariables(cmd.Root(), os.Environ())
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addListen(cmd)
	cmd.Flags().BoolVar(&o.noAuth, "insecure-no-auth", false, "let other hosts come without a token or a client certificate")
	addStore(cmd)
	cmd.Flags().String("kind", "", "flake: on a store that was recovered, a name that no counter has gives ids all the same, as no counter was lost")
	cmd.Flags().String("pool", "", "the pool of workers, where firn.yaml names no pools ("+pool.Default+")")
	cmd.AddCommand(newServeToken())
	return cmd
}

// noPoolVariables refuses variables of a pool's settings. A server has those of firn.yaml,
// of which there may be several pools; a setting that is said and ignored could be meant for
// any of them.
func noPoolVariables() error {
	for _, flag := range config.KeyNames(config.LeaseKeys) {
		name := config.VariableName(flag)
		if os.Getenv(name) == "" || !slices.Contains(variableNames(), name) {
			continue
		}
		return ui.Bad("%s is set, and firn serve takes the settings of pools from firn.yaml only", name).Hint("env -u %s firn serve; in firn.yaml: pools: { NAME: { %s: %s } }", name, flag, os.Getenv(name))
	}
	return nil
}

// A serveCommand is firn serve.
type serveCommand struct {
	load   func() (*servePlan, error) // reads the settings as they are now
	hints  hinter
	noAuth bool
	json   bool
	stray  []strayVariable

	errs   io.Writer
	log    *slog.Logger
	notify *notifier
	plan   *servePlan // in force
	keys   keyring
	stores *sharedStores
	supplies
	shown   atomic.Pointer[supplies]       // those of now, for the console
	sharded atomic.Pointer[[]shard.Server] // the same, of servers with shards
	late    chan struct{}                  // a supply was opened after the start
	server  *server.Server
	relist  chan struct{} // of one: a counter was created since they were listed

	refused  []string      // counters of the store that could not be opened; of listAgain
	listTook time.Duration // the last list, whether it was had or not
}

func (o *serveCommand) run(ctx context.Context, out, errs io.Writer) error {
	o.errs, o.log = errs, serveLog(errs, o.json)
	o.stores, o.relist = newSharedStores(o.log), make(chan struct{}, 1)
	for _, v := range o.stray {
		o.log.Warn(v.text(), "do", v.do)
	}
	if os.Getenv(config.VariableName("keys")) != "" {
		o.log.Warn("firn serve does not read the variable FIRN_KEYS; it takes the keys of a public form from firn.yaml", "do", "public: { form: FORM, keys: FILE }, or keys: env:NAME")
	}
	o.notify, o.late = newNotifier(o.log), make(chan struct{}, 1)
	asked, stop := ui.UntilStopped(ctx)
	defer stop()
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)

	bound, err := o.begin(asked)
	if err != nil {
		return ui.Signalled(asked, err)
	}
	f := &front{options: &o.plan.options, server: o.server, keys: &o.keys, log: o.log, supplies: &o.shown, sharded: &o.sharded}
	if err = f.open(bound); err == nil {
		err = o.announce(out, bound)
	}
	if err == nil {
		o.notify.ready(o.status())
		err = o.serve(asked, hangUp, f.failed)
	}
	o.notify.stopping()
	o.log.Info("stopping")
	o.server.Stop()
	f.close()
	closeAll(o.supplies.without(nil), o.log)
	return err
}

// begin reads the settings, listens, and opens what is served.
func (o *serveCommand) begin(ctx context.Context) (bound []boundListener, err error) {
	if o.plan, err = o.load(); err != nil {
		return nil, err
	}
	if err := o.plan.guard(o.noAuth); err != nil {
		return nil, err
	}
	if err := o.keys.load(&o.plan.options); err != nil {
		return nil, err
	}
	if err := o.plan.openForms(); err != nil {
		return nil, err
	}
	if bound, err = bind(&o.plan.options); err != nil {
		return nil, err
	}
	// After the listeners: where they cannot be had, no store is made.
	if err := o.addCounters(ctx, o.plan); err != nil {
		for _, b := range bound {
			b.Close()
		}
		return nil, err
	}
	now, fresh := supplies{}.enough(o.plan, o.log, true)
	o.supplies = now
	o.shown.Store(&now)
	o.sharded.Store(&o.plan.sharded)
	defer func() {
		if err != nil {
			for _, b := range bound {
				b.Close()
			}
			closeAll(fresh, o.log)
		}
	}()
	if err := o.plan.flakesAgree(ctx, o.stores); err != nil {
		return nil, err
	}
	if err := beginAll(ctx, fresh, func(s *supply) error { return s.begin(ctx, o.stores, o.openedLate) }); err != nil {
		return nil, err
	}
	options, series, err := o.plan.serverOptions(now, o.log, o.errs) // pools that are open have told their layouts
	if err != nil {
		return nil, err
	}
	o.server, err = server.New(options, series...)
	o.stores.started()
	return bound, err
}

// openedLate has the server learn the layout of a pool that could not be read before.
func (o *serveCommand) openedLate() {
	select {
	case o.late <- struct{}{}:
	default: // it is to learn already
	}
}

// learn gives the server the layouts of the pools that are open by now, and has it give no ids by
// the name of a counter.
func (o *serveCommand) learn(ctx context.Context) {
	for _, d := range o.plan.hearFlakes(ctx, o.stores) {
		var f *ui.Failure
		if errors.As(o.plan.heard[d], &f) {
			f.Hint("then send SIGHUP to this server, or restart it")
		}
		o.log.Error("a series of firn.yaml has the name of a counter, and gives nothing", withHint(d.hintOf(f), "series", d.Name, "err", f)...)
	}
	options, series, err := o.plan.serverOptions(o.supplies, o.log, io.Discard)
	if err == nil {
		err = o.server.Replace(options, series...)
	}
	if err != nil {
		o.log.Error("the server has not learned the layouts of its pools; SIGHUP tries again", "err", err)
	}
}

// serve does what signals ask for, until one asks to stop or a listener fails.
func (o *serveCommand) serve(asked context.Context, hangUp <-chan os.Signal, failed <-chan error) error {
	beats := o.notify.beats()
	listing := time.NewTimer(mostPause)
	defer listing.Stop()
	var reloading chan error // nil: no reload is under way
	defer func() {
		if reloading != nil {
			<-reloading
		}
	}()
	for {
		again, late, relist, unlisted := hangUp, o.late, o.relist, listing.C
		if reloading != nil {
			again, late, relist, unlisted = nil, nil, nil, nil // one at a time
		} else if o.plan.names == nil && o.plan.allHeard() {
			unlisted = nil
		}
		select {
		case <-asked.Done():
			return nil
		case err := <-failed:
			return err
		case <-beats:
			o.notify.alive()
		case <-late:
			o.learn(asked)
		case <-again:
			o.notify.reloading()
			reloading = make(chan error, 1)
			go func() { reloading <- o.reload(asked, true) }()
		case <-relist:
			reloading = make(chan error, 1)
			go func() { reloading <- o.reload(asked, false) }()
		case <-unlisted:
			reloading = make(chan error, 1)
			go func() { reloading <- o.listAgain(asked) }()
		case err := <-reloading:
			reloading = nil
			listing.Reset(o.listPause())
			if errors.Is(err, errUnlisted) {
				continue
			}
			o.told(err)
			o.notify.ready(o.status())
		}
	}
}

// listPause is how long to wait before the store is asked for its counters again.
func (o *serveCommand) listPause() time.Duration {
	if o.plan.unlisted != nil || !o.plan.allHeard() {
		return mostPause
	}
	return max(listEvery/2+rand.N(listEvery/2), 20*o.listTook) // of many counters, or on a slow store, seldom
}

// status is what the server does, in a few words.
func (o *serveCommand) status() string {
	what := phrase.Plural(len(o.plan.series), "configured name")
	if o.plan.others != nil {
		what = "any name"
	}
	return "serving " + what
}

// serveLog returns the log of a server.
func serveLog(errs io.Writer, asJSON bool) *slog.Logger {
	o := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok {
			return slog.String(a.Key, phrase.WithoutKeys(phrase.WithoutPackage(err.Error())))
		}
		if d := a.Value; d.Kind() == slog.KindDuration {
			return slog.String(a.Key, d.Duration().String())
		}
		return a
	}}
	if asJSON {
		return slog.New(slog.NewJSONHandler(errs, o))
	}
	return slog.New(slog.NewTextHandler(errs, o))
}

// A startLine is where a server listens, as --json prints it.
type startLine struct {
	Event  string            `json:"event"` // listening
	PID    int               `json:"pid"`
	Listen map[string]string `json:"listen"` // by name: resp, http, admin
	TLS    bool              `json:"tls"`
	Store  string            `json:"store,omitempty"`
	Class  string            `json:"class,omitempty"`
	Config string            `json:"config,omitempty"`
	Ready  bool              `json:"ready"`
}

// announce prints where the server listens, and what to type next.
func (o *serveCommand) announce(out io.Writer, bound []boundListener) error {
	if o.plan.options.Plain() && len(o.plan.options.Tokens) > 0 {
		o.log.Warn("tokens travel where others may read them: there is no tls in the config")
	}
	if o.keys.on() {
		o.log.Info("tls", "certificate", o.keys.ends())
	}
	st := o.firstState()
	line := startLine{
		Event: "listening", PID: os.Getpid(), Listen: map[string]string{}, TLS: o.keys.on(),
		Store: st.Store, Class: st.Class, Config: o.plan.config, Ready: o.server.Ready() == nil,
	}
	for _, b := range bound {
		line.Listen[b.flag] = b.at.String()
	}
	if o.json {
		return json.NewEncoder(out).Encode(line)
	}
	var text strings.Builder
	for _, b := range bound {
		fmt.Fprintf(&text, "%-5s  %s\n", b.flag, b.at)
		if try := o.tryLine(b); try != "" {
			fmt.Fprintf(&text, "       %s\n", try)
		}
	}
	for _, line := range o.facts(st) {
		fmt.Fprintf(&text, "%s\n", line)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// firstState is the state of the first series, or of any name.
func (o *serveCommand) firstState() server.State {
	return o.supplies[o.plan.drawings()[0].Key()].state()
}

// tryLine is a command that draws from a listener.
func (o *serveCommand) tryLine(b boundListener) string {
	name, secret := o.plan.example(), o.keys.on() && b.at.Network == "tcp"
	var words []string
	switch b.flag {
	case "resp":
		words = append(words, "redis-cli")
		words = append(words, redisFlags(b.at)...)
		if secret {
			words = append(words, "--tls")
		}
		if len(o.plan.options.Tokens) > 0 {
			words = append(words, "-a TOKEN")
		}
		words = append(words, "INCR "+name)
		for _, s := range o.server.All() {
			if s.Name() == name && !s.Numeric() {
				words[len(words)-1] = "FIRN.NEXT " + name
			}
		}
	case "http":
		words = append(words, "curl -X POST")
		if len(o.plan.options.Tokens) > 0 {
			words = append(words, `-H "Authorization: Bearer TOKEN"`)
		}
		words = append(words, curlURL(b.at, secret)+"/v1/series/"+name+"/next")
	case "admin":
		words = append(words, "curl", curlURL(b.at, secret)+"/readyz")
	}
	return strings.Join(words, " ")
}

// facts say what the ids are worth, and for how long they go on.
func (o *serveCommand) facts(st server.State) []string {
	var lines []string
	switch {
	case o.plan.names != nil && o.plan.names.mayBeLost():
		lines = append(lines, "the store was recovered and may have lost counters: only the names of its counters give anything; to have every other name give ids: "+o.hints.compose("firn serve --kind flake"))
	case o.plan.others == nil:
		lines = append(lines, fmt.Sprintf("%s: %d series", o.plan.config, len(o.plan.series)))
	case o.plan.config != "":
		lines = append(lines, fmt.Sprintf("%s names no series: every name gives ids, except the name of a counter of the store; no two names ever give the same id", o.plan.config))
	default:
		lines = append(lines, "every name gives ids, except the name of a counter of the store; no two names ever give the same id")
	}
	switch {
	case st.Class == "":
		lines = append(lines, "not ready: "+phrase.WithoutKeys(phrase.WithoutPackage(fmt.Sprint(st.Err))))
	case o.plan.storeAt.Text == "" && o.plan.usesStore():
		lines = append(lines, fmt.Sprintf("store %s (%s): unique among this user's processes on this host only", st.Store, st.Class))
	default:
		lines = append(lines, fmt.Sprintf("store %s (%s: %s)", st.Store, st.Class, st.Why))
	}
	if st.Kind == config.Flake && st.Class == classOf(false) {
		lines = append(lines, "it can forget what it acknowledged: ids are unique as long as all clocks are right within 5s")
	}
	if st.Kind == config.Flake && !st.Until.IsZero() {
		lines = append(lines, fmt.Sprintf("without it ids go on for %s now, and for longer when the server has run for a while",
			phrase.Duration(time.Until(st.Until).Round(time.Second))))
	}
	return lines
}

// reload reads the settings again and serves what they say. On an error nothing has
// changed.
func (o *serveCommand) reload(ctx context.Context, told bool) error {
	next, err := o.load()
	if err != nil {
		return err
	}
	if err := o.plan.fixed(next); err != nil {
		return err
	}
	if err := next.guard(o.noAuth); err != nil {
		return err
	}
	var keys keyring
	if err := keys.load(&next.options); err != nil {
		return err
	}
	if err := next.openForms(); err != nil {
		return err
	}
	// After all that needs no store: what is refused leaves no trace.
	if told {
		o.stores.renew()
	}
	if err := o.addCounters(ctx, next); err != nil {
		return o.plan.leaves(next.others, err)
	}
	if err := next.flakesAgree(ctx, o.stores); err != nil {
		return err
	}
	next.inherit(o.plan)
	now, fresh := o.supplies.enough(next, o.log, told)
	gone := o.supplies.without(now)
	for _, s := range fresh {
		for _, old := range gone {
			if s.drawing.clashes(old.drawing) {
				return ui.Bad("pool %s: the new lease needs the worker or the grant file of the old one, which is given back at a restart", s.drawing.Leasing.Pool).
					Hint("start the server again, or write the old settings of the pool back")
			}
		}
	}
	err = beginAll(ctx, fresh, func(s *supply) error { return o.plan.leaves(s.drawing, o.again(ctx, s)) })
	var options *server.Options
	var series []*server.Series
	if err == nil {
		options, series, err = next.serverOptions(now, o.log, o.errs)
	}
	if err == nil {
		err = o.server.Replace(options, series...)
	}
	if err != nil {
		closeAll(fresh, o.log)
		return err
	}
	if c := keys.now.Load(); c != nil {
		o.keys.now.Store(c)
	}
	if before := o.plan.names; before != nil {
		close(before.outdated)
	}
	o.toldStore(o.plan.storeAt.Text, next.storeAt.Text)
	o.plan, o.supplies = next, now
	o.shown.Store(&now)
	o.sharded.Store(&next.sharded)
	closeAll(gone, o.log)
	return nil
}

// again opens a supply for a reload. One of settings that the server has already replaces one
// that has ended, so nothing is lost while the new one waits for the time when ids start.
func (o *serveCommand) again(ctx context.Context, s *supply) error {
	if o.supplies[s.key] != nil {
		return s.renew(ctx, o.stores, o.openedLate)
	}
	return s.try(ctx, o.stores)
}

// fixed reports what cannot be changed while the server runs. A file that is not there
// at the moment would leave the server without its tokens, and with another store.
func (p *servePlan) fixed(next *servePlan) error {
	switch {
	case p.config == "" || next.config == p.config:
	case next.config == "":
		return ui.Bad("%s is not there any more", p.config).Hint("put it back: without it the server would use the default file of its user, which is another store")
	default:
		return ui.Bad("%s would be read, and not %s", next.config, p.config).Hint("start the server again, if that is meant")
	}
	a, b := p.options, next.options
	for _, f := range []struct {
		what string
		same bool
	}{
		{"listen", a.RESP == b.RESP && a.HTTP == b.HTTP && a.Admin == b.Admin && a.Strings == b.Strings && a.Foreign == b.Foreign && slices.Equal(a.Hosts, b.Hosts)},
		{"tls", (a.Cert == "") == (b.Cert == "")},
		{"limits.connections", a.Connections == b.Connections},
		{"limits.idle", a.Idle == b.Idle},
	} {
		if !f.same {
			return ui.Bad("%s was changed, and is read at the start only", f.what).Hint("to have it, start the server again; to reload the rest of the file now, write the old value back")
		}
	}
	return nil
}

// toldStore logs that a reload goes to another store, or to the same one by another URL.
func (o *serveCommand) toldStore(was, is string) {
	switch before, after := fromurl.Redact(open.StoreText(was)), fromurl.Redact(open.StoreText(is)); {
	case was == is:
	case before == after:
		o.log.Info("the password of the store is another one now", "store", after)
	default:
		o.log.Warn("the store is another one now; if it is not the old one under another URL, ids and numbers of both may be equal",
			"before", before, "store", after)
	}
}

// told logs what came of a reload.
func (o *serveCommand) told(err error) {
	if err == nil {
		o.log.Info("reloaded", "config", o.plan.config, "series", len(o.plan.series), "tokens", len(o.plan.options.Tokens))
		return
	}
	var f *ui.Failure
	hint := ""
	if errors.As(err, &f) {
		hint = o.hints.line(f)
	} else if f := settingFailure(o.hints.cmd, err); f != nil {
		hint = o.hints.line(f)
	}
	o.log.Error("not reloaded; everything is as it was", withHint(hint, "err", err)...)
}
