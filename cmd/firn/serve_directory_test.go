package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A directory at the path of a store keeps the place of a file that was moved. That does not pass by
// itself: the start of a server ends, as that of every command.
func TestDirectoryInThePlaceOfAStore(t *testing.T) {
	dir := emptyHome(t)
	path := filepath.Join(dir, "ids.db")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	want := []string{
		path + ": is a directory, not a file",
		"a directory at that path keeps the place of a file that was moved",
		"--store URL",
	}
	write(t, dir, "orders.yaml", "series:\n  orders: { kind: sequence }\n")
	write(t, dir, "photo.yaml", "series:\n  photo: { kind: flake }\n")
	for _, args := range [][]string{
		{"next"},
		{"next", "orders", "--kind", "sequence"},
		{"pool", "ls"},
		{"serve", "--resp", "off", "--http", "127.0.0.1:0"},
		{"serve", "--resp", "off", "--http", "127.0.0.1:0", "--config", "orders.yaml"},
		{"serve", "--resp", "off", "--http", "127.0.0.1:0", "--config", "photo.yaml"},
	} {
		refusedWith(t, append(args, "--store", "sqlite:"+path), want...)
	}
}
