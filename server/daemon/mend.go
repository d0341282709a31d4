package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/store/sqlite"
)

// A store that has forgotten something, or is a copy, gives nothing any more. Nothing but a recovery
// makes it safe: a backup that is put back looks sound. The server reads the mark with which a recovery
// ends, and uses the store again once it is of after the loss.

// A reason is why the settings are read again.
type reason struct {
	signalled bool                  // somebody has asked for it, and vouches for the stores
	mended    func(url string) bool // stores that gave nothing any more are opened anew
	looks     bool                  // nobody vouches: a counter has to have given something
}

var (
	bySignal = reason{signalled: true, mended: func(string) bool { return true }}
	byItself = reason{mended: func(string) bool { return false }}
)

// byRecovery is for stores that were recovered.
func byRecovery(urls []string) reason {
	return reason{mended: func(url string) bool { return slices.Contains(urls, url) }, looks: true}
}

// every reports whether all of them are.
func every(all []string, is func(string) bool) bool {
	return !slices.ContainsFunc(all, func(one string) bool { return !is(one) })
}

// ended returns the stores that give nothing any more, and since when.
func (x *sharedStores) ended() map[string]time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := maps.Clone(x.unused)
	for url, s := range x.byURL {
		if s.ended() != nil {
			all[url] = time.Unix(0, s.endedAt.Load())
		}
	}
	return all
}

// errUnmended says that no store that had ended is used again.
var errUnmended = errors.New("no store was recovered")

// mend reloads if stores that had ended were recovered since.
func (o *service) mend(ctx context.Context, ended map[string]time.Time) error {
	var urls []string
	for url, since := range ended {
		asked, cancel := context.WithTimeout(ctx, listPatience)
		if recoveredSince(asked, url, since) {
			urls = append(urls, url)
		}
		cancel()
	}
	if len(urls) == 0 {
		o.unmended.Store(nil)
		return errUnmended
	}
	err := o.reload(ctx, byRecovery(urls))
	if err == nil {
		o.unmended.Store(nil)
		return nil
	}
	before := o.unmended.Swap(&unmended{urls, err})
	if before != nil && before.err.Error() == err.Error() {
		return errUnmended // it was logged
	}
	return err
}

// An unmended is why the server does not use stores that were recovered.
type unmended struct {
	urls []string
	err  error
}

// advise adds to what is said of a series: while its store was recovered and the server cannot use it,
// what can be done about that comes first. To recover the store again would not help.
func (o *service) advise(advise func(Problem) string) func(Problem) string {
	return func(p Problem) string {
		why := o.unmended.Load()
		if why == nil || p.Series == nil || unforgiven(p.Err) == nil || !every(p.Series.URLs, func(url string) bool { return slices.Contains(why.urls, url) }) {
			return advise(p)
		}
		text := "the store was recovered, and this server does not use it yet: " + phrase.Reason(why.err)
		if hint := advise(Problem{Err: why.err}); hint != "" {
			text += "; " + hint
		}
		return text
	}
}

// recoveredSince reports whether a store says that it was recovered after a time. A file is opened only
// where the hidden file beside it says that it is the store's: somebody may be copying it there.
func recoveredSince(ctx context.Context, url string, since time.Time) bool {
	if path, ok := whichstore.File(url); ok {
		if files, err := sqlite.Inspect(path); err != nil || files.Database == nil || files.Sidecar == nil {
			return false
		}
	} else {
		since = since.Add(recovery.ClockError) // it may have run on another host
	}
	st, err := open.Store(ctx, url, nil)
	if err != nil {
		return false
	}
	defer st.Close()
	at, err := record.RecoveredAt(ctx, st)
	// A mark of a time to come is of a clock that was ahead, and may be of before the loss.
	return err == nil && at.After(since) && at.Before(time.Now().Add(recovery.ClockError))
}
