//go:build linux && (amd64 || arm64)

package page

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/firn-id/firn/internal/pagefile"
	"golang.org/x/sys/unix"
)

// mapped is a page in this process's memory.
type mapped []byte

func (m mapped) at(w pagefile.Word) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&m[w])) }

func (m mapped) Load(w pagefile.Word) uint64           { return m.at(w).Load() }
func (m mapped) Store(w pagefile.Word, v uint64)       { m.at(w).Store(v) }
func (m mapped) Swap(w pagefile.Word, v uint64) uint64 { return m.at(w).Swap(v) }

func (m mapped) CompareAndSwap(w pagefile.Word, old, v uint64) bool {
	return m.at(w).CompareAndSwap(old, v)
}

// mapFile maps the page in a file.
func mapFile(f *os.File) (mapped, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, pagefile.Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return b, nil
}

func unmap(b mapped) {
	_ = unix.Munmap(b) // b is mapped, so this cannot fail
}

// fileSystems are those that may have pages: each keeps one copy of a file in memory, whichever way it is reached, and
// writes allocated blocks in place.
var fileSystems = map[int64]string{unix.TMPFS_MAGIC: "tmpfs", unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs"}

var refused = map[int64]string{
	unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.NFS_SUPER_MAGIC: "NFS", unix.FUSE_SUPER_MAGIC: "FUSE or virtiofs",
	unix.V9FS_MAGIC: "9p", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB",
}

// checkFileSystem says why a file system cannot have pages; empty where it can.
func checkFileSystem(f *os.File) (memory bool, why string, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false, "", &os.PathError{Op: "statfs", Path: f.Name(), Err: err}
	}
	kind := int64(st.Type)
	if fileSystems[kind] == "" {
		name := refused[kind]
		if name == "" {
			name = fmt.Sprintf("type %#x", kind)
		}
		return false, fmt.Sprintf("its file system is %s: use a path on tmpfs, ext4 or xfs, such as /dev/shm or /run", name), nil
	}
	return kind == unix.TMPFS_MAGIC, "", nil
}

// host reads once what does not change while this process runs.
var host = sync.OnceValues(func() (pagefile.Place, error) {
	var at pagefile.Place
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return at, fmt.Errorf("cannot tell which run of the system this is: %w", err)
	}
	boot, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(b)), "-", ""))
	if err != nil || len(boot) != len(at.Boot) {
		return at, fmt.Errorf("cannot tell which run of the system this is: /proc/sys/kernel/random/boot_id says %q", b)
	}
	at.Boot = [16]byte(boot)
	var st unix.Stat_t
	switch err := unix.Stat("/proc/self/ns/time", &st); {
	case err == nil:
		at.TimeNamespace = st.Ino
	case err != unix.ENOENT:
		return at, fmt.Errorf("cannot tell the time namespace: %w", err)
	}
	return at, nil
})

// placeOf is where a file is.
func placeOf(f *os.File) (pagefile.Place, error) {
	at, err := host()
	if err != nil {
		return at, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return at, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	at.Device, at.Inode = uint64(st.Dev), st.Ino
	var x unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &x); err == nil && x.Mask&unix.STATX_BTIME != 0 {
		at.Born = x.Btime.Sec*int64(time.Second) + int64(x.Btime.Nsec)
	}
	return at, nil
}

// same reports whether a path is still the name of a file.
func same(path string, at pagefile.Place) (bool, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return uint64(st.Dev) == at.Device && st.Ino == at.Inode, nil
}

// clock reads a clock of the system.
func clock(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0 // clocks are for order only, and these are there on every Linux
	}
	return ts.Nano()
}

var (
	began = time.Now()
	// beganAt is what CLOCK_MONOTONIC said then: Go reads that clock without a system call, and
	// shows only differences.
	beganAt = sync.OnceValue(func() int64 {
		best, at := int64(1<<62), int64(0)
		for range 5 {
			before := int64(time.Since(began))
			reading := clock(unix.CLOCK_MONOTONIC)
			if took := int64(time.Since(began)) - before; took < best {
				best, at = took, reading-before-took/2
			}
		}
		return at
	})
)

// monotonic is CLOCK_MONOTONIC.
func monotonic() int64 { return beganAt() + int64(time.Since(began)) }
