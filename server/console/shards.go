package console

import (
	"net/http"
	"time"

	"github.com/firn-id/firn/server"
)

// Shards are those of a cluster of PostgreSQL servers.
type Shards struct {
	Servers []ShardServer
	Moves   []ShardMove
	Err     error // why moves may be missing
}

// A ShardServer is a server with what it serves.
type ShardServer struct {
	Name   string
	Err    error // it does not answer; Shards are as they were when it did
	Shards []Shard
}

// A Shard is one that a server has, by which some are in a move.
type Shard struct {
	Number int64
	Closed bool
	Bytes  int64   // of its tables and indexes
	Rate   float64 // rows that are written a second; below 0: not known
}

// A ShardMove is shards on their way from one server to another.
type ShardMove struct {
	From, To string
	Shards   []int64
	List     string // of them, for people
	Moved    int    // of them, which are there already
	Phase    string
	Rows     int64 // that are copied
	Total    int64 // rows that there are, about
	Lag      int64 // bytes that have not arrived; below 0: not known
	Since    time.Time
	Problem  string
}

// A clusterView are shards as the page shows them.
type clusterView struct {
	newsView
	Every   float64           `json:"every_seconds"` // so often it is worth asking
	Servers []shardServerView `json:"servers"`
	Moves   []shardMoveView   `json:"moves"`
	Missing string            `json:"missing,omitempty"` // why moves may be missing
}

type shardServerView struct {
	Name    string      `json:"name"`
	Problem string      `json:"problem,omitempty"`
	Shards  []shardView `json:"shards"`
}

// A shardView is number, bytes, rows a second or -1, and whether it is closed: there
// may be thousands, and names would be most of the answer.
type shardView [4]any

type shardMoveView struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Shards  []int64 `json:"shards"`
	List    string  `json:"list"`
	Moved   int     `json:"moved"`
	Phase   string  `json:"phase"`
	Rows    int64   `json:"rows"`
	Total   int64   `json:"rows_total"`
	Lag     int64   `json:"lag_bytes"`
	For     float64 `json:"for_seconds"`
	Problem string  `json:"problem,omitempty"`
}

// cluster answers with the shards as they were a few seconds ago.
func (c *console) cluster(*server.Session, *http.Request) (any, *refusal) {
	if c.sharded() == nil {
		return nil, &refusal{status: http.StatusNotFound, Detail: "this server knows of no shards", Hint: "shards: { servers: ... } in firn.yaml"}
	}
	said, heard, err := c.shards.now()
	v := clusterView{newsView: newsOf(heard, err), Every: c.shards.every.Seconds(), Servers: []shardServerView{}, Moves: []shardMoveView{}}
	if said == nil {
		return v, nil
	}
	v.Missing = reason(said.Err)
	for _, s := range said.Servers {
		one := shardServerView{Name: s.Name, Problem: reason(s.Err), Shards: make([]shardView, len(s.Shards))}
		for i, x := range s.Shards {
			one.Shards[i] = shardView{x.Number, x.Bytes, max(x.Rate, -1), x.Closed}
		}
		v.Servers = append(v.Servers, one)
	}
	for _, m := range said.Moves {
		v.Moves = append(v.Moves, shardMoveView{
			From: m.From, To: m.To, Shards: m.Shards, List: m.List, Moved: m.Moved, Phase: m.Phase,
			Rows: m.Rows, Total: m.Total, Lag: m.Lag, For: time.Since(m.Since).Seconds(), Problem: m.Problem,
		})
	}
	return v, nil
}
