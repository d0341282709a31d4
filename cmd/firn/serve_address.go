package main

import (
	"net"
	"net/netip"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
)

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
