package topology_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/firn-id/firn/shard/topology"
)

// A router in another process, or in another language, reads the map that firn shard ls --map --json
// prints. The map may be old: the server that it names then says which server has the shard.
func ExampleMap_UnmarshalJSON() {
	text := `{
		"v": 1, "cluster": "c", "layout": "instagram", "shard": {"shift": 10, "bits": 13},
		"keys": {"scheme": "range", "shards": 2, "bounds": ["1", "1001"]}, "schemas": "insta%d", "servers": ["a", "b"],
		"shards": [
			{"shard": 0, "schema": "insta0", "server": "a", "state": "open", "term": 1},
			{"shard": 1, "schema": "insta1", "server": "b", "state": "open", "term": 3}
		]
	}`
	var m topology.Map
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		log.Fatal(err)
	}
	n, err := m.Keys.Shard("1234")
	if err != nil {
		log.Fatal(err)
	}
	route, _ := m.Route(n)
	fmt.Println(n, route.Server, route.Schema)
	// Output: 1 b insta1
}
