//go:build linux && (amd64 || arm64)

package page

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/pagefile"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"golang.org/x/sys/unix"
)

// How often the agent looks at its page, and reads how many ids were taken.
const (
	every      = 250 * time.Millisecond
	countEvery = 10 * time.Millisecond
)

// Serve serves a page of a lease at a path until ctx is done or the lease is closed. It closes the page and returns
// nil then. From the call on the lease gives no ids by itself, also after Serve has returned. Call Close of the lease
// afterwards, which gives the worker back. The lease has one lane and no grant file.
//
// A page that an agent before this one left is replaced; its clients use it until its horizon, and change to the new
// page then. Serve refuses to replace the page of an agent that is alive.
//
// Serve closes the page and returns an error:
//
//   - [*RestartError] if the page was removed, or its ids are more than 1 s ahead of the clock: close the lease, open
//     another and serve that.
//   - [*UnusableError] if another program wrote to the page or replaced it, and for a path that cannot have a page: see
//     [Check]. Ids of a page that another program wrote to may repeat, so find that program first.
//   - [*store.ForgotError] if the store has forgotten.
//   - An error of the system if a page cannot be made, for example because the file system is full.
func Serve(ctx context.Context, l *lease.Lease, path string, opts *Options) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	a := &agent{path: path, mode: 0o660, lanes: 1, log: slog.Default(), failed: make(chan error, 1)}
	if opts != nil {
		lanes := cmp.Or(opts.Lanes, 1)
		if lanes < 1 || lanes > pagefile.MaxLanes || opts.Lane < 0 || opts.Lane >= lanes {
			return fmt.Errorf("page: lane %d of %d: an agent has 1 to %d lanes, and the first is lane 0", opts.Lane, lanes, pagefile.MaxLanes)
		}
		a.lanes, a.lane = uint8(lanes), uint8(opts.Lane)
		a.path = pagefile.LanePath(path, a.lane)
		a.mode = cmp.Or(opts.Mode.Perm(), a.mode)
		a.log = cmp.Or(opts.Logger, a.log)
		a.made, a.stats = opts.Made, opts.Stats
	}
	if err := checkDir(a.path); err != nil {
		return err
	}
	if err := a.claim(); err != nil {
		return err
	}
	ended, err := l.Delegate(a.begin)
	if err != nil {
		return errors.Join(err, a.end())
	}
	t := time.NewTicker(every)
	defer t.Stop()
	var count <-chan time.Time
	if a.stats != nil {
		c := time.NewTicker(countEvery)
		defer c.Stop()
		count = c.C
	}
	for {
		select {
		case <-ctx.Done():
			return a.end()
		case <-ended:
			return a.end()
		case err := <-a.failed:
			return errors.Join(err, a.end())
		case <-count:
			a.count()
		case <-t.C:
			err := a.check()
			var forgot *store.ForgotError
			if err == nil && errors.As(l.State().Err, &forgot) {
				err = l.State().Err
			}
			if err != nil {
				return errors.Join(err, a.end())
			}
		}
	}
}

// An agent has the pages of a lease at one path, one after the other.
type agent struct {
	path   string
	mode   fs.FileMode
	lanes  uint8
	lane   uint8
	log    *slog.Logger
	made   func(worker int64, term uint64) // nil: nobody wants to know
	stats  *Stats                          // nil: nobody counts
	failed chan error                      // why there is no page; receives once

	mu   sync.Mutex
	held *os.File       // the locked file at the path. Nil means no file
	at   pagefile.Place // its place
	page *served        // of this term. Nil means no page
	over bool           // Serve has returned, or is about to
}

// claim locks the page that is at the path, if there is one.
func (a *agent) claim() error {
	for range 10 {
		f, err := os.OpenFile(a.path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if errors.Is(err, unix.ELOOP) {
			return &UnusableError{Path: a.path, Why: "it is a symbolic link: use the path that it leads to"}
		}
		if err != nil {
			return err
		}
		if err := a.lock(f); err != nil {
			f.Close()
			return err
		}
		at, err := placeOf(f)
		if err == nil {
			err = replaceable(f, a.path)
		}
		is := false
		if err == nil {
			is, err = same(a.path, at)
		}
		if err != nil {
			f.Close()
			return err
		}
		if is {
			a.held, a.at = f, at
			return nil
		}
		f.Close() // another agent replaced it meanwhile
	}
	return &UnusableError{Path: a.path, Why: "other agents replace it all the time"}
}

// lock locks a file until it is closed.
func (a *agent) lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return &UnusableError{Path: a.path, Why: "another agent serves it" + whose(f) + ": use another path, or end that agent first", Served: true}
	}
	if err != nil {
		return &os.PathError{Op: "lock", Path: a.path, Err: err}
	}
	return nil
}

// whose is the process of a page, in words, if the page says so. In a container it may be that of another one.
func whose(f *os.File) string {
	b := make([]byte, pagefile.HeaderSize)
	if _, err := f.ReadAt(b, 0); err != nil {
		return ""
	}
	h, err := pagefile.Decode(b)
	if err != nil || h.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", h.PID)
}

// replaceable refuses a file that is no page of any format: it is somebody's.
func replaceable(f *os.File, path string) error {
	b := make([]byte, 8)
	if n, err := f.ReadAt(b, 0); n < len(b) || string(b) != "firnpage" {
		return errors.Join(&UnusableError{Path: path, Why: "it is another file: use another path, or remove it"}, err)
	}
	return nil
}

// begin makes the page of a term. The lease calls it.
func (a *agent) begin(t pagefile.Term) (pagefile.Issuer, error) {
	began := clock(unix.CLOCK_BOOTTIME)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, errors.New("page: the page is not served any more")
	}
	s, err := a.create(t, began)
	if err != nil {
		select {
		case a.failed <- err:
		default:
		}
		return nil, err
	}
	if a.page != nil {
		a.page.release()
	}
	a.page = s
	a.log.Info("serves a page", "path", a.path, "worker", t.Grant.Worker, "term", t.Number)
	if a.stats != nil {
		a.stats.Pages.Add(1)
	}
	if a.made != nil {
		a.made(t.Grant.Worker, t.Number)
	}
	return s, nil
}

// create makes a page beside the path, and then gives it its name. began is CLOCK_BOOTTIME at t.Now.
func (a *agent) create(t pagefile.Term, began int64) (s *served, err error) {
	dir, name := filepath.Split(a.path)
	temp := filepath.Join(dir, "."+name+"."+rand.Text())
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, a.cannotMake(err)
	}
	named := false
	defer func() {
		if !named {
			err = errors.Join(err, os.Remove(temp), f.Close())
		}
	}()
	if err := a.lock(f); err != nil {
		return nil, err
	}
	if s, err = a.fill(f, t, began); err != nil {
		return nil, a.cannotMake(err)
	}
	if err := a.name(temp); err != nil {
		s.release()
		return nil, err
	}
	named = true
	if a.held != nil {
		a.held.Close() // and with it the lock: the path is the name of a locked file already
	}
	a.held, a.at = f, s.header.Place
	return s, nil
}

// fill writes all of a page: blocks, header and words.
func (a *agent) fill(f *os.File, t pagefile.Term, began int64) (*served, error) {
	memory, why, err := checkFileSystem(f)
	if err != nil || why != "" {
		return nil, errors.Join(err, unusable(a.path, why))
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, pagefile.Size); err != nil {
		return nil, &os.PathError{Op: "allocate blocks of", Path: a.path, Err: err}
	}
	h := &pagefile.Header{Term: t.Number, PoolID: t.PoolID, Pool: t.Pool, PID: uint64(os.Getpid()), Lanes: a.lanes, Lane: a.lane}
	if h.Place, err = placeOf(f); err != nil {
		return nil, unusable(a.path, err.Error())
	}
	if err := h.SetLayout(t.Layout, t.Grant.Worker, t.Shard, t.Ahead); err != nil {
		return nil, unusable(a.path, err.Error())
	}
	h.Base = h.Last(t.Grant.Base)
	if t.Grant.Base >= h.MaxTick() {
		return nil, unusable(a.path, fmt.Sprintf("layout %s began more than 146 years ago", t.Layout))
	}
	b, err := h.Encode()
	if err != nil {
		return nil, unusable(a.path, err.Error())
	}
	// The file is written, and not only mapped: so its blocks are there, whatever becomes of the disk.
	if _, err := f.WriteAt(append(b, make([]byte, pagefile.Size-len(b))...), 0); err != nil {
		return nil, err
	}
	m, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	s := &served{header: h, bytes: b, memory: m, epoch: t.Layout.Epoch(), counted: h.Base, stats: a.stats}
	s.agent = pagefile.NewAgent(h, m, t.Grant.Horizon)
	s.SetClock(t.Now.Add(time.Duration(clock(unix.CLOCK_BOOTTIME) - began))) // making the file took time
	if !memory {
		err = f.Sync()
	}
	if err == nil {
		err = f.Chmod(a.mode)
	}
	if err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// name gives the page its name, in the place of the page that this agent has locked.
func (a *agent) name(temp string) error {
	is := false
	var err error
	if a.held != nil {
		if is, err = same(a.path, a.at); err != nil {
			return err
		}
	}
	if is {
		return os.Rename(temp, a.path)
	}
	if err := os.Link(temp, a.path); err != nil { // a rename would replace the page of another agent
		if errors.Is(err, fs.ErrExist) {
			return &UnusableError{Path: a.path, Why: "another agent serves it: use another path, or end that agent first", Served: true}
		}
		return err
	}
	return os.Remove(temp)
}

// check looks whether the page is as the agent left it.
func (a *agent) check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.page == nil {
		return nil
	}
	if err := a.page.check(); err != nil {
		var ahead *pagefile.AheadError
		if errors.As(err, &ahead) {
			return &RestartError{a.path, err.Error()}
		}
		return &UnusableError{Path: a.path, Why: err.Error() + ", so ids may repeat: find that program, and let only clients write to the page; then start the agent again"}
	}
	is, err := same(a.path, a.at)
	if err != nil || is {
		return err
	}
	if _, err := os.Lstat(a.path); errors.Is(err, fs.ErrNotExist) {
		return &RestartError{a.path, "it was removed"}
	}
	return &UnusableError{Path: a.path, Why: "another program replaced it: end that program, or use another path"}
}

// count reads how many ids were taken.
func (a *agent) count() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.page != nil {
		a.page.count()
	}
}

// end closes the page, and lets another agent have the path.
func (a *agent) end() (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.page != nil {
		a.page.release()
	}
	if a.held != nil {
		err = a.held.Close()
		a.held = nil
	}
	return err
}

// A served is the page of one term. It is a [pagefile.Issuer].
type served struct {
	header *pagefile.Header
	bytes  []byte // of the header
	epoch  time.Time
	stats  *Stats // nil: nobody counts

	mu      sync.Mutex
	agent   *pagefile.Agent
	memory  mapped // nil once closed: nobody reads or writes it any more
	counted uint64 // Number up to which ids were counted
	broken  error  // what is wrong with the page; nil: nothing
	setAt   int64  // CLOCK_BOOTTIME at the last SetClock
	offset  int64  // what SetClock then wrote for that clock
}

// Extend raises the horizon to one that the store has confirmed. A page that was damaged is closed instead.
func (s *served) Extend(horizon firn.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory != nil && s.fault() == nil {
		s.agent.Extend(horizon)
		if s.stats != nil {
			s.stats.Renewals.Add(1)
		}
	}
}

// count counts the ids that were taken since the last call.
func (s *served) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory != nil {
		s.countTo(s.memory.Load(pagefile.Number))
	}
}

func (s *served) countTo(word uint64) {
	if s.stats == nil || word == pagefile.Closed || word <= s.counted {
		return
	}
	s.stats.Taken.Add(int64(s.header.Taken(s.counted, word)))
	s.counted = word
}

// SetClock makes it now.
func (s *served) SetClock(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		return
	}
	mono, boot, real := monotonic(), clock(unix.CLOCK_BOOTTIME), clock(unix.CLOCK_REALTIME)
	at := int64(now.Sub(s.epoch))
	// This process may have been held up since the lease read its clock, and clients would wait for as long. But the lease's clock
	// falls behind CLOCK_BOOTTIME by no more than a part of the time that has passed: what is missing beyond that is such a delay.
	if s.setAt != 0 {
		at += max(s.offset-(boot-s.setAt)/slew-(at-boot), 0)
	}
	s.setAt, s.offset = boot, at-boot
	s.memory.Store(pagefile.Monotonic, uint64(at-mono))
	s.memory.Store(pagefile.Boottime, uint64(at-boot))
	s.memory.Store(pagefile.Realtime, uint64(at-real))
}

// slew is the part of elapsed time by which a lease's clock is led back to the system's, as internal/term has it.
const slew = 20

// Close closes the page permanently.
func (s *served) Close() firn.Tick {
	s.release()
	return s.agent.Close()
}

// release closes the page and takes it out of this process's memory.
func (s *served) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory != nil {
		s.agent.Close()
		s.countTo(s.memory.Load(pagefile.ClosedAt))
		unmap(s.memory)
		s.memory = nil
	}
}

// check returns what is wrong with the page, if anything is.
func (s *served) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		return nil
	}
	return s.fault()
}

// fault is check. A page that has a fault is closed: it may have issued all up to its horizon. The fault is
// kept, because the lease may find it first, when it extends the page, and Serve has to say it.
func (s *served) fault() error {
	if s.broken != nil {
		return s.broken
	}
	err := s.agent.Check(monotonic() + int64(s.memory.Load(pagefile.Monotonic)))
	if err == nil && !bytes.Equal(s.memory[:pagefile.HeaderSize], s.bytes) {
		err = errors.New("another program wrote to its header")
	}
	if err != nil {
		s.agent.Condemn()
		s.broken = err
	}
	return err
}
