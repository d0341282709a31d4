//go:build amd64 || arm64

package python_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/clients/internal/clienttest"
)

// sample returns the sample of the README that contains a text, with the path of a page of the test.
func sample(t *testing.T, contains, page string) string {
	t.Helper()
	for _, s := range clienttest.Samples(t, "README.md", "python") {
		if strings.Contains(s, contains) {
			return strings.ReplaceAll(s, "/run/firn/page", page)
		}
	}
	t.Fatalf("README.md has no sample with %s", contains)
	return ""
}

// write writes files into a new directory.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// has skips the test where Python lacks a module.
func (p python) has(t *testing.T, module, debian string) {
	t.Helper()
	if err := exec.Command(string(p), "-c", "import "+module).Run(); err != nil {
		clienttest.Missing(t, "Python has no "+module+" (apt-get install "+debian+")")
	}
}

// The first samples of the README run as they are.
func (p python) readme(t *testing.T) {
	a := clienttest.Serve(t)
	tests := []string{"ids.batch(1000)", "except firn.Error"}
	for _, contains := range tests {
		text := sample(t, contains, a.Path)
		out := clienttest.Output(t, ".", string(p), "-c", text)
		for line := range strings.Lines(out) {
			if _, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err != nil {
				t.Errorf("%s\nprints %s", text, out)
			}
		}
	}
	a.Stop()
	if out := clienttest.Output(t, ".", string(p), "-c", sample(t, "except firn.Error", a.Path)); !strings.HasPrefix(out, "no id: firn: page ") {
		t.Error(out)
	}
	if n := len(clienttest.Samples(t, "README.md", "python")); n != len(tests)+3 {
		t.Errorf("README.md has %d samples, and the tests run %d", n, len(tests)+3)
	}
}

// Default primary keys of Django and SQLAlchemy come from the page, in several processes at once.
func (p python) keys(t *testing.T) {
	a := clienttest.Serve(t)
	for _, c := range []struct{ module, debian, contains, model, program string }{
		{"django", "python3-django", "models.BigIntegerField", "app/models.py", "django_rows.py"},
		{"sqlalchemy", "python3-sqlalchemy", "declarative_base", "models.py", "sqlalchemy_rows.py"},
	} {
		t.Run(c.module, func(t *testing.T) {
			p.has(t, c.module, c.debian)
			var ids clienttest.IDs
			var ends []func() int
			for range 3 {
				dir := write(t, map[string]string{c.model: sample(t, c.contains, a.Path), "app/__init__.py": ""})
				ends = append(ends, ids.Start(t, p.command(t, c.program, dir)))
			}
			for _, end := range ends {
				if n := end(); n != 100 {
					t.Errorf("%d rows, want 100", n)
				}
			}
		})
	}
}

// startGunicorn starts gunicorn with the application of the README, and returns a client of it.
func (p python) startGunicorn(t *testing.T, page string) *http.Client {
	t.Helper()
	p.has(t, "gunicorn", "python3-gunicorn")
	dir := write(t, map[string]string{"app.py": sample(t, "# app.py", page)})
	clienttest.Copy(t, dir, "testdata/wsgi.py")
	socket := filepath.Join(dir, "socket")
	cmd := exec.Command(string(p), "-m", "gunicorn", "--workers", "4", "--preload", "--bind", "unix:"+socket, "wsgi:app")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	var dial net.Dialer
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial.DialContext(ctx, "unix", socket)
	}}
	client := &http.Client{Transport: transport}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := client.Get("http://gunicorn/")
		if err == nil {
			r.Body.Close()
			return client
		}
		if time.Now().After(end) {
			t.Fatalf("gunicorn does not answer: %v", err)
		}
	}
}

// began orders answers of one worker.
func began(a, b string) int {
	of := func(s string) int64 {
		n, _ := strconv.ParseInt(strings.Fields(s)[0], 10, 64)
		return n
	}
	return cmp.Compare(of(a), of(b))
}

// Workers of gunicorn are forks of a process that has opened the page. No id comes twice, and those of each worker
// increase, also when the agent is started again.
func (p python) gunicorn(t *testing.T) {
	a := clienttest.Serve(t)
	client := p.startGunicorn(t, a.Path)
	var mu sync.Mutex
	answers := map[string][]string{} // of a worker: when each request began, and its ids
	get := func() {
		r, err := client.Get("http://gunicorn/")
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		worker, rest, _ := strings.Cut(string(b), " ")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("%v %s: %s", err, r.Status, b)
			return
		}
		mu.Lock()
		answers[worker] = append(answers[worker], rest)
		mu.Unlock()
	}
	ask := func() {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					get()
				}
			})
		}
		all.Wait()
	}
	ask()
	a.Stop()
	a.Start()
	asked := 1
	for begun := time.Now(); asked < 2 || len(answers) < 4 && time.Since(begun) < time.Minute; asked++ { // a worker may start late
		ask()
	}
	var ids clienttest.IDs
	n := 0
	for worker, list := range answers {
		slices.SortFunc(list, began)
		var text strings.Builder
		for _, one := range list {
			text.WriteString(strings.Join(strings.Fields(one)[1:], "\n") + "\n")
		}
		n += ids.Add(t, fmt.Sprintf("worker %s", worker), text.String())
	}
	if want := asked * 4000; len(answers) != 4 || n != want {
		t.Errorf("%d ids of %d workers, want %d of 4", n, len(answers), want)
	}
}
