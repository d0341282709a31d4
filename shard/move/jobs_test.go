package move_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// TestSplit: what is under way goes on as it is, and the rest begins in parts.
func TestSplit(t *testing.T) {
	l := move.Job{Source: topology.Server{Name: "a"}, Target: topology.Server{Name: "b"}}
	for n := range int64(67) {
		l.Shards = append(l.Shards, n)
		if n != 0 && n != 50 {
			l.New = append(l.New, n)
		}
	}
	var got []string
	for _, p := range move.Split([]move.Job{l}) {
		got = append(got, fmt.Sprintf("%s of %d", phrase.Numbers(p.Shards), len(p.New)))
	}
	if text := strings.Join(got, "; "); text != "0,50 of 0; 1-32 of 32; 33-49,51-65 of 32; 66 of 1" {
		t.Error(text)
	}
}
