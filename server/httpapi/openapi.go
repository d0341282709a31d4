package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
)

//go:embed openapi.json
var fullDocument []byte

// openAPI answers with the description of the routes that there are.
func (a *api) openAPI(w http.ResponseWriter, _ *http.Request) *problem {
	send(w, jsonType, a.document)
	return nil
}

// document is the OpenAPI document without the paths that are switched off.
func document(all []route) ([]byte, error) {
	var top, paths map[string]json.RawMessage
	if err := json.Unmarshal(fullDocument, &top); err != nil {
		return nil, fmt.Errorf("httpapi: openapi.json: %w", err)
	}
	if err := json.Unmarshal(top["paths"], &paths); err != nil {
		return nil, fmt.Errorf("httpapi: openapi.json: paths: %w", err)
	}
	there := map[string]json.RawMessage{}
	for _, r := range all {
		there[r.path] = paths[r.path]
	}
	var err error
	if top["paths"], err = json.Marshal(there); err != nil {
		return nil, err
	}
	return json.Marshal(top)
}
