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
	unix  bool     // hosts is one path of a socket
	hosts []string // HOST:PORT, at least one
	token string   // empty: none
	tls   bool
}

// maxHosts is how many servers an address names at most.
const maxHosts = 64

// parseAddress reads redis://[:TOKEN@]HOST:PORT[,HOST:PORT...][/0], rediss:// for TLS,
// or unix:PATH and unix://:TOKEN@PATH. Its errors never have the token in them.
func parseAddress(text string) (address, error) {
	fail := func(format string, args ...any) (address, error) {
		return address{}, fmt.Errorf("client: the address: "+format+"; it is redis://[:TOKEN@]HOST:PORT[,HOST:PORT...], rediss:// for TLS, or unix:PATH", args...)
	}
	if path, ok := strings.CutPrefix(text, "unix:/"); ok && !strings.HasPrefix(path, "/") {
		return address{unix: true, hosts: []string{"/" + path}}, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	a := address{unix: scheme == "unix", tls: scheme == "rediss"}
	if !ok || scheme != "redis" && !a.tls && !a.unix {
		if strings.HasPrefix(text, "unix:") {
			return fail("the path of the socket is not absolute")
		}
		return fail("it begins with none of redis://, rediss:// and unix:/")
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 && (!a.unix || strings.HasPrefix(rest, ":")) {
		token, problem := readToken(rest[:i])
		if problem != "" {
			return fail("%s", problem)
		}
		a.token, rest = token, rest[i+1:]
	}
	if a.unix {
		if !strings.HasPrefix(rest, "/") {
			return fail("the path of the socket is not absolute")
		}
		a.hosts = []string{rest}
		return a, nil
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

// readToken reads what is before the @ of an address.
func readToken(text string) (token, problem string) {
	user, escaped, ok := strings.Cut(text, ":")
	token, err := url.PathUnescape(escaped)
	switch {
	case !ok || err != nil || token == "":
		return "", "what is before the @ is not a colon and a token"
	case strings.Contains(escaped, ","):
		return "", "there is a comma before the last @: the token is given once, before all servers, and a comma in it is %2C"
	case user != "" && user != "default":
		return "", "there are no users, only tokens: leave out what is before the colon"
	}
	return token, ""
}
