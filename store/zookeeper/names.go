package zookeeper

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/firn-id/firn/store"
)

// nodeName is the name of a record's node: its key, where a slash is a colon, so
// that all are children of one node.
func nodeName(key string) string {
	switch key {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return escaper.Replace(key)
}

var escaper = strings.NewReplacer("/", ":", ":", "%3A", "%", "%25")

// keyOf is the key of the record whose node has this name. There is one name for
// each key; a node of any other is none of ours.
func keyOf(name string) (key string, ok bool) {
	key, err := url.PathUnescape(strings.ReplaceAll(name, ":", "/"))
	return key, err == nil && store.CheckKey(key) == nil && nodeName(key) == name
}

// encode is the data of a record's node.
func encode(r store.Record) []byte {
	return append([]byte(string(r.Version)+"\n"), r.Value...)
}

var errForeign = errors.New("was not written by firn")

func decode(key string, data []byte) (store.Record, error) {
	version, value, ok := strings.Cut(string(data), "\n")
	if !ok || !isVersion(store.Version(version)) {
		return store.Record{}, fmt.Errorf("node %s %w", nodeName(key), errForeign)
	}
	return store.Record{Key: key, Value: []byte(value), Version: store.Version(version)}, nil
}
