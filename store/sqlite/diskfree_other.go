//go:build !linux && !darwin && !freebsd

package sqlite

// full is not known here.
func full(string) bool { return false }
