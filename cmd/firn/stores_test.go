package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firn-id/firn/internal/testserver"
)

// TestStoreScripts runs testdata/stores/*.txt on each store that has a server.
func TestStoreScripts(t *testing.T) {
	for name, store := range map[string]struct {
		start func(testing.TB, ...string) *testserver.Server
		lossy bool
		clock bool   // without one a process looks on for a while before it gives up
		at    string // what is behind the server's address
	}{
		"zookeeper": {testserver.ZooKeeper, false, false, "/app/ids"},
		"postgres":  {testserver.Postgres, false, true, ""},
		"etcd":      {testserver.Etcd, false, false, "/app"},
		"mysql":     {testserver.MariaDB, false, true, ""},
		"redis":     {testserver.Redis, true, true, "/1"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "postgres" && name != "redis" {
				testserver.OnlyLong(t) // the contract of package storetest holds each store
			}
			t.Parallel()
			server := store.start(t)
			url := server.URL() + store.at
			testscript.Run(t, testscript.Params{
				Dir:                 "testdata/stores",
				RequireExplicitExec: true,
				Setup: func(e *testscript.Env) error {
					e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
					e.Setenv("GORACE", raceOptions)
					e.Setenv("NAME", name)
					e.Setenv("STORE", url)
					scheme, _, _ := strings.Cut(url, ":")
					e.Setenv("SCHEME", scheme)
					e.Setenv("SEP", "?")
					if strings.Contains(url, "?") {
						e.Setenv("SEP", "&")
					}
					class, other, failover, begin := "durable", "lossy", "if the store loses writes, or a backup is put back, ", ""
					if store.lossy {
						class, other, failover = "lossy", "durable", "each start of a process waits for 1.s"
						begin = "; each process waits 1.s when it starts, because the store can lose writes"
					}
					e.Setenv("CLASS", class)
					e.Setenv("OTHER", other)
					e.Setenv("FAILOVER", failover)
					e.Setenv("BEGIN", begin)
					setup, again := "created", "everything was there already"
					if name == "zookeeper" { // the doctor above has asked whether it may write
						setup = again
					}
					if name == "redis" || name == "etcd" {
						setup = "nothing to create: a store of this kind needs no table and no node before its first record"
						again = setup
					}
					e.Setenv("SETUP", setup)
					e.Setenv("AGAIN", again)
					return nil
				},
				Condition: func(cond string) (bool, error) {
					return cond == "clock" && store.clock || cond == "sql" && (name == "postgres" || name == "mysql"), nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"exits": exits,
					"server": func(_ *testscript.TestScript, _ bool, args []string) {
						if args[0] == "stop" {
							server.Stop(t)
						} else {
							server.Start(t)
						}
					},
				},
			})
		})
	}
}
