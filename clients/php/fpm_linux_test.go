//go:build amd64 || arm64

package php_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
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

// fpmWorkers is how many processes serve requests.
const fpmWorkers = 8

// A worker of PHP-FPM maps the page in its first request, and has it in all later ones, also after the agent was started
// again: ids of the pool never repeat, and those of each worker increase.
func (p php) fpm(t *testing.T) {
	a := clienttest.Serve(t)
	script := filepath.Join(filepath.Dir(a.Path), "fpm.php")
	clienttest.Copy(t, filepath.Dir(a.Path), "testdata/fpm.php")
	socket := p.startFPM(t, script, a.Path)
	var ids clienttest.IDs
	before := askFPM(t, &ids, socket, script, a.Path, 400)
	if len(before) != fpmWorkers {
		t.Errorf("%d workers answered, want %d", len(before), fpmWorkers)
	}
	for pid, mapped := range before {
		if mapped != 1 {
			t.Errorf("worker %d has the page mapped %d times, want once", pid, mapped)
		}
	}
	a.Stop()
	time.AfterFunc(300*time.Millisecond, func() {
		a.Start()
		open(t, a.Path)
	})
	after := askFPM(t, &ids, socket, script, a.Path, 400) // the first ones wait for the agent
	for pid, mapped := range after {
		if before[pid] == 0 || mapped != 2 {
			t.Errorf("worker %d, of %v, has %d pages mapped, want the old one and the new one", pid, before, mapped)
		}
	}
	t.Logf("%d ids of %d workers", ids.Count(), len(after))
}

// open gives the page to the user of the workers.
func open(t *testing.T, page string) {
	if os.Getuid() != 0 {
		return
	}
	if err := os.Chmod(page, 0o666); err != nil {
		t.Error(err)
	}
}

// startFPM starts PHP-FPM with a pool of workers, and returns its socket. As root, its workers are of the user nobody.
func (p php) startFPM(t *testing.T, script, page string) (socket string) {
	t.Helper()
	program := fpmProgram(t)
	dir, user := t.TempDir(), ""
	if os.Getuid() == 0 {
		user = "user = nobody\ngroup = nogroup\n"
		for file, mode := range map[string]os.FileMode{filepath.Dir(script): 0o755, script: 0o644} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(t, page)
	socket = filepath.Join(dir, "socket")
	settings := fmt.Sprintf("[global]\nerror_log = %s/log\ndaemonize = no\n[www]\nlisten = %s\n%spm = static\npm.max_children = %d\n", dir, socket, user, fpmWorkers)
	if err := os.WriteFile(filepath.Join(dir, "fpm.conf"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-n", "-d", "extension="+p.extension, "--nodaemonize", "--fpm-config", filepath.Join(dir, "fpm.conf"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if log, _ := os.ReadFile(filepath.Join(dir, "log")); t.Failed() || bytes.Contains(log, []byte("SIGSEGV")) {
			t.Errorf("%s", log)
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
			return socket
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("PHP-FPM does not listen: %v\n%s", err, log)
		}
	}
}

func fpmProgram(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/sbin/php-fpm8.2", "php-fpm8.2", "php-fpm"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	clienttest.Missing(t, "there is no php-fpm8.2 (apt-get install php8.2-fpm)")
	return ""
}

// An answer is what testdata/fpm.php prints.
type answer struct {
	began int64
	ids   []string
}

// askFPM sends requests, 16 at once, checks the ids, and returns how often each worker has a page mapped.
func askFPM(t *testing.T, ids *clienttest.IDs, socket, script, page string, requests int) (mapped map[int]int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	answers := map[int][]answer{}
	mapped = map[int]int{}
	for range 16 {
		all.Go(func() {
			for range requests / 16 {
				text, err := request(socket, map[string]string{"REQUEST_METHOD": "GET", "SCRIPT_FILENAME": script, "FIRN_PAGE": page})
				_, body, _ := strings.Cut(text, "\r\n\r\n")
				f := strings.Fields(body)
				if err != nil || strings.HasPrefix(text, "Status: ") || len(f) != 13 {
					t.Errorf("%v: %s", err, text)
					return
				}
				pid, _ := strconv.Atoi(f[0])
				began, _ := strconv.ParseInt(f[1], 10, 64)
				mu.Lock()
				mapped[pid], _ = strconv.Atoi(f[2])
				answers[pid] = append(answers[pid], answer{began, f[3:]})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for pid, list := range answers {
		slices.SortFunc(list, func(a, b answer) int { return int(a.began - b.began) })
		var text strings.Builder
		for _, a := range list {
			text.WriteString(strings.Join(a.ids, "\n") + "\n")
		}
		ids.Add(t, fmt.Sprintf("worker %d", pid), text.String())
	}
	return mapped
}

// request sends one request of FastCGI, and returns what the script prints, with its headers.
func request(socket string, params map[string]string) (string, error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	var pairs bytes.Buffer
	for k, v := range params {
		pairs.Write([]byte{byte(len(k)), 1 << 7, 0, 0, byte(len(v))}) // a name below 128 bytes, a value below 256
		pairs.WriteString(k + v)
	}
	const begin, end, paramsKind, stdin, stdout = 1, 3, 4, 5, 6
	var out bytes.Buffer
	for _, r := range []struct {
		kind byte
		body []byte
	}{{begin, []byte{0, 1, 0, 0, 0, 0, 0, 0}}, {paramsKind, pairs.Bytes()}, {paramsKind, nil}, {stdin, nil}} {
		out.Write([]byte{1, r.kind, 0, 1, byte(len(r.body) >> 8), byte(len(r.body)), 0, 0})
		out.Write(r.body)
	}
	if _, err := c.Write(out.Bytes()); err != nil {
		return "", err
	}
	var text bytes.Buffer
	for in := bufio.NewReader(c); ; {
		var head [8]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return text.String(), err
		}
		body := make([]byte, int(binary.BigEndian.Uint16(head[4:]))+int(head[6]))
		if _, err := io.ReadFull(in, body); err != nil {
			return text.String(), err
		}
		switch head[1] {
		case stdout:
			text.Write(body[:len(body)-int(head[6])])
		case end:
			return text.String(), nil
		}
	}
}
