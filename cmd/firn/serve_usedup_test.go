//go:build !windows

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/server"
)

// A server says when a document that is used up for today continues, whoever asks.
func TestServeSaysWhenADocumentContinues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	zone, _ := midday()
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { daily: { kind: document, pattern: 'U{yyyyMMdd}-{1}', zone: "+zone+" } }\n"+
		fmt.Sprintf("tokens: { shop: { hash: \"sha256:%x\", rights: { \"*\": issue } }, ops: { hash: \"sha256:%x\", rights: { \"*\": [issue, admin] } } }\n", server.HashToken("shop"), server.HashToken("ops")))
	s := serve(t, dir)
	if code, text := s.do("POST", "/v1/series/daily/next?n=9", "shop"); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	for token, want := range map[string]string{
		"shop": "ask again at 20", "ops": "the series continues with the next date, from 20",
	} {
		if code, text := s.do("POST", "/v1/series/daily/next", token); code != 500 || !strings.Contains(text, want) || strings.Contains(text, "has to mend") {
			t.Errorf("HTTP, %s: %d %s", token, code, text)
		}
		err := s.redis(token).Do(t.Context(), "FIRN.NEXT", "daily").Err()
		if err == nil || !strings.HasPrefix(err.Error(), "ERR ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Redis, %s: %v", token, err)
		}
	}
	if !s.ready() {
		t.Error("the server is not ready")
	}
	s.stop()
}
