//go:build !windows

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/server"
)

const adminToken = "a token that sees all"

func hashText(token string) string {
	return fmt.Sprintf("%s%x", config.HashPrefix, server.HashToken(token))
}

// A guardedServer is a way to run a server, with what is answered there by a name that
// may be somebody else's.
type guardedServer struct {
	name     string
	config   string // of firn.yaml, besides the store
	args     []string
	listener string // which is asked
	token    string // that comes with each request
	foreign  bool   // requests by any name are answered
	pages    bool   // so are they for the console's part, which asks for a token itself
}

func guardedServers() []guardedServer {
	tokens := fmt.Sprintf("tokens: { boss: { hash: %q, rights: { \"*\": [issue, decode, admin] } } }\n", hashText(adminToken))
	const own = "names: [ids.example.com, Firn.Internal.], foreign: true"
	const secret = "tls: { cert: server.pem, key: server.key }\n"
	http := func(at, more string) string { return "listen: { http: \"" + at + "\", " + own + more + " }\n" }
	return []guardedServer{
		{name: "loopback", config: http("127.0.0.1:0", ""), listener: "http"},
		{name: "loopback of IPv6", config: http("[::1]:0", ""), listener: "http"},
		{name: "loopback, tokens", config: http("127.0.0.1:0", "") + tokens, listener: "http", token: adminToken},
		{name: "loopback, TLS", config: http("127.0.0.1:0", "") + secret, listener: "http", foreign: true, pages: true},
		{name: "all addresses", config: http("0.0.0.0:0", ""), args: []string{"--insecure-no-auth"}, listener: "http"},
		{name: "all addresses, tokens", config: http("0.0.0.0:0", "") + tokens, listener: "http", token: adminToken, foreign: true, pages: true},
		{name: "unix socket", config: http("unix:http.sock", ""), listener: "http", foreign: true, pages: true},
		{name: "admin on loopback", config: http("127.0.0.1:0", ", admin: \"127.0.0.1:0\""), listener: "admin"},
		{name: "admin on loopback, tokens", config: http("127.0.0.1:0", ", admin: \"127.0.0.1:0\"") + tokens, listener: "admin", token: adminToken},
		{name: "admin on all addresses, tokens", config: http("0.0.0.0:0", ", admin: \"0.0.0.0:0\"") + tokens, args: []string{"--insecure-no-auth"}, listener: "admin", token: adminToken, pages: true},
	}
}

// guardedRequests are requests as browsers and programs send them; every route answers
// them alike.
var guardedRequests = []struct {
	what, host string
	headers    []string
	own        bool // the host is the server's, whoever asks
	page       bool // the request is that of a page of another site
	link       bool // it is one on which a person has clicked
}{
	{what: "by address", host: "127.0.0.1:PORT", own: true},
	{what: "by another address, as a kubelet", host: "10.1.2.3:6381", own: true},
	{what: "by an address of IPv6", host: "[::1]:PORT", own: true},
	{what: "by an address with a zone", host: "[fe80::1%25eth0]:6381", own: true},
	{what: "by name", host: "localhost:PORT", own: true},
	{what: "by name in capitals with a dot", host: "LOCALHOST.", own: true},
	{what: "by a name below localhost", host: "evil.localhost:PORT"},
	{what: "by a configured name", host: "ids.example.com", own: true},
	{what: "by a configured name otherwise written", host: "IDS.Example.COM.:443", own: true},
	{what: "by a configured name that has a dot", host: "firn.internal:6381", own: true},
	{what: "without a name", host: "", own: true},
	{what: "by a foreign name", host: "evil.example:PORT"},
	{what: "by the name of a service", host: "firn:6381"},
	{what: "below a configured name", host: "evil.ids.example.com"},
	{what: "by a name that begins as an address", host: "127.0.0.1.evil.example:PORT"},
	{what: "by a name that begins as localhost", host: "localhost.evil.example"},
	{what: "by a name that ends as localhost", host: "evillocalhost"},
	{what: "by an address that is none", host: "0x7f.1"},
	{what: "by the address of nowhere", host: "0.0.0.0:PORT"},
	{what: "by the address of nowhere of IPv6", host: "[::]:PORT"},
	{what: "by two ports", host: "localhost:PORT:1"},
	{what: "from its own page", host: "localhost:PORT", headers: []string{"Sec-Fetch-Site: same-origin", "Origin: http://localhost:PORT"}, own: true},
	{what: "typed", host: "127.0.0.1:PORT", headers: []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, own: true},
	{what: "from a page led here", host: "evil.example:PORT", headers: []string{"Origin: http://evil.example:PORT", "Sec-Fetch-Site: same-origin"}},
	{what: "from a foreign page", host: "127.0.0.1:PORT", headers: []string{"Sec-Fetch-Site: cross-site"}, own: true, page: true},
	{what: "from a page of another port", host: "127.0.0.1:PORT", headers: []string{"Sec-Fetch-Site: same-site"}, own: true, page: true},
	{what: "from a foreign page of an older browser", host: "127.0.0.1:PORT", headers: []string{"Origin: https://evil.example"}, own: true, page: true},
	{what: "from a page without an origin", host: "127.0.0.1:PORT", headers: []string{"Origin: null"}, own: true, page: true},
	{what: "from a frame", host: "127.0.0.1:PORT", headers: []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, own: true, page: true},
	{what: "from a link", host: "127.0.0.1:PORT", headers: []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, own: true, page: true, link: true},
}

// A guardedRoute is what is asked for.
type guardedRoute struct {
	method, path string
	draws        bool // ids are issued
	pages        bool // it is the console's
}

// guardedRoutes are those of the OpenAPI document that a server has on its main listener,
// and those that no document has.
func guardedRoutes(t *testing.T, s *served, ask func(method, path, host string, headers ...string) string) []guardedRoute {
	t.Helper()
	all := []guardedRoute{
		{"GET", "/healthz", false, false},
		{"GET", "/readyz", false, false},
		{"GET", "/metrics", false, false},
		{"GET", "/", false, true},
		{"GET", "/console/state", false, true},
		{"GET", "/console/shards", false, true},
		{"GET", "/console/decode/1", false, true},
		{"GET", "/console/app.js", false, true},
		{"GET", "/console/nothing", false, true},
		{"GET", "/nothing", false, false},
		{"DELETE", "/healthz", false, false},
		{"OPTIONS", "/readyz", false, false},
		{"HEAD", "/metrics", false, false},
	}
	answer := ask("GET", "/v1/openapi.json", "localhost")
	if !strings.Contains(answer, " 200 ") {
		return all // the admin listener
	}
	var document struct {
		Paths map[string]map[string]struct{ Tags []string }
	}
	if err := json.Unmarshal([]byte(answer[strings.Index(answer, "\r\n\r\n"):]), &document); err != nil || len(document.Paths) < 10 {
		t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	place := regexp.MustCompile(`\{[a-z]+\}`)
	for path, methods := range document.Paths {
		for method := range methods {
			draws := method == "post" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/tinyid/")
			all = append(all, guardedRoute{strings.ToUpper(method), place.ReplaceAllString(path, "photo"), draws, false})
		}
	}
	return all
}

// One guard keeps the requests of foreign pages, and those by foreign names, from every
// route of every listener; and keeps nobody else.
func TestServeGuard(t *testing.T) {
	for _, way := range guardedServers() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if strings.Contains(way.config, "tls:") {
				newAuthority(t).issue(t, dir, "server", 1)
			}
			write(t, dir, "firn.yaml", "store: sqlite:ids.db\n"+strings.Replace(way.config, "unix:", "unix:"+dir+"/", 1))
			s := serving(t, dir, append([]string{"--resp", "off"}, way.args...)...)
			s.Env = append(s.Env, "FIRN_HTTP="+isUnset) // the file says where
			s = s.begin()
			ask := func(method, path, host string, headers ...string) string {
				return s.raw(way, method, path, host, headers)
			}
			for _, route := range guardedRoutes(t, s, ask) {
				for _, r := range guardedRequests {
					want := (r.own || way.foreign || way.pages && route.pages) && (!r.page || r.link && !route.draws && (route.method == "GET" || route.method == "HEAD"))
					got := ask(route.method, route.path, r.host, r.headers...)
					status, _, _ := strings.Cut(strings.TrimPrefix(got, "HTTP/1.1 "), " ")
					if answered := status != "403"; answered != want {
						t.Errorf("%s %s %s, host %q: %s, want it answered: %v", route.method, route.path, r.what, r.host, firstLines(got), want)
					}
				}
			}
		})
	}
}

func firstLines(answer string) string {
	line, _, _ := strings.Cut(answer, "\r\n")
	_, body, _ := strings.Cut(answer, "\r\n\r\n")
	return fmt.Sprintf("%s %.200s", line, body)
}

// raw sends a request as it is written, and returns what comes. PORT stands for the port.
func (s *served) raw(way guardedServer, method, path, host string, headers []string) string {
	s.t.Helper()
	at := s.listen[way.listener]
	network, port := "tcp", ""
	if socket, ok := strings.CutPrefix(at, "unix:"); ok {
		network, at = "unix", socket
	} else {
		var err error
		if _, port, err = net.SplitHostPort(at); err != nil {
			s.t.Fatal(err)
		}
	}
	if strings.HasPrefix(at, "[::]") || strings.HasPrefix(at, "0.0.0.0") {
		at = "127.0.0.1:" + port
	}
	c, err := net.Dial(network, at)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(long))
	if strings.Contains(way.config, "tls:") {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{"http/1.1"}})
	}
	text := method + " " + path + " HTTP/1.1\r\nHost: " + withPort(host, port) + "\r\nConnection: close\r\n"
	if way.token != "" {
		text += "Authorization: Bearer " + way.token + "\r\n"
	}
	for _, h := range headers {
		text += withPort(h, port) + "\r\n"
	}
	if _, err := io.WriteString(c, text+"\r\n"); err != nil {
		s.t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if len(answer) == 0 {
		s.t.Fatalf("%s: no answer: %v", text, err)
	}
	return string(answer)
}

// withPort is a text with the port where PORT stands.
func withPort(text, port string) string { return strings.ReplaceAll(text, "PORT", port) }

// The name by which a request came is what net/http says it is, however it was written.
func TestServeGuardHosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--store", "sqlite:"+dir+"/ids.db")
	for _, tt := range []struct{ send, want string }{
		{"GET http://evil.example/readyz HTTP/1.1\r\nHost: localhost\r\n", "403"}, // the target counts
		{"GET http://localhost/readyz HTTP/1.1\r\nHost: localhost\r\n", "200"},
		{"GET /readyz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n", "400"},
		{"GET /readyz HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n", "400"},
		{"GET /readyz HTTP/1.1\r\n", "400"},
		{"GET /readyz HTTP/1.0\r\n", "200"},
		{"GET /readyz HTTP/1.0\r\nHost: evil.example\r\n", "403"},
		{"GET /readyz HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\n", "403"},
		{"GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example\r\n", "200"},
		{"GET /readyz HTTP/1.1\r\nHost: localhost:1@evil.example\r\n", "400"},
		{"GET /readyz HTTP/1.1\r\nHost: 127.1\r\n", "403"},
		{"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n", "200"},
		{"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1.:80\r\n", "403"},
		{"GET /readyz HTTP/1.1\r\nHost: [::ffff:0.0.0.0]\r\n", "403"},
		{"GET /readyz HTTP/1.1\r\nHost: ::1\r\n", "403"},
		{"GET /readyz HTTP/1.1\r\nHost: [evil.example]\r\n", "403"},
		{"GET /readyz HTTP/1.1\r\nHost: localhost:\r\n", "200"},
		{"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n", "404"}, // no route is reached
	} {
		c, err := net.Dial("tcp", s.listen["http"])
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(long))
		io.WriteString(c, tt.send+"\r\n")
		line, err := bufio.NewReader(c).ReadString('\n')
		if fields := strings.Fields(line); len(fields) < 2 || fields[1] != tt.want {
			t.Errorf("%q: %q, %v, want %s", tt.send, line, err, tt.want)
		}
		c.Close()
	}
}

// Over HTTP/2 the name is that of :authority; there is TLS below, whose certificate has
// the server's names, so that any is answered, and a foreign page is not.
func TestServeGuardHTTP2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := newAuthority(t)
	a.issue(t, dir, "server", 1)
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\ntls: { cert: server.pem, key: server.key }\n")
	s := serve(t, dir)
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: a.pool, ServerName: "localhost"},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.listen["http"])
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	for site, want := range map[string]int{"": 200, "same-origin": 200, "cross-site": 403} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "https://ids.example.com/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if site != "" {
			req.Header.Set("Sec-Fetch-Site", site)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != want {
			t.Errorf("%q: %s %s, want %d", site, resp.Proto, resp.Status, want)
		}
	}
}
