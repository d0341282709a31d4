//go:build amd64 || arm64

// Package clients_test has the tests of clients in several languages at once.
package clients_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/firn-id/firn/clients/internal/clienttest"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

// TestStorm: processes in all languages take ids of one page while it gets other agents. The long form has 64 processes.
func TestStorm(t *testing.T) {
	java, node, python, php := clienttest.Java(t), clienttest.JavaScript(t), clienttest.Python(t), clienttest.PHP(t)
	clients := []func(path string) *exec.Cmd{
		func(path string) *exec.Cmd { return java("Take", "until", path) },
		func(path string) *exec.Cmd { return java("Take", "until", path, "4") },
		func(path string) *exec.Cmd { return node("take.js", "until", path) },
		func(path string) *exec.Cmd { return python("take.py", "until", path) },
		func(path string) *exec.Cmd { return php("take.php", "until", path) },
	}
	if os.Getenv("FIRN_LONG") != "" {
		for i := range 55 {
			clients = append(clients, clients[i%5])
		}
	}
	clienttest.Storm(t, clients...)
}
