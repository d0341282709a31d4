//go:build !windows

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestServeHours: a document whose counter begins again with each hour, through a server: each client gets
// the hour of the series' zone and the next count, and the server reads its texts.
func TestServeHours(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Kolkata") // whose hours begin at half past
	if err != nil {
		t.Fatal(err)
	}
	hour := func() string { return time.Now().In(zone).Format("Q060102-15-") }
	for tries := 0; ; tries++ {
		s := serveYAML(t, `  queue: { kind: document, pattern: "Q{yyMMdd}-{HH}-{4}", zone: Asia/Kolkata }`)
		began := hour()
		text, err := s.redis("").Do(t.Context(), "FIRN.NEXT", "queue").Text()
		if err != nil {
			t.Fatal(err)
		}
		code, body := s.do("POST", "/v1/series/queue/next?n=2", "")
		var got struct{ Values []string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 {
			t.Fatal(err, code, body)
		}
		_, read := s.get("/v1/decode/" + text)
		s.stop()
		if hour() != began && tries == 0 { // the next hour began meanwhile
			continue
		}
		if all, want := text+" "+strings.Join(got.Values, " "), began+"0001 "+began+"0002 "+began+"0003"; all != want {
			t.Errorf("%s, want %s", all, want)
		}
		if !strings.Contains(read, `"series":"queue"`) || !strings.Contains(read, `"count":"1"`) {
			t.Errorf("%s is read as %s", text, read)
		}
		return
	}
}
