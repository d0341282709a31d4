package console_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/console"
	"github.com/firn-id/firn/store/memory"
)

// A program that issues ids shows the page on a listener of its own.
func ExampleHandler() {
	ids, err := lease.Open(context.Background(), memory.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	srv, err := server.New(nil, server.Numbers("photo", ids, nil))
	if err != nil {
		log.Fatal(err)
	}

	page := console.Handler(srv, nil)
	mux := http.NewServeMux()
	mux.Handle("/{$}", page)
	mux.Handle("/console/", page)
	s := httptest.NewServer(mux) // a program: http.ListenAndServe("127.0.0.1:8080", mux)
	defer s.Close()

	answer, err := http.Get(s.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, answer.Header.Get("Content-Type"))
	// Output: 200 OK text/html; charset=utf-8
}
