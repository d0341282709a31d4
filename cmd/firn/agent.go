package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/internal/pageagent"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/version"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// agentKnobs are the settings of a pool that have a meaning for an agent.
var agentKnobs = []string{"lanes", "layout", "worker", "renew", "ttl", "outage", "max-ahead"}

func newAgent() *cobra.Command {
	var o agentCommand
	cmd := &cobra.Command{
		Use:   "agent PATH",
		Short: "Let all processes of this host make ids from one shared page",
		Long: `Hold one worker for all processes of this host, and serve a page at PATH: a file that they
map and take ids from, without asking a server. docs/guides/page.md has the clients.

PATH is a file in a directory on tmpfs, ext4 or xfs, such as /run/firn/page; the file
need not exist. In containers, mount one volume into all of them. Every process that may
write the page can break it: --mode says who may.

If the store is away, ids continue for the outage budget, also if the agent ends or is
killed. If the store is away at the start, the agent waits for it. It waits for the start
of a pool and for a free worker too. When a page has ended, the agent makes another one
and clients change to it. The agent ends with an error if the pool is missing, if another
program wrote to the page or replaced it, or if the store has forgotten what it
acknowledged.

With --lanes the agent holds several workers, for a host that needs more ids than one
worker can make. Each has a page: PATH, PATH.1, PATH.2 and so on. A process takes one of
them and keeps to it.

SIGINT and SIGTERM close the page and give the workers back, and the exit code is 0.
Clients wait for the next agent. A second signal ends the agent at once.

The path is printed to standard output when the page can be used, what happens to standard
error; with --json both are JSON, an object a line.`,
		Example: `  firn agent /run/firn/page
  firn agent /run/firn/shop --pool shop --store postgres://app@db/app --listen 127.0.0.1:6382`,
		Args: agentArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.load(cmd, args[0]); err != nil {
				return err
			}
			return o.run(cmd)
		},
	}
	addStore(cmd)
	var all cobra.Command
	addPool(&all)
	cmd.Flags().AddFlag(all.Flags().Lookup("pool"))
	for _, name := range agentKnobs {
		cmd.Flags().AddFlag(all.Flags().Lookup(name))
	}
	cmd.Flags().StringVar(&o.modeText, "mode", "0660", "who may use the page, as chmod has it: clients need to read and write it")
	cmd.Flags().StringVar(&o.listenText, "listen", "", "where to answer /metrics, /healthz and /readyz over HTTP: HOST:PORT or unix:PATH")
	return cmd
}

// agentArguments wants one path, with its directory: clients have other working directories.
func agentArguments(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return ui.Bad("there is no PATH to serve a page at").Hint("firn agent /run/firn/page")
	case len(args) > 1:
		return ui.Bad("firn agent serves one page, and %q is a second path", args[1]).Hint("firn agent --help")
	case args[0] == "" || !strings.Contains(args[0], "/"):
		return ui.Bad("PATH %q has no directory", args[0]).Hint("firn agent /run/firn/page").Hint("firn agent ./page, for the directory of this shell")
	}
	return nil
}

// An agentCommand is firn agent.
type agentCommand struct {
	modeText   string
	listenText string

	path    string
	mode    fs.FileMode
	listen  config.Address
	leasing *config.Leasing
	json    bool
	log     *slog.Logger
	store   io.Closer // nil: not opened yet
}

// load reads the settings.
func (o *agentCommand) load(cmd *cobra.Command, path string) error {
	s, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	if o.leasing, err = s.Leasing(""); err != nil {
		return err
	}
	opts := &o.leasing.Options
	opts.GrantFile = "" // of a process that makes the ids of its pool itself
	mode, err := strconv.ParseUint(o.modeText, 8, 32)
	if err != nil || mode > 0o777 || mode&0o600 != 0o600 {
		return ui.Bad("--mode %q is not the mode of a page: three octal digits, of which the first is 6 or 7", o.modeText).Hint("--mode 0660, for the user and the group of the agent")
	}
	o.mode = fs.FileMode(mode)
	if o.listenText != "" {
		if o.listen, err = config.ParseAddress(o.listenText); err != nil {
			return ui.Bad("--listen: %w", err).Hint("--listen 127.0.0.1:6382")
		}
	}
	o.json = wantsJSON(cmd)
	o.path, err = filepath.Abs(path)
	return err
}

func (o *agentCommand) run(cmd *cobra.Command) error {
	o.log = serveLog(cmd.ErrOrStderr(), o.json)
	for _, v := range strayVariables(cmd.Root(), os.Environ()) {
		o.log.Warn(v.text(), "do", v.do)
	}
	ctx, stop := ui.UntilStopped(cmd.Context(), func(s os.Signal) {
		go o.log.Warn("stopping at once: clients continue until the end of the page, and its worker stays held as long", "why", s.String())
		time.Sleep(stuck / 10) // nobody may read the log
	})
	defer stop()
	a := pageagent.New(pageagent.Options{
		Path: o.path, Pool: o.leasing.Pool, Lanes: o.leasing.Options.Lanes, Mode: o.mode, Logger: o.log,
		Store: o.openStore, Lease: o.open,
		Started: func(s pageagent.State) {
			if err := o.announce(cmd.OutOrStdout(), s); err != nil {
				o.log.Warn("where the page is could not be printed; it is served all the same", "path", s.Path, "err", err)
			}
		},
	})
	if err := a.Check(); err != nil {
		return classify(err)
	}
	web, err := o.web(a)
	if err != nil {
		return err
	}
	defer web.Close()
	err = a.Run(ctx)
	if o.store != nil {
		err = errors.Join(err, o.store.Close())
	}
	return ui.Signalled(ctx, explainLease(o.leasing, err))
}

// openStore opens the store, and finds out whether it answers.
func (o *agentCommand) openStore(ctx context.Context) (store.Store, error) {
	s, err := open.Store(ctx, o.leasing.URL, func(path string, _ bool) {
		o.log.Info("created the store: ids are unique among the programs that use this file", "file", path)
	})
	if err != nil {
		return nil, err
	}
	o.store = s
	return s, nil
}

// open opens the lease of a page.
func (o *agentCommand) open(ctx context.Context, s store.Store, path string) (*lease.Lease, error) {
	opts, err := leaseoptions.Ready(ctx, s, o.leasing, hostname)
	if err != nil {
		return nil, cause.Learn(ctx, s, o.leasing, err)
	}
	opts.Lanes, opts.GrantFile, opts.Logger = 1, "", o.log.With("path", path)
	opts.Name = holderName(path)
	l, err := lease.Open(ctx, s, &opts)
	return l, cause.Learn(ctx, s, o.leasing, err)
}

// holderName is what firn worker ls shows of a worker that is behind a page. A name has at most 255 bytes.
func holderName(path string) string {
	host, err := hostname()
	if err != nil {
		host = "unknown"
	}
	name := fmt.Sprintf("%s:%d page %s", host, os.Getpid(), path)
	return strings.ToValidUTF8(name[:min(len(name), 255)], "")
}

// web answers HTTP where --listen says.
func (o *agentCommand) web(a *pageagent.Agent) (io.Closer, error) {
	h, err := a.Handler(version.Number)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelDebug)}
	if o.listen.Off() {
		return s, nil
	}
	l, err := net.Listen(o.listen.Network, o.listen.At)
	if err != nil {
		return nil, ui.Failed("--listen %s: %w", o.listen, err).Hint("--listen with another place; port 0 takes any that is free")
	}
	if o.listen.Network == "tcp" {
		o.listen.At = l.Addr().String()
	}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			o.log.Error("HTTP is not answered any more; the page is served all the same", "listen", o.listen.String(), "err", err)
		}
	}()
	return s, nil
}

// An agentLine is what an agent serves, as --json prints it.
type agentLine struct {
	Event  string `json:"event"` // serving
	PID    int    `json:"pid"`
	Path   string `json:"path"`
	Lanes  int    `json:"lanes"`
	Pool   string `json:"pool"`
	Worker int64  `json:"worker"` // of lane 0
	Layout string `json:"layout"`
	Store  string `json:"store"`
	Listen string `json:"listen,omitempty"`
}

// announce prints what the agent serves.
func (o *agentCommand) announce(out io.Writer, s pageagent.State) error {
	first := s.Lanes[0].Lease
	if first == nil { // it has ended already
		return nil
	}
	line := agentLine{
		Event: "serving", PID: os.Getpid(), Path: s.Path, Lanes: len(s.Lanes), Pool: first.Pool, Worker: first.Worker,
		Layout: first.Layout.String(), Store: whichstore.Text(o.leasing.URL),
	}
	if !o.listen.Off() {
		line.Listen = o.listen.String()
	}
	if o.json {
		return json.NewEncoder(out).Encode(line)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "page    %s\n", s.Path)
	if n := len(s.Lanes); n > 1 {
		fmt.Fprintf(&text, "        %d lanes, up to %s.%d\n", n, s.Path, n-1)
	}
	if line.Listen != "" {
		fmt.Fprintf(&text, "listen  %s\n        curl %s/readyz\n", line.Listen, curlURL(o.listen, false))
	}
	fmt.Fprintf(&text, "pool %s, worker %s, store %s\n", first.Pool, first.Layout.WorkerText(first.Worker), line.Store)
	if left := s.Lanes[0].Left(time.Now()); left > 0 {
		fmt.Fprintf(&text, "without the store and the agent ids continue for %s now, and for longer when the agent has run for a while\n", phrase.Duration(left.Round(time.Second)))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
