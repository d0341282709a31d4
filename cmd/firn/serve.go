package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/variable"
	"github.com/firn-id/firn/internal/version"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/daemon"
)

func newServe() *cobra.Command {
	var o serveCommand
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve ids over the Redis protocol and HTTP",
		Long: `Give ids to any language: INCR photo from any Redis client, or POST
/v1/series/photo/next over HTTP. The series are those of firn.yaml; without any, each
name gives ids of the pool of --pool, or default. docs/guides/server.md has more.
Without series, on a store that was recovered or has a pool of firn pool ensure, a name
that no counter has gives nothing, unless --kind flake says that none was lost.

It listens on this host only. Beyond that it wants tokens or client certificates, and
a --store that all servers share. Several servers on one store never give the same id.

While the store is away ids continue for the outage budget; /readyz says so before they
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
  firn token create shop`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := noPoolVariables(); err != nil {
				return err
			}
			o.hints, o.json = hinter{cmd: cmd}, wantsJSON(cmd)
			return o.run(cmd)
		},
	}
	addListen(cmd)
	cmd.Flags().BoolVar(&o.noAuth, "insecure-no-auth", false, "let other hosts come without a token or a client certificate")
	addStore(cmd)
	cmd.Flags().String("kind", "", "flake: on a store that may have lost counters, a name that no counter has gives ids all the same, as no counter was lost")
	cmd.Flags().String("pool", "", "the pool of workers, where firn.yaml names no pools ("+pool.Default+")")
	return cmd
}

// noPoolVariables refuses variables of a pool's settings. A server has those of firn.yaml,
// of which there may be several pools; a setting that is said and ignored could be meant for
// any of them.
func noPoolVariables() error {
	for _, flag := range config.KeyNames(config.LeaseKeys) {
		name := variable.Name(flag)
		if os.Getenv(name) == "" || !slices.Contains(variableNames(), name) {
			continue
		}
		return ui.Bad("%s is set, and firn serve takes the settings of pools from firn.yaml only", name).Hint("env -u %s firn serve; in firn.yaml: pools: { NAME: { %s: %s } }", name, flag, os.Getenv(name))
	}
	return nil
}

// serveLog returns the log of a server.
func serveLog(errs io.Writer, asJSON bool) *slog.Logger {
	o := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok {
			return slog.String(a.Key, phrase.WithoutKeys(phrase.Reason(err)))
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

// A serveCommand is firn serve.
type serveCommand struct {
	hints  hinter
	noAuth bool
	json   bool
}

func (o *serveCommand) run(cmd *cobra.Command) error {
	log := serveLog(cmd.ErrOrStderr(), o.json)
	for _, v := range strayVariables(cmd.Root(), os.Environ()) {
		log.Warn(v.text(), "do", v.do)
	}
	if os.Getenv(variable.Name("keys")) != "" {
		log.Warn("firn serve does not read the variable FIRN_KEYS; it takes the keys of a public form from firn.yaml", "do", "public: { form: FORM, keys: FILE }, or keys: env:NAME")
	}
	ctx, stop := ui.UntilStopped(cmd.Context(), func(s os.Signal) {
		said := make(chan struct{})
		go func() { // nobody may read the log
			log.Warn("stopping at once: requests under way are not answered, and each worker stays held until its time to live has passed", "why", s.String())
			close(said)
		}()
		select {
		case <-said:
		case <-time.After(stuck):
		}
	})
	defer stop()
	reload, quit := onHangUp()
	defer quit()
	load := func() (*config.Config, error) { return ui.Within(ctx, o.load) }
	cfg, err := load()
	if err != nil {
		return ui.Signalled(ctx, err)
	}
	err = daemon.Run(ctx, cfg, &daemon.Options{
		Logger: log, NoAuth: o.noAuth, Hostname: hostname, Version: version.Number,
		Reload: reload, Load: load, Advise: o.hints.serving,
		Explain: func(err error) error { return serveFailure(cmd, err) },
		Started: func(r daemon.Running) error {
			if err := o.announce(cmd.OutOrStdout(), r); err != nil {
				log.Warn("where the server listens could not be printed; it serves all the same", "listen", listenTexts(r), "err", err)
			}
			return nil
		},
	})
	return ui.Signalled(ctx, serveFailure(cmd, err))
}

// load reads the settings as they are now.
func (o *serveCommand) load() (*config.Config, error) {
	s, err := loadSettings(o.hints.cmd)
	if err != nil {
		return nil, err
	}
	return s.Config, s.onlyFlakes()
}

// onHangUp returns a channel that has a value for each SIGHUP.
func onHangUp() (reload <-chan struct{}, stop func()) {
	signals, asked, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			select {
			case <-done:
				return
			case asked <- struct{}{}:
			}
		}
	}()
	return asked, func() { signal.Stop(signals); close(done) }
}

// A startLine is where a server listens, as --json prints it.
type startLine struct {
	Event   string            `json:"event"` // listening
	PID     int               `json:"pid"`
	Listen  map[string]string `json:"listen"` // by name: resp, http, admin
	TLS     bool              `json:"tls"`
	Store   string            `json:"store,omitempty"`
	Durable *bool             `json:"durable,omitempty"` // left out: the store has not answered yet
	Config  string            `json:"config,omitempty"`
	Ready   bool              `json:"ready"`
}

// listenTexts is where the server listens, by the name of the listener.
func listenTexts(r daemon.Running) map[string]string {
	all := map[string]string{}
	for _, b := range r.Listen {
		all[b.Name] = b.At.String()
	}
	return all
}

// announce prints where the server listens, and what to type next.
func (o *serveCommand) announce(out io.Writer, r daemon.Running) error {
	st := r.First
	line := startLine{
		Event: "listening", PID: os.Getpid(), Listen: listenTexts(r), TLS: r.TLS,
		Store: st.Store, Durable: st.Durable, Config: r.Config, Ready: r.Ready,
	}
	if o.json {
		return json.NewEncoder(out).Encode(line)
	}
	var text strings.Builder
	for _, b := range r.Listen {
		fmt.Fprintf(&text, "%-5s  %s\n", b.Name, b.At)
		if try := tryLine(r, b); try != "" {
			fmt.Fprintf(&text, "       %s\n", try)
		}
	}
	for _, line := range o.facts(r) {
		fmt.Fprintf(&text, "%s\n", line)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// tryLine is a command that draws from a listener.
func tryLine(r daemon.Running, b daemon.Listening) string {
	name, secret := r.Example, r.TLS && b.At.Network == "tcp"
	var words []string
	switch b.Name {
	case "resp":
		words = append(words, "redis-cli")
		words = append(words, redisFlags(b.At)...)
		if secret {
			words = append(words, "--tls")
		}
		if r.Tokens {
			words = append(words, "-a TOKEN")
		}
		if r.Texts {
			words = append(words, "FIRN.NEXT "+name)
		} else {
			words = append(words, "INCR "+name)
		}
	case "http":
		words = append(words, "curl -X POST")
		if r.Tokens {
			words = append(words, `-H "Authorization: Bearer TOKEN"`)
		}
		words = append(words, curlURL(b.At, secret)+"/v1/series/"+name+"/next")
	case "admin":
		words = append(words, "curl", curlURL(b.At, secret)+"/readyz")
	}
	return strings.Join(words, " ")
}

// storeFact says what is known of a store. With a grant file the server starts before the store
// has answered, and knows what the store said of itself when that was granted.
func storeFact(st server.State) string {
	if st.Why == "" {
		return fmt.Sprintf("store %s (%s when it was last heard): it has not answered since this server started", st.Store, st.Durability())
	}
	return fmt.Sprintf("store %s (%s: %s)", st.Store, st.Durability(), st.Why)
}

// facts say what the ids are worth, and for how long they go on.
func (o *serveCommand) facts(r daemon.Running) []string {
	st := r.First
	var lines []string
	switch {
	case r.MayBeLost:
		lines = append(lines, "the store may have lost counters: only the names of its counters give anything; to have every other name give ids: "+o.hints.compose("firn serve --kind flake"))
	case !r.AnyName:
		lines = append(lines, fmt.Sprintf("%s: %d series", r.Config, r.Series))
	case r.Config != "":
		lines = append(lines, fmt.Sprintf("%s names no series: every name gives ids, except the name of a counter of the store; no two names ever give the same id", r.Config))
	default:
		lines = append(lines, "every name gives ids, except the name of a counter of the store; no two names ever give the same id")
	}
	switch {
	case st.Durable == nil:
		lines = append(lines, "not ready: "+phrase.WithoutKeys(phrase.Reason(st.Err)))
	case r.Default:
		lines = append(lines, fmt.Sprintf("store %s (%s): unique among this user's processes on this host only", st.Store, st.Durability()))
	default:
		lines = append(lines, storeFact(st))
	}
	if st.Kind == config.Flake && st.Durable != nil && !*st.Durable {
		lines = append(lines, "it is lossy: it can lose a write that it acknowledged; ids are unique as long as all clocks are right within 5s")
	}
	if st.Kind == config.Flake && !st.EndsAt.IsZero() {
		lines = append(lines, fmt.Sprintf("without it ids continue for %s now, and for longer when the server has run for a while",
			phrase.Duration(time.Until(st.EndsAt).Round(time.Second))))
	}
	return lines
}
