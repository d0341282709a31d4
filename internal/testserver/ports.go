package testserver

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Ports are taken from below those that systems give to outgoing connections
// (32768 and up): one of a server that is stopped for a moment must still be free
// when it starts again.
const (
	lowPort  = 15000
	highPort = 30000
)

// freePort returns a port that nobody listens on and that belongs to no test
// server, stopped ones included.
func freePort(not []int) (int, error) {
	reserved := append(recordedPorts(), not...)
	for range 1000 {
		port := lowPort + rand.IntN(highPort-lowPort)
		if slices.Contains(reserved, port) {
			continue
		}
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, errors.New("testserver: no port is free")
}
