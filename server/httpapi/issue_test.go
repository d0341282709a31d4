package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
)

// values reads an answer in any of its forms.
func values(t testing.TB, a answer) []string {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatal(a)
	}
	switch kind := a.header.Get("Content-Type"); kind {
	case "application/json":
		var body struct {
			Values []string `json:"values"`
		}
		if err := json.Unmarshal(a.body, &body); err != nil {
			t.Fatal(err)
		}
		return body.Values
	case "text/plain; charset=utf-8":
		return strings.Split(strings.TrimSuffix(string(a.body), "\n"), "\n")
	case "application/octet-stream":
		var all []string
		for b := range slices.Chunk(a.body, 8) {
			all = append(all, strconv.FormatUint(binary.BigEndian.Uint64(b), 10))
		}
		return all
	default:
		t.Fatalf("content type %q", kind)
		return nil
	}
}

// Whatever the form, there are as many ids as were asked for, each of the series,
// and none comes twice.
func TestForms(t *testing.T) {
	for _, name := range []string{"photo", "orders", "hidden"} {
		s := newServer(t, nil, photo(t), orders(t, "orders", nil), hidden(t, "hidden"))
		url := listen(t, handler(t, s, nil))
		session := enter(t, s, "")
		seen := map[string]bool{}
		for _, accept := range []string{"application/json", "text/plain", "application/octet-stream"} {
			for _, n := range []int{1, 2, 300, 10_000} {
				got := values(t, ask(t, "POST", fmt.Sprintf("%s/v1/series/%s/next?n=%d", url, name, n), "Accept", accept))
				if len(got) != n {
					t.Fatalf("%s %s: %d values, want %d", name, accept, len(got), n)
				}
				for _, text := range got {
					if _, err := firn.ParseID(text); err != nil || seen[text] {
						t.Fatalf("%s %s: %q (seen %v): %v", name, accept, text, seen[text], err)
					}
					seen[text] = true
					if n > 1 || name == "orders" {
						continue
					}
					found, err := session.Decode(text)
					if !slices.ContainsFunc(found, func(d server.Decoded) bool { return d.Known && time.Since(d.Time) < time.Minute }) {
						t.Errorf("%s %s: %+v, %v", name, accept, found, err)
					}
				}
			}
		}
	}
}

func TestRange(t *testing.T) {
	url := listen(t, handler(t, newServer(t, nil, orders(t, "orders", nil)), nil))
	next := int64(1)
	for _, n := range []int{1, 10, 100_000} {
		var got struct {
			First string
			Count int
			Step  int64
		}
		if err := json.Unmarshal(ask(t, "POST", fmt.Sprintf("%s/v1/series/orders/range?n=%d", url, n)).body, &got); err != nil {
			t.Fatal(err)
		}
		first, err := strconv.ParseInt(got.First, 10, 64)
		if err != nil || first < next || got.Count != n || got.Step != 1 {
			t.Errorf("range of %d after %d: %+v, %v", n, next, got, err)
		}
		next = first + int64(n)
	}
}

// What is refused has used up nothing: the next number is the first.
func TestRefusedIssuesNothing(t *testing.T) {
	s := newServer(t, &server.Options{Tokens: tokens}, orders(t, "orders", nil), invoices(t, "invoice"))
	url := listen(t, handler(t, s, &httpapi.Options{Foreign: true}))
	a := bearer(admin)
	for _, r := range []request{
		{"POST", "/v1/series/orders/next", 401, "", nil},
		{"POST", "/v1/series/orders/next", 401, "", bearer("x")},
		{"POST", "/v1/series/orders/next", 403, "", bearer(reader)},
		{"POST", "/v1/series/orders/next", 403, "", append(a, "Origin", "http://elsewhere.example")},
		{"POST", "/v1/series/orders/next", 406, "", append(a, "Accept", "image/png")},
		{"POST", "/v1/series/invoice/next", 406, "", append(a, "Accept", "application/octet-stream")},
		{"POST", "/v1/series/orders/next?n=0", 400, "", a},
		{"POST", "/v1/series/orders/next?count=2", 400, "", a},
		{"POST", "/v1/series/orders%2Fnext", 405, "", a}, // the series orders/next
		{"GET", "/v1/series/orders/next", 405, "", a},
		{"HEAD", "/v1/series/orders/next", 405, "", a},
		{"OPTIONS", "/v1/series/orders/next", 405, "", a},
		{"HEAD", "/api/segment/get/orders", 405, "", a},
		{"HEAD", "/tinyid/id/nextId?bizType=orders", 405, "", a},
		{"GET", "/api/segment/get/orders", 403, "", append(a, "Sec-Fetch-Site", "cross-site")},
		{"GET", "/api/segment/get/invoice", 409, "", a},
		{"GET", "/tinyid/id/nextIdSimple?bizType=orders&batchSize=-1", 400, "", a},
	} {
		if got := ask(t, r.method, url+r.path, r.headers...); got.status != r.status {
			t.Errorf("%s %s: %s, want %d", r.method, r.path, got, r.status)
		} else if got.header.Get("Cache-Control") != "no-store" || r.status == 401 && got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s: headers %v", r.method, r.path, got.header)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/series/orders/next", strings.NewReader("n=10"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+admin)
	if got := do(t, r); got.status != 400 {
		t.Errorf("a body: %s", got)
	}
	for name, first := range map[string]string{"orders": "1", "invoice": "INV-000001"} {
		if got := values(t, ask(t, "POST", url+"/v1/series/"+name+"/next", a...)); got[0] != first {
			t.Errorf("%s begins with %v", name, got)
		}
	}
}

func TestNoRoute(t *testing.T) {
	url := listen(t, handler(t, newServer(t, nil, photo(t)), nil))
	for _, r := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""},
		{"POST", "/v2/series/photo/next", 404, ""},
		{"GET", "/api/segment/get/photo", 404, ""}, // switched off
		{"GET", "/v1/series/photo/next", 405, "POST"},
		{"DELETE", "/v1/series/photo", 405, "GET, HEAD"},
		{"POST", "/healthz", 405, "GET, HEAD"},
		{"TRACE", "/metrics", 405, "GET, HEAD"},
	} {
		got := ask(t, r.method, url+r.path)
		var body struct{ Type string }
		if err := json.Unmarshal(got.body, &body); err != nil {
			t.Fatal(err)
		}
		if got.status != r.status || got.header.Get("Allow") != r.allow || !strings.Contains(body.Type, "#/x-problems/") {
			t.Errorf("%s %s: %s, Allow %q", r.method, r.path, got, got.header.Get("Allow"))
		}
	}
	if head := ask(t, "HEAD", url+"/healthz"); head.status != 200 || len(head.body) != 0 {
		t.Errorf("HEAD /healthz: %s", head)
	}
}

// Many at once get different ids.
func TestConcurrent(t *testing.T) {
	url := listen(t, handler(t, newServer(t, nil, photo(t)), nil))
	const callers, each = 8, 20
	all := make([][]string, callers)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			for range each {
				all[i] = append(all[i], values(t, ask(t, "POST", url+"/v1/series/photo/next?n=7"))...)
			}
		})
	}
	wg.Wait()
	got := slices.Concat(all...)
	slices.Sort(got)
	if len(got) != callers*each*7 || len(slices.Compact(got)) != callers*each*7 {
		t.Errorf("%d ids, %d of them different", callers*each*7, len(slices.Compact(got)))
	}
}

// A token that is taken away ends what its holder may do, on the connection that he has.
func TestTokenTakenAway(t *testing.T) {
	p := photo(t)
	s := newServer(t, &server.Options{Tokens: tokens}, p)
	url := listen(t, handler(t, s, nil)) + "/v1/series/photo/next"
	if got := ask(t, "POST", url, bearer(issuer)...); got.status != 200 {
		t.Fatal(got)
	}
	if err := s.Replace(&server.Options{Tokens: tokens[:1]}, p); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, "POST", url, bearer(issuer)...); got.status != 401 || !strings.Contains(got.header.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("%s, %v", got, got.header)
	}
	if err := s.Replace(nil, p); err != nil { // tokens are no longer needed
		t.Fatal(err)
	}
	if got := ask(t, "POST", url); got.status != 200 {
		t.Error(got)
	}
}

func TestForeignForms(t *testing.T) {
	url := listen(t, handler(t, newServer(t, nil, orders(t, "orders", nil)), &httpapi.Options{Foreign: true}))
	for _, tt := range []struct{ path, want string }{
		{"/api/segment/get/orders", `1`},
		{"/tinyid/id/nextId?bizType=orders&batchSize=2&token=whatever", `{"data":[2,3],"code":200,"message":""}`},
		{"/tinyid/id/nextIdSimple?bizType=orders", `4`},
		{"/tinyid/id/nextIdSimple?bizType=orders&batchSize=3", `5,6,7`},
	} {
		if got := ask(t, "GET", url+tt.path); got.status != 200 || string(got.body) != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
	for form, want := range map[string]string{
		"bizType=orders&batchSize=2&token=whatever": `200 {"data":[8,9],"code":200,"message":""}`,
		"bizType=orders&x=" + strings.Repeat("x", 20_000): `400 {"data":null,"code":6,` +
			`"message":"The request is not right: the query cannot be read: http: request body too large"}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/tinyid/id/nextId", strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if got := do(t, r).String(); got != want {
			t.Errorf("%.50s: %s, want %s", form, got, want)
		}
	}
}

// A page whose name was made to lead to this host draws nothing, whatever its browser
// says of it: on a GET it says nothing.
func TestNameLedHere(t *testing.T) {
	open := newServer(t, nil, orders(t, "orders", nil))
	guarded := newServer(t, &server.Options{Tokens: tokens}, orders(t, "orders", nil))
	for _, tt := range []struct {
		server *server.Server
		host   string
		origin bool
		want   int
	}{
		{open, "elsewhere.example:6381", true, 403},
		{open, "elsewhere.example", true, 403},
		{open, "127.0.0.1.elsewhere.example", true, 403},
		{open, "elsewhere.example:6381", false, 403},
		{open, "IDS.example.com.:6381", true, 200},
		{open, "localhost:6381", true, 200},
		{open, "LocalHost.:6381", true, 200},
		{open, "evil.localhost", true, 403},
		{open, "evil.localhost:6381", true, 403},
		{open, "127.0.0.1:6381", true, 200},
		{open, "[::1]:6381", true, 200},
		{guarded, "elsewhere.example:6381", true, 403},
	} {
		url := listen(t, handler(t, tt.server, &httpapi.Options{Foreign: true, Names: []string{"ids.example.com"}}))
		for method, path := range map[string]string{"POST": "/v1/series/orders/next", "GET": "/api/segment/get/orders"} {
			r, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			if tt.origin {
				r.Header.Set("Origin", "http://"+tt.host)
				r.Header.Set("Sec-Fetch-Site", "same-origin")
			}
			if tt.server.Guarded() {
				r.Header.Set("Authorization", "Bearer "+admin)
			}
			if got := do(t, r); got.status != tt.want {
				t.Errorf("%s %s by %s: %s, want %d", method, path, tt.host, got, tt.want)
			}
		}
	}
}

// A reloading source takes its series away when it is drawn from.
type reloading func()

func (f reloading) Next(context.Context) (firn.ID, error) { panic("not asked") }

func (f reloading) Append(_ context.Context, dst []firn.ID, _ int) ([]firn.ID, error) {
	f()
	return dst, firn.ErrClosed
}

// A series of numbers that becomes one of texts while it is drawn from gives those who
// want numbers no answer.
func TestTextsAfterAReload(t *testing.T) {
	for path, accept := range map[string]string{
		"POST /v1/series/orders/next":                "application/octet-stream",
		"GET /api/segment/get/orders":                "",
		"GET /tinyid/id/nextId?bizType=orders":       "",
		"GET /tinyid/id/nextIdSimple?bizType=orders": "",
	} {
		var s *server.Server
		s = newServer(t, nil, server.Numbers("orders", reloading(func() {
			if err := s.Replace(nil, invoices(t, "orders")); err != nil {
				t.Error(err)
			}
		}), nil))
		url := listen(t, handler(t, s, &httpapi.Options{Foreign: true}))
		method, path, _ := strings.Cut(path, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			t.Errorf("%s: %s", path, answer.Status)
			answer.Body.Close()
		}
	}
}

// A lateReader is a connection that fails, and reads the answer nevertheless.
type lateReader struct {
	http.ResponseWriter
	body []byte
}

func (w *lateReader) Write(p []byte) (int, error) {
	w.body = p
	return 0, io.ErrClosedPipe
}

// What one request was answered is not written over by the next where the connection
// of the first may still be reading it, as that of a stream of HTTP/2 that was reset.
func TestAnswerOfOneIsNotAnothers(t *testing.T) {
	h := handler(t, newServer(t, nil, orders(t, "orders", nil)), &httpapi.Options{Foreign: true})
	for _, path := range []string{"POST /v1/series/orders/next", "GET /api/segment/get/orders", "GET /tinyid/id/nextId?bizType=orders", "GET /tinyid/id/nextIdSimple?bizType=orders"} {
		method, path, _ := strings.Cut(path, " ")
		for range 50 {
			late := &lateReader{ResponseWriter: httptest.NewRecorder()}
			h.ServeHTTP(late, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			before := string(late.body)
			call(h, method, path)
			if string(late.body) != before {
				t.Fatalf("%s: %s was written over %s", path, late.body, before)
			}
		}
	}
}

// Over a limit, the hint is about that limit.
func TestHintsOfLimits(t *testing.T) {
	h := handler(t, newServer(t, &server.Options{MaxBatch: 10, Others: unknown(t)}), nil)
	for _, tt := range []struct{ path, want string }{
		{"photo/next?n=0", "one at least"},
		{"photo/next?n=-1", "one at least"},
		{"photo/next?n=11", "fewer at a time"},
	} {
		var p struct{ Hint string }
		got := call(h, "POST", "/v1/series/"+tt.path)
		if err := json.Unmarshal(got.body, &p); err != nil || got.status != 400 || !strings.Contains(p.Hint, tt.want) {
			t.Errorf("%s: %s, want a hint with %q", tt.path, got, tt.want)
		}
	}
}

// curl, as it is typed.
func TestCurl(t *testing.T) {
	curl := testserver.Curl(t)
	url := listen(t, handler(t, newServer(t, nil, orders(t, "orders", nil)), nil)) + "/v1/series/orders/next"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-X", "POST", url}, "{\"series\":\"orders\",\"values\":[\"1\"]}\n"},
		{[]string{"-X", "POST", "-H", "Accept: text/plain", url + "?n=2"}, "2\n3\n"},
		{[]string{"-0", "-X", "POST", url}, "{\"series\":\"orders\",\"values\":[\"4\"]}\n"},
		{[]string{"-X", "POST", "-w", "%{num_connects} ", "-H", "Accept: text/plain", url, "-o", "-", url, "-o", "-"}, "5\n1 6\n0 "},
		{[]string{"-X", "POST", "--data", "", "-w", "%{http_code}", "-o", "/dev/null", url}, "200"},
		{[]string{"-X", "POST", "--data", "n=3", "-w", "%{http_code}", "-o", "/dev/null", url}, "400"},
	} {
		out, err := exec.CommandContext(t.Context(), curl, append([]string{"-s", "-q", "--noproxy", "*"}, tt.args...)...).Output()
		if err != nil || string(out) != tt.want {
			t.Errorf("curl %v: %q, %v, want %q", tt.args, out, err, tt.want)
		}
	}
}

// Garbage ends its own connection, and no other.
func TestGarbage(t *testing.T) {
	url := listen(t, handler(t, newServer(t, nil, orders(t, "orders", nil)), nil))
	for _, tt := range []struct{ send, want string }{
		{"\x00\x01\x02\r\n\r\n", "400"},
		{"*1\r\n$4\r\nPING\r\n", "400"},
		{"POST /v1/series/orders/next HTTP/9.9\r\n\r\n", "505"},
		{"POST /v1/series/orders/next HTTP/1.1\r\n\r\n", "400"}, // no Host
		{"POST /v1/series/orders/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "400"},
		{"POST /v1/series/orders/next HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "431"},
		{"POST /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "431"},
		{"POST /v1/series/orders/next?n=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
		{"POST /v1/series/%00/next HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"},
		{"POST /v1/series/orders/next HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
		{"POST /v1/series/orders/next HTTP/1.0\r\n\r\n", "200"},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		go conn.Write([]byte(tt.send)) // the server may close before it has read all
		line, err := bufio.NewReader(conn).ReadString('\n')
		if fields := strings.Fields(line); len(fields) < 2 || fields[1] != tt.want {
			t.Errorf("%.60q: %q, %v, want %s", tt.send, line, err, tt.want)
		}
		conn.Close()
	}
	if got := values(t, ask(t, "POST", url+"/v1/series/orders/next")); got[0] != "2" {
		t.Errorf("after the garbage: %v", got)
	}
}

// A pipeline on one connection is answered in order.
func TestPipeline(t *testing.T) {
	url := listen(t, handler(t, newServer(t, nil, orders(t, "orders", nil)), nil))
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	const n = 100
	go conn.Write(bytes.Repeat([]byte("POST /v1/series/orders/next HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n"), n))
	r := bufio.NewReader(conn)
	for i := range n {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if _, err := fmt.Fscan(resp.Body, &got); err != nil || got != i+1 {
			t.Fatalf("answer %d is %d, %v", i+1, got, err)
		}
		resp.Body.Close()
	}
}
