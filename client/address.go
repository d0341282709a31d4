package client

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// An address is where servers are and how to be let in.
type address struct {
	hosts []string // HOST:PORT, at least one
	token string   // empty: none
	tls   bool
}

// maxHosts is how many servers an address names at most.
const maxHosts = 64

// parseAddress reads redis://[:TOKEN@]HOST:PORT[,HOST:PORT...][/0], or rediss:// for
// TLS. Its errors never have the token in them.
func parseAddress(text string) (address, error) {
	fail := func(format string, args ...any) (address, error) {
		return address{}, fmt.Errorf("client: the address: "+format+"; it is redis://[:TOKEN@]HOST:PORT[,HOST:PORT...], or rediss:// for TLS", args...)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return fail("it begins with neither redis:// nor rediss://")
	}
	a := address{tls: scheme == "rediss"}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, token, ok := strings.Cut(rest[:i], ":")
		rest = rest[i+1:]
		var err error
		if a.token, err = url.PathUnescape(token); !ok || err != nil || a.token == "" {
			return fail("what is before the @ is not a colon and a token")
		}
		if strings.Contains(token, ",") {
			return fail("there is a comma before the last @: the token is given once, before all servers, and a comma in it is %%2C")
		}
		if user != "" && user != "default" {
			return fail("there are no users, only tokens: leave out what is before the colon")
		}
	}
	rest, path, _ := strings.Cut(rest, "/")
	if path != "" && path != "0" {
		return fail("there is one database, 0, and no options")
	}
	a.hosts = strings.Split(rest, ",")
	if len(a.hosts) > maxHosts {
		return fail("%d servers, and %d at most", len(a.hosts), maxHosts)
	}
	for i, h := range a.hosts {
		host, port, err := net.SplitHostPort(h)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || n == 0 {
			// It is not shown: without its @, a token is a part of it.
			return fail("server %d of %d is no HOST:PORT", i+1, len(a.hosts))
		}
	}
	return a, nil
}
