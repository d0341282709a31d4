//go:build linux && (amd64 || arm64)

package page

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/pagefile"
	"golang.org/x/sys/unix"
)

const (
	glance = 100 * time.Millisecond // between two looks at the path, at least
	nap    = 20 * time.Millisecond  // a wait goes no longer without a look at the page
	pause  = 10 * time.Millisecond  // between two tries, where there is no page
)

// A Page takes ids from a shared page. It is a [firn.Source], and safe for concurrent use. Ids of one process increase,
// also when a new agent has made a new page. Make one with [Open].
type Page struct {
	path string
	wait time.Duration

	now atomic.Pointer[client] // nil after Close

	mu     sync.Mutex // of a look at the path; guards the rest
	looked time.Time
	err    error // of the last look: why there is no other page
}

var _ firn.Source = (*Page)(nil)

// A client is a page that this process has mapped. It is unmapped when nothing refers to the client.
type client struct {
	pagefile.Client
	left atomic.Bool
	path string // of its file: the path of the Page, or that of a lane
	at   pagefile.Place
}

// Open opens the page at a path. It waits for a page that does not exist yet as long as [OpenOptions] say. If the agent
// replaces the page later, calls use the new page, if that has the same pool, layout and shard. If the agent has several
// lanes, the Page takes one of them and keeps to it.
//
// Errors: [*MissingError]; [*UnusableError], the file is no page, a copy, of another host, or on a file system that
// cannot have pages; those of the system.
func Open(path string, opts *OpenOptions) (*Page, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p := &Page{path: path, wait: time.Second}
	if opts != nil && opts.Wait != 0 {
		p.wait = max(opts.Wait, 0)
	}
	for end := time.Now().Add(p.wait); ; time.Sleep(pause) {
		c, err := open(path)
		if err == nil {
			p.now.Store(p.draw(c))
			return p, nil
		}
		var missing *MissingError
		if !errors.As(err, &missing) || !time.Now().Before(end) {
			return nil, err
		}
	}
}

// draw takes the lane of this process: from the page at the path it goes to the lane's page, if that gives ids.
func (p *Page) draw(c *client) *client {
	lane := c.Draw()
	runtime.KeepAlive(c)
	if lane == c.Lane {
		return c
	}
	next, err := open(pagefile.LanePath(p.path, lane))
	if err != nil || c.Alike(next.Header) != "" || next.Lane != lane || !next.Gives() {
		return c
	}
	runtime.KeepAlive(next)
	return next
}

// open maps the page at a path.
func open(path string) (*client, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &MissingError{path}
		}
		return nil, err
	}
	defer f.Close()
	if _, why, err := checkFileSystem(f); err != nil || why != "" {
		return nil, errors.Join(err, unusable(path, why))
	}
	if info, err := f.Stat(); err != nil || info.Size() != pagefile.Size || !info.Mode().IsRegular() {
		return nil, errors.Join(err, unusable(path, "it is not a page"))
	}
	at, err := placeOf(f)
	if err != nil {
		return nil, unusable(path, err.Error())
	}
	m, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	h, err := pagefile.Decode(slices.Clone(m[:pagefile.HeaderSize]))
	if err == nil {
		if why := at.Differs(h.Place); why != "" {
			err = errors.New(why)
		}
	}
	if err != nil {
		unmap(m)
		return nil, unusable(path, err.Error())
	}
	c := &client{path: path, at: at}
	c.Client = pagefile.Client{Header: h, Memory: m, Left: &c.left, Clock: monotonic, Offset: pagefile.Monotonic}
	runtime.AddCleanup(c, unmap, m)
	return c, nil
}

func unusable(path, why string) error {
	if why == "" {
		return nil
	}
	return &UnusableError{Path: path, Why: why}
}

// Next returns one id. It waits until the clock allows the id or ctx is done, and for a page that can be used as
// [OpenOptions] say. Errors: [*EndedError], [*ClosedError], [*MissingError], [*UnusableError]; [firn.ErrClosed] after
// Close; ctx's.
func (p *Page) Next(ctx context.Context) (firn.ID, error) {
	c, first, _, err := p.take(ctx, 1)
	if err != nil {
		return 0, err
	}
	return c.ID(first), nil
}

// Append appends n ids to dst. Errors are those of Next; with one it returns dst with the ids it got.
func (p *Page) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	dst = slices.Grow(dst, n)
	for n > 0 {
		c, first, last, err := p.take(ctx, uint64(n))
		if err != nil {
			return dst, err
		}
		for w := first; w <= last; w++ {
			dst = append(dst, c.ID(w))
		}
		n -= int(last - first + 1)
	}
	return dst, nil
}

// Close makes all later calls fail. The page stays as it is, for other processes.
func (p *Page) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Store(nil)
	return nil
}

// take takes up to n numbers of a page.
func (p *Page) take(ctx context.Context, n uint64) (c *client, first, last uint64, err error) {
	var end time.Time // when a wait for another page is over; zero: there was none
	for {
		c = p.now.Load()
		if c == nil {
			return nil, 0, 0, firn.ErrClosed
		}
		var do pagefile.Answer
		first, last, do = c.Take(n)
		runtime.KeepAlive(c)
		rest := time.Duration(0)
		switch do {
		case pagefile.Take:
			return c, first, last, nil
		case pagefile.Wait:
			rest = min(time.Duration(max(c.Until(first), 0)), nap)
			runtime.KeepAlive(c)
		case pagefile.Parted:
			p.changed(c)
			continue
		default:
			if p.look(c) {
				continue
			}
			if end.IsZero() {
				end = time.Now().Add(p.wait)
			}
			if !time.Now().Before(end) {
				return nil, 0, 0, p.why(c, do)
			}
			rest = pause
		}
		if err := sleep(ctx, rest); err != nil {
			return nil, 0, 0, err
		}
	}
}

// sleep waits, or returns ctx's error. Waits of a tick are short, and cost no timer.
func sleep(ctx context.Context, rest time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	time.Sleep(rest)
	return nil
}

// changed waits until another call, which has left the page of c, is done with it.
func (p *Page) changed(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Load() == c {
		p.follow(c)
	}
}

// look looks at the path, at most every 100 ms, and reports whether calls have another page than c now.
func (p *Page) look(c *client) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Load() != c {
		return true
	}
	if time.Since(p.looked) < glance {
		return false
	}
	p.looked = time.Now()
	return p.follow(c)
}

// follow changes from c to the page at the path, if that is another one that this process may use.
func (p *Page) follow(c *client) bool {
	next, err := another(c)
	if next == nil && c.path != p.path {
		// An agent that was started with fewer lanes does not serve this one any more.
		if first, other := open(p.path); other == nil && c.Alike(first.Header) == "" && max(first.Lanes, 1) <= c.Lane {
			next, err = p.draw(first), nil
		}
	}
	p.err = err
	if next == nil {
		return false
	}
	next.Above = c.Leave()
	runtime.KeepAlive(c)
	p.now.Store(next)
	return true
}

// another opens the page that is now at the path of c, if that is another one.
func another(c *client) (*client, error) {
	if at, err := same(c.path, c.at); at && err == nil {
		return nil, nil
	}
	next, err := open(c.path)
	if err != nil {
		return nil, err
	}
	if why := c.Alike(next.Header); why != "" {
		return nil, &UnusableError{Path: c.path, Why: why + "; open it again to use it"}
	}
	return next, nil
}

// why is the error of a call that found no page it could use.
func (p *Page) why(c *client, do pagefile.Answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if do == pagefile.Shut {
		return &ClosedError{c.path}
	}
	end := int64(c.TickOf(c.Memory.Load(pagefile.Horizon))+1) * c.Tick
	after := time.Duration(max(c.Now()-end, 0))
	runtime.KeepAlive(c)
	return &EndedError{Path: c.path, After: after}
}
