//go:build !linux && !darwin

package lease

// bootID is empty where the system has no name for its run: no grant file is
// gone on with there.
func bootID() string { return "" }
