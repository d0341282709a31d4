package metrics_test

import (
	"context"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/metrics"
	"github.com/firn-id/firn/shard/topology"
)

func ExampleWrite() {
	config, err := pgx.ParseConfig("postgres://firn@127.0.0.1:1/app")
	if err != nil {
		panic(err)
	}
	// Nothing listens there: the server is down.
	metrics.Write(context.Background(), os.Stdout, []topology.Server{{Name: "a", Config: config}})
	// Output:
	// # HELP firn_shard_findings What is wrong with the cluster as a whole, by level, as firn shard status says.
	// # TYPE firn_shard_findings gauge
	// firn_shard_findings{level="bad"} 0
	// firn_shard_findings{level="warn"} 0
	// # HELP firn_shard_moves_known 1 where all servers have said which moves there are.
	// # TYPE firn_shard_moves_known gauge
	// firn_shard_moves_known 0
	// # HELP firn_shard_server_up 1 where the server answers and says which shards it has.
	// # TYPE firn_shard_server_up gauge
	// firn_shard_server_up{server="a"} 0
}
