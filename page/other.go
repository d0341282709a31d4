//go:build !linux || !(amd64 || arm64)

package page

import (
	"context"
	"runtime"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

func unsupported(path string) error {
	return &UnusableError{Path: path, Why: "pages work on Linux, on amd64 and arm64, and this is " + runtime.GOOS + " on " + runtime.GOARCH}
}

// Serve returns an [*UnusableError] on this system.
func Serve(_ context.Context, _ *lease.Lease, path string, _ *Options) error {
	return unsupported(path)
}

// Check returns an [*UnusableError] on this system.
func Check(path string) error { return unsupported(path) }

// A Page takes ids from a shared page. This system has no pages, and Open returns an error.
type Page struct{ path string }

// Open returns an [*UnusableError] on this system.
func Open(path string, _ *OpenOptions) (*Page, error) { return nil, unsupported(path) }

// Next returns an error.
func (p *Page) Next(context.Context) (firn.ID, error) { return 0, unsupported(p.path) }

// Append returns an error.
func (p *Page) Append(_ context.Context, dst []firn.ID, _ int) ([]firn.ID, error) {
	return dst, unsupported(p.path)
}

// Close does nothing.
func (*Page) Close() error { return nil }
