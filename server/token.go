package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/template"
)

// A Right is what a token allows with a series: any of Decode, Issue and Admin,
// combined with |.
type Right uint8

const (
	Decode Right = 1 << iota // read ids
	Issue                    // draw from it
	Admin                    // see its state, and the metrics
)

var rightNames = []string{"decode", "issue", "admin"}

func (r Right) String() string {
	var has []string
	for i, name := range rightNames {
		if r&(1<<i) != 0 {
			has = append(has, name)
		}
	}
	return strings.Join(has, ", ")
}

// ParseRight reads the name of one right: decode, issue or admin.
func ParseRight(name string) (Right, error) {
	for i, have := range rightNames {
		if name == have {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("server: there is no right %.50q; there are %s", name, strings.Join(rightNames, ", "))
}

// A Token is a secret that some program has, and what that program may do.
type Token struct {
	Name   string           // for people
	Hash   [32]byte         // HashToken of the secret
	Rights map[string]Right // by series, or by a prefix of names such as bill:*; those of "*" are for all others

	counts *counts // what was asked with it; of a server's
}

// HashToken returns the SHA-256 of a token. It is enough for a token that was drawn
// at random, and not for a word that somebody thought of.
func HashToken(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// rights of the token with a series: those of its name, else of the longest prefix; "*" stands for those that are not named, and
// for the server itself.
func (t *Token) rights(series string) Right {
	if r, ok := t.Rights[series]; ok {
		return r
	}
	for _, prefix := range template.Of(series) { // the longest first
		if r, ok := t.Rights[prefix]; ok {
			return r
		}
	}
	return t.Rights["*"]
}

func checkTokens(tokens []Token) ([]Token, error) {
	seen := map[[32]byte]string{}
	for i, t := range tokens {
		if t.Name == "" {
			return nil, fmt.Errorf("server: token %d has no name", i+1)
		}
		if other, ok := seen[t.Hash]; ok {
			return nil, fmt.Errorf("server: tokens %s and %s are the same", other, t.Name)
		}
		seen[t.Hash] = t.Name
		for series := range t.Rights {
			if series == "*" || template.Is(series) {
				continue
			}
			if err := CheckName(series); err != nil {
				return nil, fmt.Errorf("token %s: %w", t.Name, err)
			}
		}
	}
	return tokens, nil
}

// find returns the token with that hash, or nil. How long it takes does not depend
// on which one it is, or whether it is one.
func (w *world) find(hash [32]byte) *Token {
	at := -1
	for i := range w.tokens {
		same := subtle.ConstantTimeCompare(w.tokens[i].Hash[:], hash[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if at < 0 {
		return nil
	}
	return &w.tokens[at]
}
