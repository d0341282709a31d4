package mysql

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// disk is loaded into a server. It holds up what InnoDB writes to its log for as
// long as there is a file of that name.
const disk = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void wait(int fd) {
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 0) return;
	path[n] = 0;
	if (!strstr(path, "ib_logfile") && !strstr(path, "#ib_redo")) return;
	while (!access(HANGS, F_OK)) usleep(1000);
}

ssize_t pwrite(int fd, const void *b, size_t n, off_t at) {
	wait(fd);
	return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, b, n, at);
}

ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) {
	wait(fd);
	return ((ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(fd, b, n, at);
}
`

// hangingDisk has the servers that the test starts run on a disk that hangs when
// hang is called, until write is.
func hangingDisk(t *testing.T) (hang, write func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn-disk-") // not t.TempDir: the server runs as another user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	source, lib, hangs := filepath.Join(dir, "disk.c"), filepath.Join(dir, "disk.so"), filepath.Join(dir, "hangs")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(source, []byte(disk), 0o644)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-DHANGS=\""+hangs+"\"", "-o", lib, source, "-ldl").CombinedOutput()
	if err != nil {
		t.Fatalf("a C compiler is needed: %v\n%s", err, out)
	}
	t.Setenv("LD_PRELOAD", lib)
	hang = func() {
		if err := os.WriteFile(hangs, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return hang, func() { os.Remove(hangs) }
}

// TestNotYetOnDisk: what somebody wrote can be seen on the server while its disk
// hangs, but is not read before it is on the disk, as a crash would lose it. A binary
// log changes nothing where it leaves the database out.
func TestNotYetOnDisk(t *testing.T) {
	hang, write := hangingDisk(t)
	for _, args := range [][]string{nil, {"--log-bin=log", "--sync-binlog=1", "--server-id=7", "--binlog-ignore-db=test"}} {
		server := testserver.MariaDB(t, args...)
		db := connect(t, config(t, server))
		s := New(db)
		first := mustPut(t, s, "k", `1`, store.Condition{})
		if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != first.Version {
			t.Fatal(got, err)
		}
		within := func(call func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			return call(ctx)
		}

		hang()
		var second store.Record
		says(t, "Put", within(func(ctx context.Context) (err error) {
			second, err = s.Put(ctx, "k", []byte(`2`), store.Condition{Version: first.Version})
			return err
		}), "not answered in time")
		var shown string
		err := within(func(ctx context.Context) error {
			return db.QueryRowContext(ctx, "SELECT version FROM firn_records WHERE `key` = 'k'").Scan(&shown)
		})
		if err == nil && shown != string(second.Version) {
			t.Errorf("%q: the server does not show what it has not written", args)
		}
		for what, read := range map[string]func(context.Context) error{
			"Get":  func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
			"List": func(ctx context.Context) error { _, err := s.List(ctx, ""); return err },
			"Update": func(ctx context.Context) error {
				_, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) {
					t.Errorf("%q: Update is given what a crash would lose", args)
					return nil, errors.New("never")
				})
				return err
			},
		} {
			if err := within(read); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%q: %s reads what a crash would lose: %v", args, what, err)
			}
		}

		server.Kill(t)
		write()
		server.Start(t)
		isAgain(t, s, first) // or the crash would have lost nothing
		works(t, s)
	}
}
