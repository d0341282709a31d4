package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/store"
	"golang.org/x/sys/unix"
)

// apart runs the rest of a test in another process, if inside is set up there:
// it returns whether this is that process.
func apart(t *testing.T, attr *syscall.SysProcAttr, env ...string) bool {
	t.Helper()
	const marker = "FIRN_SQLITE_TEST_APART"
	if os.Getenv(marker) == t.Name() {
		return true
	}
	// By this name another user may execute it too.
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(append(os.Environ(), marker+"="+t.Name(), "GORACE=atexit_sleep_ms=0"), env...)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("this host does not allow it: %v", err)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("apart: %v\n%s", err, out)
	}
	return false
}

// mounts returns what gives a child mounts of its own, without being root.
func mounts() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// tmpfs mounts one of a size, and returns a path in it.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(t, unix.Mount("firn", dir, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return filepath.Join(dir, "ids.db")
}

func remount(t *testing.T, path string, flags uintptr) {
	t.Helper()
	must(t, unix.Mount("", filepath.Dir(path), "", unix.MS_REMOUNT|flags, ""))
}

func TestDiskFull(t *testing.T) {
	if !apart(t, mounts()) {
		return
	}
	path := tmpfs(t, "1m")
	s := mustOpen(t, path)
	works(t, s)

	ballast := beside(path, "ballast")
	fill(t, ballast)

	r, err := s.Get(t.Context(), "works")
	must(t, err)
	value := []byte(`"` + strings.Repeat("x", 1<<14) + `"`)
	for range 3 {
		_, err = s.Put(t.Context(), "works", value, store.Condition{Version: r.Version})
		says(t, err, path, "disk is full", "free some space")
		if got, err := s.Get(t.Context(), "works"); err != nil || got.Version != r.Version {
			t.Errorf("%+v, %v", got, err)
		}
	}
	says(t, openError(beside(path, "new.db")), "new.db", "disk is full")
	if got := files(t, filepath.Dir(path)); len(got) != 5 {
		t.Errorf("a creation that failed leaves %q", got)
	}

	// A process that starts now lacks the space for the shared memory of SQLite's log, which SQLite
	// calls an error of the disk.
	must(t, s.Close())
	fill(t, ballast)
	late, err := Open(t.Context(), path)
	if err == nil {
		_, err = late.Get(t.Context(), "works")
		late.Close()
	}
	says(t, err, path, "disk is full", "free some space")

	must(t, os.Remove(ballast))
	s = mustOpen(t, path)
	_, err = s.Put(t.Context(), "works", value, store.Condition{Version: r.Version})
	must(t, err)
	works(t, s)
	checkIntegrity(t, path)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	for block := make([]byte, 512); err == nil; {
		_, err = f.Write(block)
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// TestMountedAlone opens a file that is mounted where it is, as containers do.
func TestMountedAlone(t *testing.T) {
	if !apart(t, mounts()) {
		return
	}
	from := tmpfs(t, "1m")
	must(t, mustOpen(t, from).Close())
	path := filepath.Join(t.TempDir(), "ids.db")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, unix.Mount(from, path, "", unix.MS_BIND, ""))
	defer unix.Unmount(path, unix.MNT_DETACH)
	says(t, openError(path), path, "mounted by itself", "mount its directory")
	says(t, Restored(t.Context(), path, nothing), path, "mounted by itself")
	expectFiles(t, filepath.Dir(path), "ids.db")
}

func TestDurabilityOfTmpfs(t *testing.T) {
	if !apart(t, mounts()) {
		return
	}
	p, err := mustOpen(t, tmpfs(t, "1m")).Durability(t.Context())
	if err != nil || p.Durable || !p.LocalClock || !p.NoticesLoss || !strings.Contains(p.Why, "tmpfs, which forgets when the host restarts") {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	if !apart(t, mounts()) {
		return
	}
	path := tmpfs(t, "1m")
	s := mustOpen(t, path)
	works(t, s)
	must(t, s.Close())

	remount(t, path, unix.MS_RDONLY)
	says(t, openError(beside(path, "new.db")), "new.db", "file system is read-only")
	says(t, openError(path), path, "file system is read-only")
	remount(t, path, 0)
	works(t, mustOpen(t, path))
}

// immutable makes files unwritable even for root, or the opposite.
func immutable(on bool, paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err == nil {
			flags &^= unix.STATX_ATTR_IMMUTABLE
			if on {
				flags |= unix.STATX_ATTR_IMMUTABLE
			}
			err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// TestReadOnlyFile makes the files unwritable under an open Store. It does so
// in another process, which has no locks to lose by closing them.
func TestReadOnlyFile(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	works(t, s)
	set := func(on bool) error {
		c := start(t, "immutable", fmt.Sprint(on), path, path+"-wal")
		if l := c.line(t); l != "ok" {
			return errors.New(l)
		}
		return c.Wait()
	}
	if err := set(true); err != nil {
		t.Skipf("this host does not allow it: %v", err)
	}
	defer set(false)
	for range 3 {
		_, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
		says(t, err, path, "is read-only for this user; make it writable")
	}
	must(t, set(false))
	works(t, s)
}

func init() { children["immutable"] = childImmutable }

func childImmutable(args []string) error {
	if err := immutable(args[0] == "true", args[1:]...); err != nil {
		fmt.Println(err)
	} else {
		fmt.Println("ok")
	}
	return nil
}

// TestPermissions opens what this user may not.
func TestPermissions(t *testing.T) {
	if os.Getuid() == 0 {
		apart(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}})
		return
	}
	path, r := store1(t)
	at, err := locate(path)
	must(t, err)
	dir := filepath.Dir(path)
	chmod := func(name string, mode os.FileMode) {
		t.Helper()
		must(t, os.Chmod(name, mode))
		t.Cleanup(func() { os.Chmod(name, 0o700) })
	}

	for _, mode := range []os.FileMode{0o400, 0} {
		chmod(path, mode)
		says(t, openError(path), path, path+" is read-only for this user", "chgrp GROUP "+dir+" "+path+" "+at.sidecar()+" && chmod g+rwxs "+dir+" && chmod 660 "+path+" "+at.sidecar())
	}
	chmod(path, 0o600)
	chmod(at.sidecar(), 0)
	says(t, openError(path), path, at.sidecar()+" is read-only for this user")
	chmod(at.sidecar(), 0o444)
	says(t, openError(path), path, at.sidecar()+" is read-only for this user", "give it the owner and group of "+path)
	chmod(at.sidecar(), 0o600)

	chmod(dir, 0o500)
	says(t, openError(path), path, dir+" is read-only for this user", "chgrp GROUP "+dir+" "+path+" "+at.sidecar())
	says(t, openError(beside(path, "new.db")), "new.db", dir+" is read-only for this user")
	chmod(dir, 0)
	says(t, openError(path), path, "permission denied")
	below := filepath.Join(dir, "below")
	says(t, openError(filepath.Join(below, "ids.db")), "this user may not enter the directory "+below+", or one above it")
	chmod(dir, 0o700)
	s := mustOpen(t, path)
	works(t, s)

	// Not seen is not gone.
	chmod(dir, 0)
	_, err = s.Get(t.Context(), "k")
	says(t, err, path, "permission denied")
	chmod(dir, 0o700)
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	works(t, s)
}

func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	must(t, syscall.Mkfifo(path, 0o600))
	says(t, openError(path), path, "is a pipe")
	says(t, Restored(t.Context(), path, nothing), path, "is a pipe")
}

// TestSidecarIsOfTheDatabasesOwner: whoever writes the sidecar anew, such as root, leaves it to
// those who write the database: else nobody would note their writes.
func TestSidecarIsOfTheDatabasesOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: only root gives files away")
	}
	path, _ := store1(t)
	at, err := locate(path)
	must(t, err)
	for _, tt := range []struct {
		uid, gid int
		mode     os.FileMode
		want     os.FileMode
	}{{65534, 65534, 0o600, 0o644}, {0, 65534, 0o660, 0o664}} {
		must(t, os.Chown(path, tt.uid, tt.gid))
		must(t, os.Chmod(path, tt.mode))
		must(t, Restored(t.Context(), path, func(*Store) error { return nil }))
		fi, err := os.Stat(at.sidecar())
		must(t, err)
		st := fi.Sys().(*syscall.Stat_t)
		if int(st.Uid) != tt.uid || int(st.Gid) != tt.gid || fi.Mode().Perm() != tt.want {
			t.Errorf("%+v: owner %d, group %d, mode %o", tt, st.Uid, st.Gid, fi.Mode().Perm())
		}
	}
}
