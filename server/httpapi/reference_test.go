package httpapi_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var updatePage = flag.Bool("update", false, "write docs/reference/http.md anew")

const httpPage = "../../docs/reference/http.md"

// An operation is what the page says of a method of a path.
type operation struct {
	Summary, Description string
	Tags                 []string
	Parameters           []parameter
	Responses            map[string]struct {
		Ref         string `json:"$ref"`
		Description string
		Content     map[string]json.RawMessage
	}
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Required    bool
	Description string
}

// docs/reference/http.md is made from openapi.json. With -update it is written anew.
func TestPageOfRoutes(t *testing.T) {
	var doc struct {
		Info       struct{ Description string }
		Tags       []struct{ Name, Description string }
		Paths      map[string]map[string]operation
		Components struct {
			Parameters map[string]parameter
			Responses  map[string]struct{ Description string }
		}
	}
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# HTTP\n\n%s\n\nThe server has the same as an OpenAPI document: `GET /v1/openapi.json`. Tokens, TLS and limits: [the server](../guides/server.md).\n", doc.Info.Description)
	for _, tag := range doc.Tags {
		fmt.Fprintf(&page, "\n## %s\n", strings.TrimSuffix(tag.Description, "."))
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
				op := doc.Paths[path][method]
				if !slices.Contains(op.Tags, tag.Name) {
					continue
				}
				fmt.Fprintf(&page, "\n### `%s %s`\n\n%s.", strings.ToUpper(method), path, strings.TrimSuffix(op.Summary, "."))
				if op.Description != "" {
					fmt.Fprintf(&page, " %s", op.Description)
				}
				page.WriteString("\n")
				if len(op.Parameters) > 0 {
					page.WriteString("\n| parameter | in | |\n|---|---|---|\n")
					for _, p := range op.Parameters {
						if p.Ref != "" {
							p = doc.Components.Parameters[p.Ref[strings.LastIndex(p.Ref, "/")+1:]]
						}
						fmt.Fprintf(&page, "| `%s` | %s | %s |\n", p.Name, p.In, p.Description)
					}
				}
				page.WriteString("\n| status | |\n|---|---|\n")
				var rows []string // of answers that mean the same, one row
				statuses := map[string][]string{}
				for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
					r := op.Responses[status]
					text := cmp.Or(r.Description, doc.Components.Responses[r.Ref[strings.LastIndex(r.Ref, "/")+1:]].Description)
					if media := slices.Sorted(maps.Keys(r.Content)); len(media) > 0 {
						text += " As " + strings.Join(media, ", ") + "."
					}
					if statuses[text] == nil {
						rows = append(rows, text)
					}
					statuses[text] = append(statuses[text], status)
				}
				for _, text := range rows {
					fmt.Fprintf(&page, "| %s | %s |\n", strings.Join(statuses[text], ", "), text)
				}
			}
		}
	}
	if *updatePage {
		if err := os.WriteFile(httpPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(httpPage)
	if err != nil {
		t.Fatal(err)
	}
	if page.String() != string(want) {
		t.Errorf("%s is not what openapi.json says: go test ./server/httpapi -run TestPageOfRoutes -update", httpPage)
	}
}
