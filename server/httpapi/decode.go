package httpapi

import (
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
)

// decode says what is in an id.
func (a *api) decode(w http.ResponseWriter, r *http.Request) *problem {
	session, p := a.enter(r)
	if p != nil {
		return p
	}
	found, err := session.Decode(r.PathValue("id"))
	if err != nil {
		return noID(err)
	}
	return sendJSON(w, struct {
		Readings []server.Decoded `json:"readings"`
	}{found})
}

// A layoutAnswer is what it takes to read the ids of a layout, and to know how long
// and how fast it makes them.
type layoutAnswer struct {
	Name    string        `json:"name"`
	Spec    string        `json:"spec"`
	Epoch   time.Time     `json:"epoch"`
	Tick    int64         `json:"tick_microseconds"`
	End     string        `json:"end"` // it may be later than what time.Time has a JSON for
	Rate    float64       `json:"ids_per_second"`
	Workers int64         `json:"workers"`
	Shards  int64         `json:"shards"`
	Ordered bool          `json:"ordered"`
	Fields  []fieldAnswer `json:"fields"`
}

type fieldAnswer struct {
	Name  string `json:"name"`
	Width int    `json:"width"`
	Shift int    `json:"shift"`
}

// layouts answers with the layouts that are known by name.
func (*api) layouts(w http.ResponseWriter, _ *http.Request) *problem {
	answer := struct {
		Layouts []layoutAnswer `json:"layouts"`
	}{}
	for name, l := range firn.Presets() {
		one := layoutAnswer{
			Name: name, Spec: l.String(), Epoch: l.Epoch(), Tick: l.Unit().Microseconds(),
			End: l.End().UTC().Format(time.RFC3339Nano), Rate: l.Rate(), Workers: l.Workers(), Shards: l.Shards(), Ordered: l.Ordered(),
		}
		for f := range l.Fields() {
			one.Fields = append(one.Fields, fieldAnswer{f.Name, f.Width, f.Shift})
		}
		answer.Layouts = append(answer.Layouts, one)
	}
	return sendJSON(w, answer)
}
