package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/firn-id/firn/internal/golden"
)

// TestGoldenDocument: all that the OpenAPI document of version 0.1.0 names is in today's, with the same types and words:
// routes, parameters, answers, fields and kinds of problems. A later one may have more. Texts for people may change.
func TestGoldenDocument(t *testing.T) {
	var was, now any
	if err := json.Unmarshal(golden.Read(t, "testdata/0.1.0/openapi.json"), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fullDocument, &now); err != nil {
		t.Fatal(err)
	}
	for _, lost := range lostFrom("", was, now) {
		t.Errorf("the document of 0.1.0 has %s, and today's has not: clients of 0.1.0 rely on it. Put it back; or, before 1.0 in a minor version, say in CHANGELOG.md what to use instead, and take it out of the golden document", lost)
	}
}

// forPeople are the keys of texts that may change.
var forPeople = []string{"description", "summary", "title", "hint"}

// samples are the keys of values that only show what an answer looks like.
var samples = []string{"example", "examples"}

// lostFrom are the parts of a document that another one lacks, or has otherwise.
func lostFrom(at string, was, now any) (lost []string) {
	switch a := was.(type) {
	case map[string]any:
		b, _ := now.(map[string]any)
		for key, part := range a {
			if _, isText := part.(string); slices.Contains(forPeople, key) && isText || slices.Contains(samples, key) {
				continue
			}
			if other, ok := b[key]; ok {
				lost = append(lost, lostFrom(at+"/"+key, part, other)...)
			} else {
				lost = append(lost, at+"/"+key)
			}
		}
	case []any:
		b, _ := now.([]any)
		for _, part := range a {
			if !slices.ContainsFunc(b, func(other any) bool { return len(lostFrom(at, part, other)) == 0 }) {
				lost = append(lost, fmt.Sprintf("%s: %v", at, part))
			}
		}
	default:
		if was != now {
			lost = append(lost, fmt.Sprintf("%s: %v", at, was))
		}
	}
	return lost
}
