package lease

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store/memory"
)

// Where the file cannot be written nothing may be issued, and that is said at once:
// when the lease is opened, and to every call later, whether the store is there or not.
func TestGrantFileThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		o.File = "/dev/full"
		var file *GrantFileError
		if l, err := Open(t.Context(), s, o); !errors.As(err, &file) || file.Path != o.File {
			t.Fatalf("opened: %v, %v", l, err)
		}
		o.File = filepath.Join(t.TempDir(), "grant")
		l := open(t, s, o)
		defer l.Close()
		fill(t, o.File)
		time.Sleep(2 * time.Second)
		wantFile := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if id, err := l.Next(ctx); !errors.As(err, &file) {
				t.Errorf("%v: %v, %+v", id, err, l.State())
			}
		}
		wantFile()
		s.refuse.Store(true)
		for !l.State().Degraded {
			time.Sleep(100 * time.Millisecond)
		}
		wantFile()
	})
}

// fill lets a file that this process has open refuse every write.
func fill(t *testing.T, path string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); to == path {
			fd, _ := strconv.Atoi(e.Name())
			if err := syscall.Dup3(int(full.Fd()), fd, syscall.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s is not open", path)
}
