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
	java, node := clienttest.Java(t), clienttest.JavaScript(t)
	clients := []func(path string) *exec.Cmd{
		func(path string) *exec.Cmd { return java("Take", "until", path) },
		func(path string) *exec.Cmd { return java("Take", "until", path, "4") },
		func(path string) *exec.Cmd { return node("take.js", "until", path) },
		func(path string) *exec.Cmd { return node("take.js", "until", path) },
	}
	if os.Getenv("FIRN_LONG") != "" {
		for i := range 56 {
			clients = append(clients, clients[i%4])
		}
	}
	clienttest.Storm(t, clients...)
}
