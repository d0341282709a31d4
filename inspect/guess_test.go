package inspect

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

var guessedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// guessNames returns the presets in which id makes sense, in order.
func guessNames(id firn.ID) []string {
	var names []string
	for _, g := range NewGuesser(guessedAt).Append(nil, id) {
		names = append(names, g.Name())
	}
	return names
}

func TestGuesses(t *testing.T) {
	for _, tt := range []struct {
		what   string
		id     firn.ID
		layout string
		rank   int // how far down it may be; 1 is first
	}{
		{"of the documentation, worker 1, process 0, seq 7", 175928847299117063, "discord", 1},
		{"a post of 2022", 1541815603606036480, "twitter", 3},
		{"a photo of 2022, far above what others have reached", 2984513254837613629, "instagram", 1},
		{"16 days after the epoch, where all are young", 11637205501278089, "instagram", 4},
		{"datacenter 2, worker 3", 844272577781444608, "classic", 3},
		{"10 days after the epoch, worker 15", 226492416061441, "sid", 3},
		{"a status of 2023", 111000000000012345, "mastodon", 2},
		{"worker 0 this morning", mustEncode(firn.Default(), -3*time.Hour, 0, 1234), "firn", 1},
		{"worker 9 a year ago", mustEncode(firn.Default(), -365*24*time.Hour, 9, 77), "firn", 1},
		{"an address as its machine", mustEncode(firn.MustLayout("sonyflake"), -24*time.Hour, 0xa817, 0), "sonyflake", 1},
		{"a row of shard 1001 yesterday", 249141657600512519, "sharded", 3},
		{"in a browser", mustEncode(firn.JS53(), -24*time.Hour, 3, 0), "js53", 1},
	} {
		names := guessNames(tt.id)
		if i := slices.Index(names, tt.layout); i < 0 || i >= tt.rank {
			t.Errorf("%s, %d: %s is not among the first %d of %v", tt.what, tt.id, tt.layout, tt.rank, names)
		}
	}
}

func mustEncode(l firn.Layout, ago time.Duration, worker, seq int64) firn.ID {
	id, err := l.Encode(firn.Parts{Time: guessedAt.Add(ago), Worker: worker, Seq: seq})
	if err != nil {
		panic(err)
	}
	return id
}

// Each known answer in a preset makes sense in it, and reads as published.
func TestGuessesVectors(t *testing.T) {
	text, err := os.ReadFile("../testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Layout, ID string
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		id, err := firn.ParseID(v.ID)
		if err != nil {
			t.Fatal(err)
		}
		l, err := firn.ParseLayout(v.Layout)
		if err != nil {
			t.Fatal(err)
		}
		if l.Name() == "" {
			continue
		}
		if names := guessNames(id); !slices.Contains(names[:min(4, len(names))], v.Layout) {
			t.Errorf("%s: %s is not among the first of %v", v.ID, v.Layout, names)
		}
	}
}

func TestGuessesNonsense(t *testing.T) {
	for _, id := range []firn.ID{1, 42, 1000000, 1 << 31} {
		if names := guessNames(id); len(names) > 0 {
			t.Errorf("%d makes sense in %v", id, names)
		}
	}
	// Half an hour old is fine, and a bit ahead; next week is not.
	for _, tt := range []struct {
		ago  time.Duration
		want bool
	}{{30 * time.Minute, true}, {-time.Hour, true}, {-7 * 24 * time.Hour, false}} {
		names := guessNames(mustEncode(firn.Default(), -tt.ago, 0, 0))
		if got := slices.Contains(names, "firn"); got != tt.want {
			t.Errorf("an id of %s ago: plausible is %v, want %v", tt.ago, got, tt.want)
		}
	}
}

// Every preset has its habit, and its young ids are found whatever the worker.
func TestGuessesEveryPreset(t *testing.T) {
	for name, l := range firn.Presets() {
		h, ok := habits[name]
		if !ok {
			t.Errorf("preset %s has no habit", name)
		}
		if h.even != "" {
			if _, ok := l.Field(h.even); !ok {
				t.Errorf("preset %s has no field %s", name, h.even)
			}
		}
		if !l.End().After(guessedAt) {
			continue
		}
		id := mustEncode(l, -48*time.Hour, l.Workers()-1, 0)
		if names := guessNames(id); !slices.Contains(names, name) {
			t.Errorf("%d of %s is taken for %v", id, name, names)
		}
	}
}

// Twitter's layout and that of bwmarrin/snowflake read the same bits. Both guesses say so.
func TestSameBits(t *testing.T) {
	const id = firn.ID(1541815603604639749)
	want := map[string][3]string{
		"twitter": {"leaf", "leaf (bwmarrin/snowflake): worker=37", "2022-06-28T16:07:40.105Z  datacenter=1 worker=5 seq=5  same bits as leaf (bwmarrin/snowflake): worker=37"},
		"leaf":    {"twitter", "twitter: datacenter=1 worker=5", "2022-06-28T16:07:40.105Z  worker=37 seq=5  same bits as twitter: datacenter=1 worker=5"},
	}
	found := 0
	for _, g := range NewGuesser(guessedAt).Append(nil, id) {
		var r Reading
		if err := g.Decode(id, &r); err != nil {
			t.Fatal(err)
		}
		layout, text := r.SameBits()
		w, ok := want[g.Name()]
		if layout != w[0] || text != w[1] {
			t.Errorf("%s: %q, %q, want %q", g.Name(), layout, text, w)
		}
		if got := string(r.AppendText(nil)); ok && got != w[2] {
			t.Errorf("%s: %q, want %q", g.Name(), got, w[2])
		}
		if ok {
			found++
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d guesses", found, len(want))
	}
	var r Reading // in a layout that is known, nothing is left to say
	if err := NewDecoder(firn.MustLayout("leaf")).Decode(id, &r); err != nil {
		t.Fatal(err)
	}
	if layout, text := r.SameBits(); layout != "" || text != "" {
		t.Errorf("of a known layout: %q, %q", layout, text)
	}
}
