//go:build !linux

package lease

import "time"

// boot is Go's monotonic clock. Where that stands still through a suspend, ids
// carry a time that lags behind by as much until the clock has caught up.
func boot() time.Duration { return time.Since(started) }
