//go:build amd64 || arm64

package node_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

func TestMain(m *testing.M) { clienttest.Main(m) }

func install(t *testing.T) func(args ...string) *exec.Cmd { return clienttest.JavaScript(t) }

// TestTake: ids, texts, batches, worker threads, forked and cluster processes take ids of one page, and no id comes twice.
func TestTake(t *testing.T) {
	node := install(t)
	path := clienttest.Serve(t).Path
	var ids clienttest.IDs
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"next", path, "20000"}, 20000},
		{[]string{"string", path, "20000"}, 20000},
		{[]string{"async", path, "2000"}, 2000},
		{[]string{"batch", path, "20", "1000"}, 20000},
		{[]string{"batch", path, "1", "200000"}, 200_000},
		{[]string{"workers", path, "5000", "4"}, 25000},
		{[]string{"fork", path, "5000", "3"}, 20000},
		{[]string{"cluster", path, "5000", "3"}, 20000},
	} {
		if n := ids.Run(t, node(append([]string{"take.js"}, c.args...)...)); n != c.want {
			t.Errorf("%s: %d ids, want %d", strings.Join(c.args, " "), n, c.want)
		}
	}
}

// TestTypes: the types for TypeScript name all that the module has.
func TestTypes(t *testing.T) {
	node := install(t)
	b, err := os.ReadFile("index.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	agent := clienttest.Serve(t)
	const list = `const firn = require('firn-page'); const page = firn.open(process.argv[1]);
		console.log([...Object.keys(firn), ...Object.getOwnPropertyNames(Object.getPrototypeOf(page))].join(' '))`
	out, err := node("-e", list, agent.Path).Output()
	names := strings.Fields(string(out))
	if err != nil || len(names) < 9 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if name != "constructor" && !regexp.MustCompile(`\b`+name+`\b`).Match(b) {
			t.Errorf("index.d.ts does not have %s", name)
		}
	}
}

// TestReadme runs the samples of the README.
func TestReadme(t *testing.T) {
	node := install(t)
	path := clienttest.Serve(t).Path
	for language, c := range map[string]struct{ file, says string }{"js": {"sample.js", "1000\n"}, "mjs": {"sample.mjs", "BigInt64Array(1000)"}} {
		if err := os.WriteFile(filepath.Join(node().Dir, c.file), []byte(clienttest.Samples(t, "README.md", language)[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := clienttest.Output(t, node().Dir, "node", c.file, path); !strings.Contains(out, c.says) {
			t.Errorf("%s: %s", c.file, out)
		}
	}
	clienttest.Refused(t, node("-e", "require('node:fs').renameSync('node_modules/firn-page/build', 'gone'); require('firn-page')"), "run npm rebuild firn-page")
	clienttest.Output(t, node().Dir, "npm", "rebuild", "firn-page")
	clienttest.Output(t, node().Dir, "node", "sample.js", path)
}

// TestSequelize: default primary keys of Sequelize come from the page, in several processes at once. It is long because
// npm fetches some forty packages.
func TestSequelize(t *testing.T) {
	testserver.OnlyLong(t)
	node := install(t)
	_, modules := testserver.JavaScript(t, "testdata/sequelize")
	db := testdb.New(t, testserver.Postgres(t), "photos")
	model := strings.ReplaceAll(clienttest.Samples(t, "README.md", "js")[1], "/run/firn/page", clienttest.Serve(t).Path)
	if err := os.WriteFile(filepath.Join(node().Dir, "model.js"), []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(node().Dir, "sequelize"), 0o700); err != nil {
		t.Fatal(err)
	}
	clienttest.Copy(t, filepath.Join(node().Dir, "sequelize"), "testdata/sequelize/rows.js")
	program := func(args ...string) *exec.Cmd {
		cmd := node(args...)
		cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "DATABASE_URL="+db)
		return cmd
	}
	if out, err := program("-e", "const { db } = require('./model'); db.sync().then(() => db.close())").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var ids clienttest.IDs
	var ends []func() int
	for range 3 {
		ends = append(ends, ids.Start(t, program("sequelize/rows.js", "100")))
	}
	for _, end := range ends {
		if n := end(); n != 100 {
			t.Errorf("%d rows, want 100", n)
		}
	}
}

// TestErrors: errors have a code, and say what to do.
func TestErrors(t *testing.T) {
	node := install(t)
	agent := clienttest.Serve(t, clienttest.Brief)
	path := agent.Path
	take := func(args ...string) *exec.Cmd { return node(append([]string{"take.js"}, args...)...) }
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+".copy", b, 0o600)
	}
	if err == nil {
		b[20] ^= 1
		err = os.WriteFile(path+".boot", b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	clienttest.Refused(t, take("next", path+".copy", "1"), "FirnError FIRN_EUNUSABLE: firn: page "+path+".copy: it is a copy; use the original")
	clienttest.Refused(t, take("next", path+".boot", "1"), "FIRN_EUNUSABLE", "of another host; start its agent here")
	clienttest.Refused(t, take("next", path+"x", "1"), "FIRN_ENOPAGE: firn: page "+path+"x: there is no page; start its agent, or correct the path")
	clienttest.Refused(t, take("open", path+"x"), "FIRN_ENOPAGE")
	clienttest.Refused(t, take("next", "/proc/self/stat", "1"), "FIRN_EUNUSABLE", "use a path on tmpfs, ext4 or xfs")
	clienttest.Refused(t, take("busy", clienttest.Serve(t, clienttest.Slow).Path), "FIRN_EBUSY", "the ids of this moment are used up; retry, or allow a longer wait")
	clienttest.Refused(t, take("abort", path), "AbortError")
	clienttest.Refused(t, take("closed", path), "FIRN_ECLOSEDPAGE", "open it again")
	clienttest.Refused(t, node("-e", "require('firn-page').open('/x', { wait: -1 })"), "RangeError: wait -1: a number of milliseconds, 0 to Infinity")
	clienttest.Refused(t, node("-e", "require('firn-page').open(1)"), "TypeError: path: the path of a page, a string")
	agent.Kill()
	time.Sleep(clienttest.Outage + time.Second)
	clienttest.Refused(t, take("next", path, "1"), "FIRN_EENDED", "ids ended at 20", "its agent or the agent's store is away; retry")
	if out, err := take("loop", path).CombinedOutput(); err != nil || string(out) != "FIRN_EENDED free\n" {
		t.Errorf("a call that waits: %s, %v", out, err)
	}
	agent.Start()
	agent.Stop()
	clienttest.Refused(t, take("next", path, "1"), "FIRN_ECLOSED: firn: page "+path+": its agent has ended; start it again")
}

// TestAtOnce: processes in JavaScript, Go and C take ids of one page while it gets other agents.
func TestAtOnce(t *testing.T) {
	node := install(t)
	until := func(path string) *exec.Cmd { return node("take.js", "until", path) }
	clienttest.Storm(t, until, until)
}
