// Package atonce asks all servers of a cluster at once.
package atonce

import (
	"errors"
	"slices"
	"sync"
)

// Each calls f with each server and its index, all at once, and waits until all calls have ended. It returns their
// errors joined, in the order of the servers, and a single one as it is.
func Each[T any](servers []T, f func(int, T) error) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = f(i, s) })
	}
	all.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
