//go:build linux && (amd64 || arm64)

package page_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store/memory"
)

// Check says why a path cannot have a page, and leaves everything as it was.
func TestCheck(t *testing.T) {
	d := dir(t)
	for _, err := range []error{
		os.Mkdir(filepath.Join(d, "sub"), 0o700),
		os.WriteFile(filepath.Join(d, "file"), []byte("a file of somebody"), 0o600),
		os.Symlink(filepath.Join(d, "file"), filepath.Join(d, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	held := filepath.Join(d, "held")
	serve(t, memory.New(), held)
	open(t, held)
	for path, says := range map[string]string{
		"page": "", "sub": "it is a directory: name a file in it, such as " + d + "/sub/page", "none/page": "there is no directory " + d + "/none: mkdir -p " + d + "/none",
		"file": "it is another file: use another path, or remove it", "file/page": d + "/file is not a directory", "link": "it is a symbolic link", "held": "another agent serves it",
	} {
		err := page.Check(filepath.Join(d, path))
		var e *page.UnusableError
		if (says == "") != (err == nil) || says != "" && (!errors.As(err, &e) || !strings.Contains(e.Why, says)) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
	if err := page.Check("/proc/page"); err == nil || !strings.Contains(err.Error(), "its file system is") {
		t.Error(err)
	}
	if names, err := os.ReadDir(d); err != nil || len(names) != 4 {
		t.Errorf("%v, %v", names, err)
	}
}

// Stats and Made say what becomes of a page.
func TestStats(t *testing.T) {
	path := filepath.Join(dir(t), "page")
	l, err := lease.Open(t.Context(), memory.New(), &lease.Options{Renew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var stats page.Stats
	var worker atomic.Int64
	worker.Store(-1)
	done := make(chan error, 1)
	go func() {
		done <- page.Serve(ctx, l, path, &page.Options{Stats: &stats, Made: func(w int64, term uint64) { worker.Store(w) }})
	}()
	p := open(t, path)
	const n = 3000
	for range n {
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	if _, err := p.Append(t.Context(), nil, 7); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := stats.Taken.Load(); got != n+7 {
		t.Errorf("%d ids counted, and %d taken", got, n+7)
	}
	if stats.Pages.Load() != 1 || worker.Load() != l.State().Worker {
		t.Errorf("%d pages, of worker %d", stats.Pages.Load(), worker.Load())
	}
}
