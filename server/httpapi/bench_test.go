package httpapi_test

import (
	"net/http"
	"testing"
)

// discard is a ResponseWriter that keeps its headers from one request to the next.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkNext is what a request for one id costs besides net/http.
func BenchmarkNext(b *testing.B) {
	h := handler(b, newServer(b, nil, photo(b)), nil)
	r, err := http.NewRequest("POST", "/v1/series/photo/next", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RequestURI = "/v1/series/photo/next"
	r.Header.Set("Accept", "text/plain")
	w := discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
