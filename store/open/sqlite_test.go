package open_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store/open"
)

// TestURLGivesUp: a file that another process has locked is waited for only as
// long as the caller's ctx says.
func TestURLGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	s, err := open.URL(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+path+"?_pragma=locking_mode(EXCLUSIVE)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("CREATE TABLE lock (a)"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	s, err = open.URL(ctx, "sqlite:"+path)
	if err == nil {
		s.Close()
		t.Fatal("the file is locked, and was opened")
	}
	if took := time.Since(began); took > 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after %v: %v; want the deadline's error after 200 ms", took, err)
	}
	if !strings.Contains(err.Error(), "locked by another process") {
		t.Errorf("%v: does not say what it waited for", err)
	}
}

// TestRelativePath: a relative path is another file in each working directory,
// so two programs that agree on it would make the same ids.
func TestRelativePath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, url := range []string{"sqlite:x.db", "sqlite:./x.db", "sqlite://x.db"} {
		const want = "write the absolute path of the one file that all processes of this host use"
		s, err := open.URL(t.Context(), url)
		if err == nil {
			s.Close()
			t.Errorf("%s was opened", url)
		} else if !errors.As(err, new(*open.URLError)) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v; want a URLError that says: %s", url, err, want)
		}
		if err := open.Check(url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), dir) {
			t.Errorf("Check %s: %v; want an error that says: %s", url, err, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
