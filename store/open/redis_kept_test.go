package open_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store/open"
)

// login returns what the store of a URL says to its user.
func login(t *testing.T, url string) error {
	t.Helper()
	s, err := open.URL(t.Context(), url)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Get(t.Context(), "k")
	return err
}

// aclFile makes a file of users that a server may write, which runs as another user.
func aclFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "users.acl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o777, file: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// Redis has a user that SetupText makes in memory only. The text says how the user is kept over a
// restart, and after a restart without that the error of the store says what may have happened.
func TestRedisUserIsKept(t *testing.T) {
	const password = "p4ssw0rd"
	text, err := open.SetupText("redis", password)
	if err != nil {
		t.Fatal(err)
	}
	acl, _, _ := strings.Cut(text, "\n")
	rule, ok := strings.CutPrefix(acl, "ACL SETUSER ")
	if !ok {
		t.Fatal(text)
	}
	file := aclFile(t)
	for name, tt := range map[string]struct {
		args  []string // of the server
		typed string   // into redis-cli
		kept  bool
	}{
		"not saved": {nil, text, false},
		"ACL SAVE":  {[]string{"--aclfile", file}, text + "ACL SAVE\n", true},
		"user in redis.conf, which is an option --user": {append([]string{"--user"}, strings.Fields(rule)...), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := testserver.Redis(t, tt.args...)
			url := "redis://firn:" + password + "@" + server.Addr()
			host, port, _ := strings.Cut(server.Addr(), ":")
			cli := exec.CommandContext(t.Context(), "redis-cli", "-h", host, "-p", port)
			cli.Stdin = strings.NewReader(tt.typed)
			out, err := cli.CombinedOutput()
			if err != nil || tt.typed != "" && !strings.Contains(string(out), "ACL SAVE where redis.conf names an aclfile") {
				t.Fatalf("%v: %s", err, out)
			}
			if err := login(t, url); err != nil {
				t.Fatal(err)
			}
			server.Stop(t)
			server.Start(t)
			err = login(t, url)
			if tt.kept != (err == nil) {
				t.Errorf("after a restart: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "A restart of Redis forgets a user that was not saved") {
				t.Error(err)
			}
		})
	}
}
