package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/server/daemon"
)

// A program serves ids from inside itself.
func Example() {
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "firn.yaml")
	const text = `store: sqlite:ids.db
listen: { resp: "off", http: "127.0.0.1:0" }
series: { orders: { kind: segment, first: 1000 } }
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	started := make(chan daemon.Running, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, cfg, &daemon.Options{
			Started: func(r daemon.Running) error { started <- r; return nil },
		})
	}()
	select {
	case err := <-ended:
		log.Fatal(errors.Join(errors.New("it has not started"), err))
	case r := <-started:
		answer, err := http.Post("http://"+r.Listen[0].At.String()+"/v1/series/orders/next", "", nil)
		if err != nil {
			log.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.TrimSpace(string(body)))
	}
	stop()
	fmt.Println("stopped:", <-ended)
	// Output:
	// {"series":"orders","values":["1000"]}
	// stopped: <nil>
}
