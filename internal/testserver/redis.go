package testserver

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Redis starts a Redis server. It writes each command to its disk before it
// answers, so that it has its data again after a Kill; "--appendonly no" makes it
// forget.
func Redis(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return launch(tb, redisKind, plan{
		ports: 1,
		command: func(s *Server) []string {
			return append([]string{
				program("redis-server"), "--bind", "127.0.0.1", "--port", strconv.Itoa(s.ports[0]),
				"--dir", s.home, "--daemonize", "no", "--save", "", "--appendonly", "yes", "--appendfsync", "always",
			}, args...)
		},
		url:   func(addr string) string { return "redis://" + addr },
		ready: redisReady,
	})
}

func redisReady(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH") {
		return nil
	}
	return fmt.Errorf("testserver: redis says %q", line)
}
