package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// An Address is where to listen; zero: nowhere.
type Address struct {
	Network string // tcp or unix
	At      string // HOST:PORT or a path
}

// ParseAddress reads HOST:PORT, unix:PATH or off.
func ParseAddress(text string) (Address, error) {
	if text == "off" {
		return Address{}, nil
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" {
			return Address{}, errors.New("unix: has no path behind it")
		}
		return Address{"unix", path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		if _, err := parseNumber(text); err == nil {
			return Address{}, fmt.Errorf("%q has no host: is it 127.0.0.1:%s?", text, text)
		}
		return Address{}, fmt.Errorf("%q is none of HOST:PORT, unix:PATH and off", text)
	}
	if n, err := parseNumber(port); err != nil || n > 65535 {
		return Address{}, fmt.Errorf("%q: port %q is not a number from 0 to 65535", text, port)
	}
	return Address{"tcp", net.JoinHostPort(host, port)}, nil
}

// Off reports whether the address is nowhere.
func (a Address) Off() bool { return a.Network == "" }

func (a Address) String() string {
	switch a.Network {
	case "":
		return "off"
	case "unix":
		return "unix:" + a.At
	}
	return a.At
}

// Beyond reports whether other hosts may come to the address.
func (a Address) Beyond() bool {
	if a.Network != "tcp" {
		return false
	}
	host, _, _ := net.SplitHostPort(a.At) // it was parsed
	if host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}
