package config_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/config"
)

func Example() {
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "firn.yaml")
	const text = `store: sqlite:ids.db
pools: { web: { workers: 0-255, outage: 10m } }
series:
  photo: { kind: flake, pool: web }
  orders: { kind: segment, frist: 1000 }
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	_, err = config.Load(path)
	if faults, ok := err.(*config.FaultsError); ok {
		for _, f := range faults.Faults {
			fmt.Printf("line %d, column %d: %s\n", f.Line, f.Column, f.Text)
		}
	}
	// Output:
	// line 5, column 28: a segment has no key "frist"; is it first?
}
