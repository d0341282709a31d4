package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// puts writes a key n times.
func puts(t *testing.T, path, key string, n int) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Get(t.Context(), key)
	for i := 0; i < n && err == nil; i++ {
		r, err = s.Put(t.Context(), key, fmt.Appendf(nil, "%d", i), store.Condition{Version: r.Version})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite is cp to a file that is there: it stays the same file.
func overwrite(t *testing.T, path string, with []byte) {
	t.Helper()
	if err := os.WriteFile(path, with, 0o600); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// notOpened requires that a file that was put back is refused.
func notOpened(t *testing.T, what, path string) {
	t.Helper()
	for range 2 {
		s, err := sqlite.Open(t.Context(), path)
		if err == nil {
			s.Close()
			t.Fatalf("%s: opened", what)
		}
		var forgot *store.ForgotError
		if !errors.As(err, &forgot) || !strings.Contains(err.Error(), "put back to an earlier state") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPutBackInPlace: cp of a backup over the file leaves its inode and its id, and every
// number that was given since would be given again.
func TestPutBackInPlace(t *testing.T) {
	t.Parallel()
	path := used(t, t.TempDir())
	backup := contents(t, path)
	opens(t, "nothing was done", path)
	overwrite(t, path, backup)
	opens(t, "a backup that lacks nothing", path)
	puts(t, path, "k", 1)
	newest := contents(t, path)
	overwrite(t, path, backup)
	notOpened(t, "one write behind", path)
	overwrite(t, path, newest)
	opens(t, "the newest state was put back", path)
	puts(t, path, "k", 1)
	overwrite(t, path, backup)

	// Until it is accepted it is refused, whatever was written meanwhile.
	failed := errors.New("the power was cut")
	err := sqlite.Restored(t.Context(), path, func(s *sqlite.Store) error {
		for i := range 9 {
			if _, err := s.Put(t.Context(), fmt.Sprintf("raised%d", i), []byte("1"), store.Condition{}); err != nil {
				return err
			}
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	notOpened(t, "accepted in part", path)
	if err := sqlite.Restored(t.Context(), path, func(*sqlite.Store) error { return nil }); err != nil {
		t.Fatal(err)
	}
	puts(t, path, "k", 1)
	opens(t, "accepted", path)
}

// TestPutBackWhileOpen: a process that has the file open notices it too.
func TestPutBackWhileOpen(t *testing.T) {
	t.Parallel()
	path := used(t, t.TempDir())
	backup := contents(t, path)
	puts(t, path, "k", 3)
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, backup)
	other, err := sqlite.Open(t.Context(), path) // which makes SQLite read the file anew
	if err == nil {
		other.Close()
		t.Error("opened")
	}
	r, err := s.Get(t.Context(), "k")
	if err == nil && string(r.Value) != "2" {
		t.Errorf("%+v: an earlier state was read", r)
	}
}

// TestMark: the mark never says more than was acknowledged, whatever many processes do at
// once; and one that is damaged or may not be written says nothing.
func TestMark(t *testing.T) {
	t.Parallel()
	path := used(t, t.TempDir())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { puts(t, path, fmt.Sprintf("k%d", i), 50) })
	}
	for range 20 {
		opens(t, "while others write", path)
	}
	all.Wait()
	opens(t, "afterwards", path)
	hidden := contents(t, idFile(path))
	if !bytes.Contains(hidden, fmt.Appendf(nil, "\nwrites %016x ", 201)) && !bytes.Contains(hidden, fmt.Appendf(nil, "\nwrites %016x ", 200)) {
		t.Errorf("after 201 writes: %s", hidden)
	}
	lines := bytes.SplitAfter(hidden, []byte("\n"))
	for _, mark := range []string{"", "writes 00000000ffffffff 00000000\n", "writes\n", "x", string(lines[1][:20])} {
		overwrite(t, idFile(path), append(bytes.Clone(lines[0]), mark...))
		opens(t, fmt.Sprintf("the mark %q", mark), path)
		puts(t, path, "k", 1)
	}
}

// TestSidecarOnFailingDisk: of a sidecar that a disk cut off, or in which it changed a bit, either the
// store is refused, or its mark says nothing. It never says more, and a file that was put
// back is never opened because of what a damaged sidecar says of its identity.
func TestSidecarOnFailingDisk(t *testing.T) {
	t.Parallel()
	path := used(t, t.TempDir())
	whole := contents(t, idFile(path))
	said := bytes.IndexByte(whole, '\n')
	for n := range len(whole) {
		overwrite(t, idFile(path), whole[:n])
		if err := openError(t, path); n < said && (err == nil || !strings.Contains(err.Error(), "is damaged")) || n >= said && err != nil {
			t.Errorf("the first %d bytes of %d: %v", n, len(whole), err)
		}
		damaged := bytes.Clone(whole)
		damaged[n] ^= 1 << (n % 8)
		overwrite(t, idFile(path), damaged)
		err := openError(t, path)
		if n > said && err != nil || err == nil && n < bytes.Index(whole, []byte(`"note"`)) && !bytes.EqualFold(whole, damaged) {
			t.Errorf("another bit in byte %d, %q: %v", n, damaged, err)
		}
	}
	overwrite(t, idFile(path), whole)
	opens(t, "the whole sidecar", path)
	puts(t, path, "k", 1)
}

func openError(t *testing.T, path string) error {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err == nil {
		err = s.Close()
	}
	return err
}
