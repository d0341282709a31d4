package setup_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) {
	if os.Getenv(inChild) != "" {
		os.Exit(child())
	}
	testserver.Main(m)
}

// inChild has the test binary work on servers as the command would, so that it can be
// killed: "init" or "adopt", and their addresses.
const inChild = "FIRN_SETUP_CHILD"

func child() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	servers := serversAt(os.Args[1:]...)
	if os.Getenv(inChild) == "init" {
		_, err = tryInit(ctx, servers, wish())
	} else {
		_, err = tryAdopt(ctx, servers, adoptWish(), 30*time.Second)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
