//go:build linux

package resp

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/server"
)

// A peer that has vanished without a word is found out by the kernel.
func TestKeepAlive(t *testing.T) {
	srv, err := server.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	s := &listener{Options: (&Options{}).withDefaults(), server: srv, ctx: context.Background(), interval: interval}
	c := &conn{listener: s, nc: nc, began: time.Now()}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	seconds := 0
	err = raw.Control(func(fd uintptr) {
		get := func(level, option int) int {
			n, failed := syscall.GetsockoptInt(int(fd), level, option)
			if failed != nil {
				t.Error(failed)
			}
			return n
		}
		if get(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 {
			t.Error("there is no keepalive")
		}
		seconds = get(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE) + get(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)*get(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
	})
	if err != nil {
		t.Fatal(err)
	}
	if seconds != 120 {
		t.Errorf("it takes %d s", seconds)
	}
}
