package testserver

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// A connection that was accepted before connections were refused, and is seen only after Cut,
// leads nowhere.
func TestAcceptedBeforeRefuse(t *testing.T) {
	p := NewProxy(t, "127.0.0.1:1")
	p.Hang(true) // it does not look whether anybody is behind
	p.mu.Lock()
	from := p.listener
	p.mu.Unlock()
	p.Refuse(true)
	p.Cut()
	client, accepted := net.Pipe()
	defer client.Close()
	p.accept(accepted, from)
	client.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is there: %v", err)
	}
}
