package daemon_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server/daemon"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/sqlite"
)

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// runAnyName runs a server of any name on a file. Post asks for a value.
func runAnyName(t *testing.T, dir string, log *lines) (post func(name string) (int, string)) {
	t.Helper()
	path := filepath.Join(dir, "firn.yaml")
	if err := os.WriteFile(path, []byte("store: sqlite:ids.db\nlisten: { resp: \"off\", http: \"127.0.0.1:0\" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	started, ended := make(chan daemon.Running, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, cfg, &daemon.Options{
			Logger:  slog.New(slog.NewTextHandler(log, nil)),
			Started: func(r daemon.Running) error { started <- r; return nil },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var at string
	select {
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	case r := <-started:
		at = r.Listen[0].At.String()
	}
	return func(name string) (int, string) {
		answer, err := http.Post("http://"+at+"/v1/series/"+name+"/next", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
}

// On a store that was recovered a new name gives no id from that moment on, and a name that gave
// ids gives none as soon as the log says so, also where the reload that follows is refused: here
// by a counter that the server cannot open.
func TestRecoveredStoreGivesNoIDs(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), new(lines)
	post := runAnyName(t, dir, log)
	if status, body := post("photo"); status != http.StatusOK {
		t.Fatal(status, body)
	}
	st, err := sqlite.Open(t.Context(), filepath.Join(dir, "ids.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := sequence.CreateAcross(t.Context(), []store.Store{st, memory.New()}, "tickets", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := sequence.Recover(t.Context(), st, 10, nil); err != nil {
		t.Fatal(err)
	}
	if status, body := post("bills"); status == http.StatusOK {
		t.Errorf("a new name gave %s, and may be that of a counter which the store lost", body)
	}
	const said = "a name that no counter has gives nothing"
	gone := false
	for end := time.Now().Add(time.Minute); !gone && time.Now().Before(end); time.Sleep(time.Millisecond) {
		told := strings.Contains(log.String(), said)
		status, body := post("photo")
		if gone = status != http.StatusOK; told && !gone {
			t.Fatalf("the log says that such a name gives nothing, and it gave %s", body)
		}
	}
	if !gone {
		t.Errorf("a name that gave ids goes on to give them:\n%s", log)
	}
	for end := time.Now().Add(time.Minute); !strings.Contains(log.String(), "not reloaded"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no reload was refused:\n%s", log)
		}
	}
	if status, body := post("photo"); status == http.StatusOK {
		t.Errorf("after the reload that was refused it gave %s", body)
	}
}
