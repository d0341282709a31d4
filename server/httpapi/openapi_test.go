package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/httpapi"
)

const admin, issuer, reader = "an admin's token", "an issuer's token", "a reader's token"

var tokens = []server.Token{
	{Name: "admin", Hash: server.HashToken(admin), Rights: map[string]server.Right{"*": server.Admin | server.Issue | server.Decode}},
	{Name: "issuer", Hash: server.HashToken(issuer), Rights: map[string]server.Right{"photo": server.Issue}},
	{Name: "reader", Hash: server.HashToken(reader), Rights: map[string]server.Right{"*": server.Decode}},
}

// A request is one of the many that together show all that the document says.
type request struct {
	method, path string
	status       int
	media        string
	headers      []string
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

const (
	jsonMedia    = "application/json"
	textMedia    = "text/plain"
	bytesMedia   = "application/octet-stream"
	problemMedia = "application/problem+json"
)

// failures are the requests to issue that fail whatever the route. The name of the
// series, and then the rest of the query, go where %s are.
func failures(method, path string) []request {
	at := func(name, query string) string { return fmt.Sprintf(path, name, query) }
	return []request{
		{method, at("photo", ""), http.StatusUnauthorized, problemMedia, nil},
		{method, at("photo", ""), http.StatusUnauthorized, problemMedia, bearer("nobody's")},
		{method, at("photo", ""), http.StatusUnauthorized, problemMedia, []string{"Authorization", "Basic YTpi"}},
		{method, at("photo", ""), http.StatusForbidden, problemMedia, bearer(reader)},
		{method, at("orders", ""), http.StatusForbidden, problemMedia, bearer(issuer)},
		{method, at("photo", ""), http.StatusForbidden, problemMedia, append(bearer(admin), "Sec-Fetch-Site", "cross-site")},
		{method, at("photo", ""), http.StatusForbidden, problemMedia, append(bearer(admin), "Origin", "http://elsewhere.example")},
		{method, at("fotos", ""), http.StatusNotFound, problemMedia, bearer(admin)},
		{method, at("fo%20to", ""), http.StatusNotFound, problemMedia, bearer(admin)},
		{method, at("ended", ""), http.StatusInternalServerError, problemMedia, bearer(admin)},
		{method, at("closed", ""), http.StatusServiceUnavailable, problemMedia, bearer(admin)},
	}
}

// requests show every route, status, media type and parameter of a server whose
// tokens are those above.
func requests() []request {
	a := bearer(admin)
	next, reserve := "/v1/series/photo/next", "/v1/series/orders/range"
	all := []request{
		{"POST", next, 200, jsonMedia, a},
		{"POST", next + "?n=100", 200, jsonMedia, a},
		{"POST", next, 200, jsonMedia, bearer(issuer)},
		{"POST", next, 200, jsonMedia, append(a, "Accept", "text/plain;q=0.5, application/json")},
		{"POST", next, 200, textMedia, append(a, "Accept", "text/*")},
		{"POST", next + "?n=3", 200, bytesMedia, append(a, "Accept", bytesMedia)},
		{"POST", "/v1/series/hidden/next?n=3", 200, bytesMedia, append(a, "Accept", bytesMedia)},
		{"POST", "/v1/series/invoice/next?n=3", 200, jsonMedia, a},
		{"POST", "/v1/series/invoice/next?n=3", 200, textMedia, append(a, "Accept", textMedia)},
		{"POST", "/v1/series/invoice/next", 406, problemMedia, append(a, "Accept", bytesMedia)},
		{"POST", next, 406, problemMedia, append(a, "Accept", "image/png")},
		{"POST", next, 406, problemMedia, append(a, "Accept", "application/json;q=0")},
		{"POST", reserve, 200, jsonMedia, a},
		{"POST", reserve + "?n=100000", 200, jsonMedia, a},
		{"POST", "/v1/series/photo/range", 409, problemMedia, a},
		{"GET", "/v1/series", 200, jsonMedia, a},
		{"GET", "/v1/series", 200, jsonMedia, bearer(issuer)},
		{"GET", "/v1/series", 401, problemMedia, nil},
		{"GET", "/v1/series/photo", 200, jsonMedia, a},
		{"GET", "/v1/series/photo", 200, jsonMedia, bearer(reader)},
		{"GET", "/v1/series/photo", 401, problemMedia, nil},
		{"GET", "/v1/series/orders", 403, problemMedia, bearer(issuer)},
		{"GET", "/v1/series/fotos", 404, problemMedia, a},
		{"GET", "/v1/decode/175928847299117063", 200, jsonMedia, a},
		{"GET", "/v1/decode/175928847299117063", 401, problemMedia, nil},
		{"GET", "/v1/decode/175928847299117063", 403, problemMedia, bearer(issuer)},
		{"GET", "/v1/decode/photo", 422, problemMedia, a},
		{"GET", "/v1/decode/0", 422, problemMedia, a},
		{"GET", "/v1/layouts", 200, jsonMedia, nil},
		{"GET", "/v1/openapi.json", 200, jsonMedia, nil},
		{"GET", "/healthz", 200, textMedia, nil},
		{"GET", "/readyz", 503, problemMedia, nil},
		{"GET", "/readyz", 503, problemMedia, a},
		{"GET", "/metrics", 200, textMedia, a},
		{"GET", "/metrics", 401, problemMedia, nil},
		{"GET", "/metrics", 403, problemMedia, bearer(reader)},
		{"GET", "/api/segment/get/orders", 200, textMedia, a},
		{"GET", "/api/snowflake/get/photo", 200, textMedia, a},
		{"GET", "/api/snowflake/get/invoice", 409, problemMedia, a},
		{"POST", "/v1/series/full:1/next", 409, problemMedia, a},
		{"GET", "/api/segment/get/invoice", 409, problemMedia, a},
	}
	for _, path := range []string{"/v1/series", "/v1/series/photo", "/v1/decode/1", "/v1/layouts", "/v1/openapi.json", "/healthz", "/readyz", "/metrics"} {
		all = append(all, request{"GET", path, 403, problemMedia, append(a, "Sec-Fetch-Site", "cross-site")})
	}
	for _, bad := range []string{"n=0", "n=-1", "n=10001", "n=x", "n=1&n=2", "n=01", "n=%zz", "count=3", "n=99999999999999999999"} {
		all = append(all, request{"POST", next + "?" + bad, 400, problemMedia, a})
	}
	all = append(all, request{"POST", reserve + "?n=1000001", 400, problemMedia, a})
	for _, route := range []string{"/v1/series/%s/next%s", "/v1/series/%s/range%s"} {
		all = append(all, failures("POST", route)...)
	}
	all = append(all, failures("GET", "/api/segment/get/%s%s")...)
	all = append(all, request{"GET", "/api/snowflake/get/orders", 409, problemMedia, a})
	for _, f := range failures("GET", "/api/snowflake/get/%s%s") {
		f.path = strings.NewReplacer("/ended", "/ended-ids", "/closed", "/closed-ids").Replace(f.path)
		all = append(all, f)
	}
	return append(all, tinyidRequests()...)
}

func tinyidRequests() (all []request) {
	for _, method := range []string{"GET", "POST"} {
		for path, media := range map[string][2]string{
			"/tinyid/id/nextId":       {jsonMedia, jsonMedia},
			"/tinyid/id/nextIdSimple": {textMedia, problemMedia},
		} {
			q := path + "?bizType="
			all = append(
				all,
				request{method, q + "orders", 200, media[0], bearer(admin)},
				request{method, q + "orders&batchSize=3&token=" + url.QueryEscape(admin), 200, media[0], nil},
				request{method, q + "orders&token=wrong", 401, media[1], nil},
				request{method, q + "orders&batchSize=x", 400, media[1], bearer(admin)},
				request{method, q + "orders&batchSize=100000", 400, media[1], bearer(admin)},
				request{method, q + "orders&size=1", 400, media[1], bearer(admin)},
				request{method, q + "invoice", 409, media[1], bearer(admin)},
			)
			for _, f := range failures(method, path+"?bizType=%s%s") {
				f.media = media[1]
				all = append(all, f)
			}
		}
	}
	return all
}

// TestOpenAPI holds the document against the routes: what they answer is in it and
// as it says, and everything in it is seen.
func TestOpenAPI(t *testing.T) {
	all := []*server.Series{
		orders(t, "orders", nil), invoices(t, "invoice"), hidden(t, "hidden"),
		ended(t, "ended"), closed(t, "closed"), photo(t), full("full:*"), idless("ended-ids", false), idless("closed-ids", true),
	}
	guarded := listen(t, handler(t, newServer(t, &server.Options{Tokens: tokens}, all...), &httpapi.Options{Foreign: true}))
	open := listen(t, handler(t, newServer(t, nil, photo(t)), &httpapi.Options{Foreign: true}))
	d := readDocument(t, ask(t, "GET", guarded+"/v1/openapi.json").body)
	for _, r := range requests() {
		got := ask(t, r.method, guarded+r.path, r.headers...)
		d.check(t, r, got)
	}
	ready := request{"GET", "/readyz", 200, textMedia, nil}
	d.check(t, ready, ask(t, "GET", open+"/readyz"))
	d.checkSeen(t)
}

// An apiDocument is the OpenAPI document, and what of it was seen.
type apiDocument struct {
	raw     map[string]any
	mux     *http.ServeMux // of its paths
	schemas *jsonschema.Compiler
	seen    map[string]bool
}

const documentURL = "firn:///openapi.json"

func readDocument(t *testing.T, text []byte) *apiDocument {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	d := &apiDocument{raw: parsed.(map[string]any), mux: http.NewServeMux(), schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	d.schemas.AssertFormat()
	if err := d.schemas.AddResource(documentURL, parsed); err != nil {
		t.Fatal(err)
	}
	for path := range d.at("paths") {
		d.mux.HandleFunc(path, func(http.ResponseWriter, *http.Request) {})
	}
	return d
}

// at is the object at some keys, one below the other; references are followed.
func (d *apiDocument) at(keys ...string) map[string]any {
	return d.below(d.raw, keys...)
}

func (d *apiDocument) below(from map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		from, _ = from[k].(map[string]any)
		if ref, ok := from["$ref"].(string); ok {
			from = d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return from
}

// check holds one answer against the document.
func (d *apiDocument) check(t *testing.T, r request, got answer) {
	t.Helper()
	where := r.method + " " + r.path
	media, _, err := mime.ParseMediaType(got.header.Get("Content-Type"))
	if err != nil || got.status != r.status || media != r.media {
		t.Errorf("%s: %s %.300s, want %d %s", where, media, got, r.status, r.media)
		return
	}
	target, err := url.Parse(r.path)
	if err != nil {
		t.Fatal(err)
	}
	_, path := d.mux.Handler(&http.Request{Method: r.method, URL: target, Host: "x"})
	method := strings.ToLower(r.method)
	response := d.at("paths", path, method, "responses", fmt.Sprint(got.status))
	content := d.below(response, "content", media)
	if content == nil {
		t.Errorf("%s: the document has no %d %s of %s", where, got.status, media, path)
		return
	}
	d.seen[key(path, method, fmt.Sprint(got.status), media)] = true
	for name := range target.Query() {
		d.seen[key(path, method, "parameter", name)] = true
	}
	for name := range d.below(response, "headers") {
		schema := d.below(response, "headers", name, "schema")
		d.validate(t, where+": header "+name, schema, got.header.Get(name))
	}
	d.validateBody(t, where, media, d.below(content, "schema"), got)
}

func (d *apiDocument) validateBody(t *testing.T, where, media string, schema map[string]any, got answer) {
	t.Helper()
	var body any = string(got.body)
	if strings.HasSuffix(media, "json") {
		var err error
		if body, err = jsonschema.UnmarshalJSON(bytes.NewReader(got.body)); err != nil {
			t.Errorf("%s: %v in %s", where, err, got)
			return
		}
	}
	d.validate(t, where, schema, body)
	if media != problemMedia {
		return
	}
	name := strings.TrimPrefix(body.(map[string]any)["type"].(string), "/v1/openapi.json#/x-problems/")
	entry := d.at("x-problems", name)
	if fmt.Sprint(entry["status"]) != fmt.Sprint(got.status) || entry["title"] != body.(map[string]any)["title"] {
		t.Errorf("%s: the document has %v for problem %s: %s", where, entry, name, got)
	}
	d.seen[key("x-problems", name)] = true
}

// validate holds a value against a schema, which may refer to the document.
func (d *apiDocument) validate(t *testing.T, where string, schema map[string]any, value any) {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	at := documentURL + "/" + url.PathEscape(string(text))
	if !d.seen[at] {
		d.seen[at] = true
		parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.ReplaceAll(string(text), `"#/`, `"`+documentURL+`#/`)))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.schemas.AddResource(at, parsed); err != nil {
			t.Fatal(err)
		}
	}
	compiled, err := d.schemas.Compile(at)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Errorf("%s: %v in %.300v", where, err, value)
	}
}

func key(parts ...string) string { return strings.Join(parts, " ") }

// checkSeen reports what is in the document and was not seen.
func (d *apiDocument) checkSeen(t *testing.T) {
	t.Helper()
	for path := range d.at("paths") {
		for method := range d.at("paths", path) {
			operation := d.at("paths", path, method)
			inPath := 0
			params, _ := operation["parameters"].([]any)
			for i := range params {
				p := params[i].(map[string]any)
				if ref, ok := p["$ref"].(string); ok {
					p = d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
				}
				name := p["name"].(string)
				if p["in"] == "path" && strings.Contains(path, "{"+name+"}") {
					inPath++
				} else if !d.seen[key(path, method, "parameter", name)] {
					t.Errorf("%s %s: parameter %s was never used", method, path, name)
				}
			}
			if inPath != strings.Count(path, "{") {
				t.Errorf("%s %s: %d parameters in the path are explained", method, path, inPath)
			}
			for status := range d.below(operation, "responses") {
				for media := range d.below(operation, "responses", status, "content") {
					if !d.seen[key(path, method, status, media)] {
						t.Errorf("%s %s: %s %s was never seen", method, path, status, media)
					}
				}
			}
		}
	}
	kinds := d.at("x-problems")
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		// These are of no route: TestNoRoute has them.
		if !d.seen[key("x-problems", name)] && name != "no-route" && name != "method-not-allowed" {
			t.Errorf("problem %s was never seen", name)
		}
	}
	if len(kinds) == 0 {
		t.Error("the document explains no problems")
	}
}
