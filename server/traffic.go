package server

import (
	"slices"
	"time"
)

// Traffic is what a listener counts. Package server takes no connections: who does so hands this
// to the metrics and to the console.
type Traffic struct {
	Listener string `json:"listener"` // resp, http or admin
	Open     int64  `json:"open"`     // connections
	Accepted uint64 `json:"accepted"` // connections, those that were refused then among them
	Refused  uint64 `json:"refused"`  // connections: there were as many as there may be
	Dropped  uint64 `json:"dropped"`  // connections, for what they sent or did not read
}

// TokenCounts returns what was asked with each token of the server, by its name.
func (s *Server) TokenCounts() map[string]Counts {
	all := map[string]Counts{}
	for _, t := range s.now.Load().tokens {
		all[t.Name] = t.counts.sum()
	}
	return all
}

// UnknownTokens returns how often a token was shown that the server does not have.
func (s *Server) UnknownTokens() uint64 { return s.unknown.Load() }

// count counts a draw, of the series and of the token that it came with.
func (v *view) count(s *Series, requests, values int, took time.Duration, err error) {
	s.counts.Load().add(requests, values, took, err)
	if v.token != nil {
		v.token.counts.add(requests, values, took, err)
	}
}

// counted returns tokens that count, and go on where those of their names have left off.
func counted(tokens []Token, before *world) []Token {
	tokens = slices.Clone(tokens)
	for i := range tokens {
		t := &tokens[i]
		t.counts = new(counts)
		if before == nil {
			continue
		}
		if at := slices.IndexFunc(before.tokens, func(old Token) bool { return old.Name == t.Name }); at >= 0 {
			t.counts = before.tokens[at].counts
		}
	}
	return tokens
}
