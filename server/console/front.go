package console

import (
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/server"
)

// A frontView is what is of the whole process and of no series: who comes, and whether the settings
// that were read last are in force.
type frontView struct {
	Listeners []server.Traffic `json:"listeners"`
	Tokens    []tokenView      `json:"tokens"`
	Unknown   uint64           `json:"unknown_tokens"` // how often one was shown that the server does not have
	Reload    *reloadView      `json:"reload,omitempty"`
}

type tokenView struct {
	Name     string `json:"name"`
	Requests uint64 `json:"requests"`
	Values   uint64 `json:"values"`
}

type reloadView struct {
	At      time.Time `json:"at"`
	Problem string    `json:"problem,omitempty"` // why it was refused; empty: the settings are in force
}

// front says who comes.
func (c *console) front() frontView {
	v := frontView{Listeners: []server.Traffic{}, Tokens: []tokenView{}, Unknown: c.server.UnknownTokens()}
	if c.traffic != nil {
		v.Listeners = c.traffic()
	}
	for name, n := range c.server.TokenCounts() {
		v.Tokens = append(v.Tokens, tokenView{name, n.Requests, n.Values})
	}
	slices.SortFunc(v.Tokens, func(a, b tokenView) int { return strings.Compare(a.Name, b.Name) })
	if c.reloaded != nil {
		at, err := c.reloaded()
		v.Reload = &reloadView{At: at.UTC(), Problem: reason(err)}
	}
	return v
}
