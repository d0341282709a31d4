package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// envSlots is a directory with as many files as test binaries may run at once.
const envSlots = "FIRN_TEST_SLOTS"

// Slots has at most so many test binaries run at once, of all runs of go test that have the variable
// in their environment: those that call Main wait for a slot. A run of go test has its own limit, and
// knows nothing of a second run beside it.
func Slots(most int) (variable string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "firn-slots-")
	if err != nil {
		return "", nil, err
	}
	for i := range most {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			return "", nil, err
		}
	}
	return envSlots + "=" + dir, func() error { return os.RemoveAll(dir) }, nil
}

// takeSlot waits until a slot is free, and returns what gives it back. What the process starts needs none.
// The slot is also free once nothing refers to what is returned.
func takeSlot() (leave func(), err error) {
	dir := os.Getenv(envSlots)
	if dir == "" {
		return func() {}, nil
	}
	if err := os.Unsetenv(envSlots); err != nil {
		return nil, err
	}
	for ; ; time.Sleep(50 * time.Millisecond) {
		slots, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(slots) == 0 {
			return nil, fmt.Errorf("testserver: %s=%s has no slots: %w", envSlots, dir, err)
		}
		for _, s := range slots {
			if leave, ok, err := tryLock(s); err != nil || ok {
				return leave, err
			}
		}
	}
}
