package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/shard/topology"
)

// A service is a server that runs.
type service struct {
	options Options
	cfg     *config.Config // in force

	log      *slog.Logger
	notify   *notifier
	plan     *plan // in force
	keys     keyring
	formKeys usedKeys // of public forms
	stores   *sharedStores
	supplies
	shown    atomic.Pointer[supplies]          // those of now, for the console
	sharded  atomic.Pointer[[]topology.Server] // the same, of servers with shards
	late     chan struct{}                     // a supply was opened after the start
	server   *server.Server
	relist   chan struct{}             // of one: a counter was created since they were listed
	reloaded atomic.Pointer[reloading] // what came of reading the settings last
	newer    chan struct{}             // closed when SIGHUP has come again while a reload is under way

	unmended atomic.Pointer[unmended] // why recovered stores are not used; nil: nothing is known; of mend

	refused  []string      // counters of the store that could not be opened; of listAgain
	listTook time.Duration // the last list, whether it was had or not
}

// Run serves what the settings say, until ctx ends. Then it answers what was asked, gives back
// workers and numbers, and returns nil. A nil *Options is all defaults.
//
// Where a store is away at the start, Run listens all the same, is not ready, and begins when
// the store answers. What will not pass by itself ends the start: the errors of this package,
// of config and config/open, and of each series a [*SeriesError].
func Run(ctx context.Context, cfg *config.Config, o *Options) error {
	s := &service{cfg: cfg}
	if o != nil {
		s.options = *o
	}
	if s.log = s.options.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o != nil && o.Advise != nil {
		s.options.Advise = s.advise(o.Advise)
	}
	s.stores, s.relist = newSharedStores(s.log, s.options.Advise), make(chan struct{}, 1)
	s.notify, s.late = newNotifier(s.log), make(chan struct{}, 1)
	bound, err := s.listen()
	if err != nil {
		return err
	}
	s.reloaded.Store(&reloading{at: time.Now()})
	f := &front{reloaded: &s.reloaded, options: &s.plan.options, server: s.server, keys: &s.keys, log: s.log, version: s.options.Version, supplies: &s.shown, sharded: &s.sharded}
	if err := s.start(ctx, f, bound); err != nil {
		s.server.Stop()
		f.close()
		for _, b := range bound {
			b.Close() // those that the front had not begun to serve
		}
		return err
	}
	if err = s.announce(bound); err == nil {
		s.notify.ready(s.status())
		err = s.serve(ctx, s.options.Reload, f.failed)
	}
	s.notify.stopping()
	if err != nil {
		s.log.Error("stopping", "err", err)
	} else {
		s.log.Info("stopping", "why", context.Cause(ctx).Error())
	}
	s.server.Stop()
	f.close()
	closeAll(s.supplies.without(nil), s.log)
	return err
}

// announce says that the server listens.
func (o *service) announce(bound []boundListener) error {
	if o.plan.options.Plain() && len(o.plan.options.Tokens) > 0 {
		o.log.Warn("tokens travel where others may read them: there is no tls in the config")
	}
	if o.keys.on() {
		o.log.Info("tls", "certificate", o.keys.ends())
	}
	if o.options.Started == nil {
		return nil
	}
	return o.options.Started(o.running(bound))
}

// warn logs who else can read the keys of public forms.
func (o *service) warn(text string) { o.log.Warn(text) }

// listen reads the settings, listens, and makes the server, whose series are not open yet.
func (o *service) listen() (bound []boundListener, err error) {
	if o.plan, err = makePlan(o.cfg, &o.options); err != nil {
		return nil, err
	}
	if err := o.plan.guard(o.options.NoAuth); err != nil {
		return nil, err
	}
	if err := o.keys.load(&o.plan.options); err != nil {
		return nil, err
	}
	if err := o.plan.openForms(); err != nil {
		return nil, err
	}
	if o.formKeys, err = o.formKeys.with(o.plan); err != nil {
		return nil, err
	}
	o.shown.Store(&supplies{})
	o.sharded.Store(&o.plan.sharded)
	options, series, err := o.plan.starting(o.log)
	if err != nil {
		return nil, err
	}
	if o.server, err = server.New(options, series...); err != nil {
		return nil, err
	}
	return bind(&o.plan.options)
}

// startPatience is how long a client that connects waits for a start. After that the server answers
// while it starts: that it is alive, and not ready.
const startPatience = 500 * time.Millisecond

// start opens what is served, and answers the listeners. On an error nothing is open.
func (o *service) start(ctx context.Context, f *front, bound []boundListener) error {
	begun := make(chan error, 1)
	life, stop := context.WithCancel(ctx)
	defer stop()
	go func() { begun <- o.begin(life) }()
	select {
	case err := <-begun:
		if err != nil {
			return err
		}
		if err = f.open(bound); err != nil {
			closeAll(o.supplies.without(nil), o.log)
		}
		return err
	case <-time.After(startPatience):
	}
	o.log.Info("the start takes long; meanwhile the server answers that it is not ready")
	err := f.open(bound)
	if err != nil {
		stop()
	}
	if failed := <-begun; failed != nil {
		return cmp.Or(err, failed)
	}
	if err != nil {
		closeAll(o.supplies.without(nil), o.log)
	}
	return err
}

// begin opens what is served. The listeners are bound before, so that no store is made where they
// cannot be had.
func (o *service) begin(ctx context.Context) (err error) {
	if err := o.addCounters(ctx, o.plan); err != nil {
		return err
	}
	now, fresh := supplies{}.enough(o.plan, o.log, bySignal.mended)
	o.supplies = now
	o.shown.Store(&now)
	defer func() {
		if err != nil {
			closeAll(fresh, o.log)
		}
	}()
	if err := o.plan.flakesAgree(ctx, o.stores); err != nil {
		return err
	}
	if err := beginAll(ctx, fresh, func(s *supply) error { return s.begin(ctx, o.stores, o.openedLate) }); err != nil {
		return err
	}
	options, series, err := o.plan.serverOptions(now, o.log, o.warn) // pools that are open have told their layouts
	if err != nil {
		return err
	}
	if err = o.server.Replace(options, series...); err == nil {
		o.tellLost(nil)
	}
	o.stores.started()
	return err
}

// openedLate has the server learn the layout of a pool that could not be read before.
func (o *service) openedLate() {
	select {
	case o.late <- struct{}{}:
	default: // it is to learn already
	}
}

// learn gives the server the layouts of the pools that are open by now, and has it give no ids by
// the name of a counter.
func (o *service) learn(ctx context.Context) {
	for _, d := range o.plan.hearFlakes(ctx, o.stores) {
		err := o.plan.heard[d]
		o.log.Error("a series of firn.yaml has the name of a counter, and gives nothing", withHint(d.hintOf(err), "series", d.Name, "err", err)...)
	}
	options, series, err := o.plan.serverOptions(o.supplies, o.log, nil)
	if err == nil {
		err = o.server.Replace(options, series...)
	}
	if err != nil {
		o.log.Error("the server has not learned the layouts of its pools; SIGHUP tries again", "err", err)
	}
}

// serve does what signals ask for, until one asks to stop or a listener fails.
func (o *service) serve(asked context.Context, hangUp <-chan struct{}, failed <-chan error) error {
	beats := o.notify.beats()
	listing := time.NewTimer(mostPause)
	defer listing.Stop()
	mending := time.NewTicker(mostPause)
	defer mending.Stop()
	var reloading chan error // nil: no reload is under way
	var because reason       // for which it is under way
	var next bool            // somebody has asked for another one
	var before []*outlet     // what was served before it
	defer func() {
		if reloading != nil {
			<-reloading
		}
	}()
	reload := func(why reason, how func() error) {
		because, next, before, o.newer, reloading = why, false, o.plan.series, make(chan struct{}), make(chan error, 1)
		go func() { reloading <- how() }()
	}
	hungUp := func() {
		o.notify.reloading()
		reload(bySignal, func() error { return o.reload(asked, bySignal) })
	}
	for {
		again, late, relist, unlisted, mended := hangUp, o.late, o.relist, listing.C, mending.C
		if next {
			again = nil
		}
		if reloading != nil {
			late, relist, unlisted, mended = nil, nil, nil, nil // one at a time
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
			if reloading == nil {
				hungUp()
				continue
			}
			next = true
			close(o.newer)
		case <-relist:
			reload(byItself, func() error { return o.reload(asked, byItself) })
		case <-unlisted:
			reload(byItself, func() error { return o.listAgain(asked) })
		case <-mended:
			_ = o.server.Ready() // so that the server knows since when a series is not ready
			if ended := o.stores.ended(); len(ended) > 0 {
				reload(byRecovery(nil), func() error { return o.mend(asked, ended) })
			}
		case err := <-reloading:
			reloading = nil
			listing.Reset(o.listPause())
			o.came(err, because, before)
			if next {
				hungUp()
			} else if !errors.Is(err, errUnlisted) && !errors.Is(err, errUnmended) {
				o.notify.ready(o.status())
			}
		}
	}
}

// listPause is how long to wait before the store is asked for its counters again.
func (o *service) listPause() time.Duration {
	if o.plan.unlisted != nil || !o.plan.allHeard() {
		return mostPause
	}
	return max(listEvery/2+rand.N(listEvery/2), 20*o.listTook) // of many counters, or on a slow store, seldom
}

// status is what the server does, in a few words.
func (o *service) status() string {
	what := phrase.Plural(len(o.plan.series), "configured name")
	if o.plan.others != nil {
		what = "any name"
	}
	return "serving " + what
}
