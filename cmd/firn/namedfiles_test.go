package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// A file that the command line names and that is missing, or is a directory, or holds something else than it
// should, is wrong usage for each command that reads one: the same command fails again.
func TestNamedFiles(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "junk", "\"\x00junk")
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	const past = "--store none --layout time:41@1s,worker:3,seq:19;epoch=2010-01-01T00:00:00Z --worker 1"
	for _, command := range []string{
		"verify FILE",
		"verify --column id FILE",
		"backfill FILE " + past,
		"next --config FILE",
		"config check FILE",
		"config show --config FILE",
		"public encode --as opaque --series photo --keys FILE 5",
		"decode --as opaque --series photo --keys FILE 1Gp6vQBBFCDqXS5XwKd4vyr",
		"public keygen --append --out FILE",
		"shard where --shard 1 --map-file FILE",
		"shard init --keys-by range --bounds FILE --server a=postgres://u@127.0.0.1:1/x",
		"shard apply FILE --server a=postgres://u@127.0.0.1:1/x",
	} {
		for _, file := range []string{"missing", "directory", "junk"} {
			if file == "junk" && strings.HasPrefix(command, "shard init") {
				continue // any text is a bound
			}
			want := ui.ExitUsage
			if file == "junk" && (command == "verify FILE" || command == "config check FILE") {
				want = ui.ExitFound // which looks for faults in it
			}
			args := strings.Fields(strings.Replace(command, "FILE", file, 1))
			if out, errs, code := called(t, args...); code != want {
				t.Errorf("firn %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
			}
		}
	}
}
