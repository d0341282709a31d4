package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
)

// listen listens there. The address it returns is the real one, where port 0 was
// asked for.
func listenOn(a config.Address) (net.Listener, config.Address, error) {
	if a.Network == "unix" {
		if err := clearSocket(a.At); err != nil {
			return nil, a, err
		}
	}
	l, err := net.Listen(a.Network, a.At)
	if err != nil {
		return nil, a, err
	}
	if a.Network == "unix" {
		// Whoever may use the group's files may use it.
		err = os.Chmod(a.At, 0o660)
	} else {
		a.At = l.Addr().String()
	}
	if err != nil {
		l.Close()
		return nil, a, err
	}
	return l, a, nil
}

// clearSocket removes the socket of a process that was killed. One that somebody
// answers on stays, and so does anything that is not a socket.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there, and is not a socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("another process listens on %s", path)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return err
}

// redisFlags are what redis-cli needs to come to the address.
func redisFlags(a config.Address) []string {
	if a.Network == "unix" {
		return []string{"-s", phrase.ShellWord(a.At)}
	}
	host, port, _ := net.SplitHostPort(a.At) // it was parsed
	if host = dialHost(host); host == "127.0.0.1" {
		return []string{"-p", port}
	}
	return []string{"-h", host, "-p", port}
}

// url is what curl needs to come to the address.
func curlURL(a config.Address, secret bool) string {
	if a.Network == "unix" {
		return "--unix-socket " + phrase.ShellWord(a.At) + " http://firn"
	}
	host, port, _ := net.SplitHostPort(a.At)
	scheme := "http://"
	if secret {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(dialHost(host), port)
}

// dialHost is a host to dial for one that is listened to.
func dialHost(host string) string {
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return host
}
