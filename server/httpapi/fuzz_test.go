package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
)

// A tally counts what is drawn from it.
type tally struct{ n firn.ID }

func (c *tally) Next(context.Context) (firn.ID, error) { c.n++; return c.n, nil }

func (c *tally) Append(_ context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	for range n {
		c.n++
		dst = append(dst, c.n)
	}
	return dst, nil
}

func (c *tally) reserve(_ context.Context, n int) (firn.Range, error) {
	first := c.n + 1
	c.n += firn.ID(n)
	return firn.Range{First: first, Count: n, Step: 1}, nil
}

// Whatever is asked: an answer of 200 has every id that was drawn for it, any other
// has drawn none, and says in its own form what is wrong.
func FuzzHandler(f *testing.F) {
	for _, s := range []string{
		"POST /v1/series/photo/next HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /v1/series/photo/next?n=3 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n",
		"POST /v1/series/photo/next?n=101 HTTP/1.1\r\nHost: a\r\nAccept: application/octet-stream;q=0.5, text/*;q=0.1\r\n\r\n",
		"POST /v1/series/photo/range?n=7 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /v1/series/photo/next HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nn=3",
		"GET /v1/series/ph%6Fto HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n",
		"GET /v1/decode/12345 HTTP/1.1\r\nHost: a\r\n\r\n",
		"HEAD /api/segment/get/photo HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /api/segment/get/photo HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: cross-site\r\n\r\n",
		"GET /tinyid/id/nextId?bizType=photo&batchSize=2&token=x HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /tinyid/id/nextIdSimple HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 13\r\n\r\nbizType=photo",
		"POST /v1/series/photo/next HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n",
		"PUT /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET //v1/../v1/layouts HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	ids := &tally{n: 1_000_000}
	srv := newServer(f, &server.Options{MaxBatch: 100, MaxRange: 1000}, server.Numbers("photo", ids, &server.SeriesOptions{Reserve: ids.reserve}))
	h := handler(f, srv, &httpapi.Options{Foreign: true})
	f.Fuzz(func(t *testing.T, request []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil || !strings.HasPrefix(r.RequestURI, "/") {
			return // net/http answers it
		}
		before := ids.n
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		body, kind := w.Body.Bytes(), w.Header().Get("Content-Type")
		moved := w.Code/100 == 3 // by http.ServeMux, to the same path without // and ..
		switch {
		case w.Code != http.StatusOK && ids.n != before:
			t.Fatalf("%q: %d ids were drawn for status %d", request, ids.n-before, w.Code)
		case !moved && w.Header().Get("Cache-Control") != "no-store":
			t.Fatalf("%q: status %d may be kept", request, w.Code)
		case len(body) > 1<<20:
			t.Fatalf("%q: %d bytes", request, len(body))
		case strings.HasSuffix(kind, "json") && !json.Valid(body):
			t.Fatalf("%q: %s", request, body)
		case w.Code >= 400 && !strings.HasPrefix(r.URL.Path, "/tinyid/") && kind != "application/problem+json":
			t.Fatalf("%q: status %d of type %s", request, w.Code, kind)
		}
		for id := before + 1; id <= ids.n && ids.n-before <= 100 && !strings.HasSuffix(r.URL.Path, "/range"); id++ {
			if !bytes.Contains(body, []byte(id.String())) && !bytes.Contains(body, binary.BigEndian.AppendUint64(nil, uint64(id))) {
				t.Fatalf("%q: %d was drawn, and is not in %q", request, id, body)
			}
		}
	})
}
