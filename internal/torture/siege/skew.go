//go:build linux

package siege

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// A skew is how far a process's clock is off. Set it at any time.
type skew struct {
	path string
	mem  []byte

	wasOff bool // it was not zero all the time
}

func newSkew(t testing.TB, path string) *skew {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8); err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(mem) })
	return &skew{path: path, mem: mem}
}

func (s *skew) set(d time.Duration) {
	s.wasOff = s.wasOff || d != 0
	atomic.StoreInt64(word(s.mem), int64(d))
}

func (s *skew) get() time.Duration { return time.Duration(atomic.LoadInt64(word(s.mem))) }

func word(mem []byte) *int64 { return (*int64)(unsafe.Pointer(&mem[0])) }
