//go:build linux

package ledger

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// errShort: the file is there and has not got its length yet.
var errShort = errors.New("the file is not ready")

// mapChunk maps a file of a ledger. With create the file is new.
func mapChunk(name string, create bool) ([]line, error) {
	flags, prot := os.O_RDONLY, syscall.PROT_READ
	if create {
		flags, prot = os.O_RDWR|os.O_CREATE|os.O_EXCL, syscall.PROT_READ|syscall.PROT_WRITE
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if create {
		if err := f.Truncate(int64(chunkBytes)); err != nil {
			return nil, err
		}
	} else if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Size() < int64(chunkBytes) {
		return nil, errShort
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, chunkBytes, prot, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: name, Err: err}
	}
	return unsafe.Slice((*line)(unsafe.Pointer(&mem[0])), chunk), nil
}

func unmapChunk(lines []line) error {
	return syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&lines[0])), chunkBytes))
}

// Boot reads the boot clock, in nanoseconds. It is not one that a siege shifts.
func Boot() int64 {
	const clockBoottime = 7
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return ts.Nano()
}
