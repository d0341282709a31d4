package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// buffered is how large an answer may be that net/http writes in one piece, with
// its length, by itself.
const buffered = 2 << 10

// send writes an answer. Whether it arrives nobody can know: an error of writing is
// the client's to notice. After one, HTTP/2 may still read the body.
func send(w http.ResponseWriter, kind []string, body []byte) error {
	h := w.Header()
	h["Content-Type"] = kind
	if len(body) > buffered {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	_, err := w.Write(body)
	return err
}

// sendJSON writes a value that always has a JSON.
func sendJSON(w http.ResponseWriter, value any) *problem {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	send(w, jsonType, append(body, '\n'))
	return nil
}

// appendText appends a text as JSON.
func appendText(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic(err)
			}
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

func list(names []string) string { return strings.Join(names, ", ") }
