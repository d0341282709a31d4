package shard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// python runs a program that uses examples/router.py.
func python(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testserver.Python(t), append([]string{"-B", "-c", program}, arguments...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+examples, "PYTHONUTF8=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestPythonVectors holds the keys of router.py against the vectors.
func TestPythonVectors(t *testing.T) {
	vectors, err := os.ReadFile("topology/testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	out := python(t, `
import json, sys
from router import Cluster
n = 0
for v in json.load(open(sys.argv[1]))["vectors"]:
    c = Cluster.__new__(Cluster)
    c.map = {"keys": v}
    try:
        got = c.for_key(v["key"])
    except ValueError:
        got = None
    if got != v.get("shard"):
        print("wrong:", v, got)
    n += 1
print(n, "vectors")
`, "topology/testdata/keys.json")
	if strings.Contains(out, "wrong") || out != fmt.Sprintln(strings.Count(string(vectors), `"scheme"`), "vectors") {
		t.Error(out)
	}
}

// TestPythonRouter writes and reads with router.py, while a shard is on the server of
// the map and when it has moved, in the middle of a transaction too.
func TestPythonRouter(t *testing.T) {
	all := newServers(t, "hash", 2, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	text, err := json.Marshal(c.Map())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	shard := c.ForKey("alice").Number()
	from, to := "a", "b"
	if shard == 1 {
		from, to = to, from
	}
	arguments := []string{file, "a=" + asApp(all["a"].url), "b=" + asApp(all["b"].url)}
	const program = `
import sys
from router import Cluster
cluster = Cluster(sys.argv[1], dict(s.split("=", 1) for s in sys.argv[2:]))
insert = lambda c: c.execute("INSERT INTO item (text) VALUES ('python') RETURNING id").fetchone()[0]
id = cluster.in_tx(cluster.for_key("alice"), insert)
print(id, cluster.in_tx(cluster.for_id(id), lambda c: c.execute("SELECT text FROM item WHERE id = %s", (id,)).fetchone()[0]))
`
	if out := python(t, program, arguments...); !strings.HasSuffix(out, " python\n") {
		t.Error(out)
	}
	out := python(t, `
import sys, psycopg
from router import Cluster
cluster = Cluster(sys.argv[1], dict(s.split("=", 1) for s in sys.argv[2:]))
def swallow(c):
    try: c.execute("SELECT 1/0")
    except psycopg.Error: pass
try: print("done:", cluster.in_tx(0, swallow))
except RuntimeError as e: print(e)
`, arguments...)
	if !strings.Contains(out, "nothing was committed") {
		t.Errorf("of what was rolled back it says %s", out)
	}
	all.move(t, int(shard), from, to)
	if out := python(t, program, arguments...); !strings.HasSuffix(out, " python\n") {
		t.Error(out)
	}
	if n := query[int](t, all[to].Conn, fmt.Sprintf("SELECT count(*) FROM insta%d.item", shard)); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestPythonPgBouncer: two routers share a connection of a PgBouncer in transaction mode.
func TestPythonPgBouncer(t *testing.T) {
	all := newServers(t, "mod", 1, "a")
	text, err := json.Marshal(openCluster(t, all.pools(t), nil).Map())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Shared(t, testserver.Postgres)
	bouncer := testserver.PgBouncer(t, server, "default_pool_size = 1")
	out := python(t, `
import sys
from router import Cluster
routers = [Cluster(sys.argv[1], {"a": sys.argv[2]}) for _ in range(2)]
for i in range(10):
    for r in routers:
        r.in_tx(0, lambda c: c.execute("INSERT INTO item (text) VALUES (%s)", (str(i),)))
print("done")
`, file, strings.Replace(all["a"].url, server.Addr(), bouncer.Addr(), 1))
	if out != "done\n" {
		t.Error(out)
	}
}
