package zookeeper

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/internal/golden/stored"
)

// TestGolden reads nodes as version 0.1.0 has written them.
func TestGolden(t *testing.T) {
	conn := connect(t, server(t).Addr())
	stored.Run(t, stored.Kind{New: func(testing.TB) stored.Place {
		root := newRoot()
		return stored.Place{
			Store: New(conn, &Options{Root: root}),
			Dump: func(tb testing.TB) map[string]string {
				all := map[string]string{}
				below(tb, conn, root+"/store", func(path, data string) { all[strings.TrimPrefix(path, root+"/")] = data })
				return all
			},
			Load: func(tb testing.TB, all map[string]string) {
				create(tb, conn, "/tests", "")
				create(tb, conn, root, "")
				for _, path := range slices.Sorted(maps.Keys(all)) { // parents first
					create(tb, conn, root+"/"+path, all[path])
				}
			},
		}
	}})
}

// below calls f for a node and all nodes below it.
func below(tb testing.TB, conn *zk.Conn, path string, f func(path, data string)) {
	data, _, err := conn.Get(path)
	if err != nil {
		tb.Fatal(err)
	}
	f(path, string(data))
	children, _, err := conn.Children(path)
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range children {
		below(tb, conn, path+"/"+name, f)
	}
}

// create creates a node that may be there.
func create(tb testing.TB, conn *zk.Conn, path, data string) {
	if _, err := conn.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists {
		tb.Fatal(err)
	}
}
