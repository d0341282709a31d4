package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/firn-id/firn/internal/phrase"
)

// An address is where to listen; zero: nowhere.
type address struct {
	network string // tcp or unix
	at      string // HOST:PORT or a path
}

// parseAddress reads HOST:PORT, unix:PATH or off.
func parseAddress(text string) (address, error) {
	if text == "off" {
		return address{}, nil
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" {
			return address{}, errors.New("unix: has no path behind it")
		}
		return address{"unix", path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		if _, err := parseNumber(text); err == nil {
			return address{}, fmt.Errorf("%q has no host: is it 127.0.0.1:%s?", text, text)
		}
		return address{}, fmt.Errorf("%q is none of HOST:PORT, unix:PATH and off", text)
	}
	if n, err := parseNumber(port); err != nil || n > 65535 {
		return address{}, fmt.Errorf("%q: port %q is not a number from 0 to 65535", text, port)
	}
	return address{"tcp", net.JoinHostPort(host, port)}, nil
}

func (a address) off() bool { return a.network == "" }

func (a address) String() string {
	switch a.network {
	case "":
		return "off"
	case "unix":
		return "unix:" + a.at
	}
	return a.at
}

// beyond reports whether other hosts may come to the address.
func (a address) beyond() bool {
	if a.network != "tcp" {
		return false
	}
	host, _, _ := net.SplitHostPort(a.at) // it was parsed
	if host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}

// listen listens there. The address it returns is the real one, where port 0 was
// asked for.
func (a address) listen() (net.Listener, address, error) {
	if a.network == "unix" {
		if err := clearSocket(a.at); err != nil {
			return nil, a, err
		}
	}
	l, err := net.Listen(a.network, a.at)
	if err != nil {
		return nil, a, err
	}
	if a.network == "unix" {
		// Whoever may use the group's files may use it.
		err = os.Chmod(a.at, 0o660)
	} else {
		a.at = l.Addr().String()
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
func (a address) redisFlags() []string {
	if a.network == "unix" {
		return []string{"-s", phrase.ShellWord(a.at)}
	}
	host, port, _ := net.SplitHostPort(a.at) // it was parsed
	if host = dialHost(host); host == "127.0.0.1" {
		return []string{"-p", port}
	}
	return []string{"-h", host, "-p", port}
}

// url is what curl needs to come to the address.
func (a address) url(secret bool) string {
	if a.network == "unix" {
		return "--unix-socket " + phrase.ShellWord(a.at) + " http://firn"
	}
	host, port, _ := net.SplitHostPort(a.at)
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
