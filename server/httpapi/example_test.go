package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
	"github.com/firn-id/firn/store/memory"
)

// A program serves the numbers of a series over HTTP.
func ExampleHandler() {
	ctx := context.Background()
	// A program uses a store that stays, such as store/postgres.
	st := memory.New()
	if _, err := sequence.Create(ctx, st, "orders", nil); err != nil {
		log.Fatal(err)
	}
	orders, err := sequence.Open(ctx, st, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	srv, err := server.New(nil, server.Numbers("orders", orders, nil))
	if err != nil {
		log.Fatal(err)
	}
	h, err := httpapi.Handler(srv, nil)
	if err != nil {
		log.Fatal(err)
	}
	// A program that listens by itself uses httpapi.NewServer(h).
	s := httptest.NewServer(h)
	defer s.Close()

	answer, err := http.Post(s.URL+"/v1/series/orders/next", "", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.TrimSpace(string(body)))
	// Output: {"series":"orders","values":["1"]}
}
