package sqlite

import "fmt"

// A host is what is known about the file system under a store.
type host struct {
	name     string
	volatile bool // forgets when the host restarts
}

func remoteError(name string) error {
	return fmt.Errorf("is on a network or shared file system (%s), where SQLite's locks do not reach other hosts; use a local disk, or a store that is a server", name)
}
