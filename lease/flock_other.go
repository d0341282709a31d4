//go:build !windows && !(unix && !aix && !solaris) && !illumos

package lease

import (
	"fmt"
	"os"
	"runtime"
)

// lockFile fails: without a lock that ends with the process, two processes could resume
// one grant.
func lockFile(path string) (*os.File, error) {
	return nil, fmt.Errorf("%s has no lock that ends with its process: leave Options.GrantFile empty", runtime.GOOS)
}

// inode is never called: there is no file.
func inode(*os.File) (device, number uint64, err error) { return 0, 0, nil }

// diskFull is false: no grant file is used on these systems.
func diskFull(error) bool { return false }
