package resp_test

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/resp"
)

// TestCommands goes through one connection from top to bottom.
func TestCommands(t *testing.T) {
	w := serve(t, nil, &resp.Options{Version: "1.2.3"}, numbers(t, "third", &sequence.Options{Increment: 3}))
	p := dial(t, w)
	for _, tt := range []struct{ command, want string }{ // want is a pattern
		{"INCR orders", ":1"},
		{"incr orders", ":2"},
		{"INCRBY orders 10", ":12"},
		{"INCRBY orders 1", ":13"},
		{"FIRN.NEXT orders", `"14"`},
		{"FIRN.NEXT orders 1", `["15"]`},
		{"firn.next orders 3", `["16" "17" "18"]`},
		{"FIRN.RANGE orders 10", `["19" "10" "1"]`},
		{"INCR orders", ":29"},
		{"INCRBY orders 0", "-LIMIT 1000000 is the most and 1 the least at a time: n is 0"},
		{"INCRBY orders -5", "-LIMIT 1000000 is the most and 1 the least at a time: n is -5"},
		{"INCRBY orders 1000001", "-LIMIT 1000000 is the most and 1 the least at a time: n is 1000001"},
		{"INCRBY orders x", "-ERR value is not an integer or out of range"},
		{"INCRBY orders 99999999999999999999", "-ERR value is not an integer or out of range"},
		{"INCRBY orders", "-ERR wrong number of arguments for 'incrby' command"},
		{"FIRN.NEXT orders 10001", "-LIMIT 10000 is the most and 1 the least at a time: n is 10001"},
		{"FIRN.NEXT orders 0", "-LIMIT 10000 is the most and 1 the least at a time: n is 0"},
		{"FIRN.NEXT orders 1 2", "-ERR wrong number of arguments for 'firn.next' command"},
		{"FIRN.NEXT", "-ERR wrong number of arguments for 'firn.next' command"},
		{"FIRN.RANGE orders 0", "-LIMIT 1000000 is the most and 1 the least at a time: n is 0"},
		{"INCR orders", ":30"}, // nothing of that has drawn

		{"INCR photo", `:[0-9]{18}`},
		{"INCRBY photo 1", `:[0-9]{18}`},
		{"INCRBY photo 2", "-WRONGTYPE the numbers of series photo do not follow one another: FIRN.NEXT photo 2 gives as many"},
		{"FIRN.NEXT photo", `"[0-9]{18}"`},
		{"FIRN.NEXT photo 2", `["[0-9]{18}" "[0-9]{18}"]`},
		{"FIRN.RANGE photo 2", "-WRONGTYPE the series has no ranges; hint: ask for n values instead"},
		{"FIRN.RANGE third 4", `["1" "4" "3"]`},
		{"INCRBY third 4", "-WRONGTYPE the numbers of series third are 3 apart: FIRN.RANGE third 4 says which"},
		{"INCR third", ":13"},

		{"INCR phto", "-ERR there is no series phto; is it photo?"},
		{"INCRBY phto 2", "-ERR there is no series phto; is it photo?"},
		{"FIRN.NEXT nothing 2", "-ERR there is no series nothing"},
		{"INCR !", `-ERR series "!": a name has up to 64 of .*`},
		{"GET photo", "-ERR GET is not for ids: reading a series .*"},
		{"SET photo 1", "-ERR SET is not for ids: .*"},
		{"DEL photo", "-ERR DEL is not for ids: .*"},
		{"LPUSH a b", "-ERR unknown command 'LPUSH'; COMMAND LIST has those there are"},

		{"FIRN.DECODE 1", `[["id" "1" "layout" "firn" "time" "2025-01-01T00:00:00.000Z" "unix_ms" "1735689600000" "worker" "0" "seq" "1"]]`},
		{"FIRN.DECODE 0", "-ERR .*zero is never issued.*"},
		{"FIRN.DECODE 9223372036854775807", `[["id" "9223372036854775807" "layout" "uidgenerator" "time" "2024-11-20T13:24:15Z" "unix_ms" "1732109055000" "worker" "4194303" "seq" "8191"]]`},

		{"PING", "+PONG"},
		{"PING hello", `"hello"`},
		{"ECHO hello", `"hello"`},
		{"SELECT 0", "+OK"},
		{"SELECT 1", "-ERR DB index is out of range.*"},
		{"CLIENT GETNAME", "nil"},
		{"CLIENT SETNAME web-1", "+OK"},
		{"CLIENT GETNAME", `"web-1"`},
		{"CLIENT SETINFO LIB-NAME redis-py", "+OK"},
		{"CLIENT SETINFO LIB-VER 5.0.1", "+OK"},
		{"CLIENT SETINFO LIB-FOO 5", "-ERR Unrecognized option 'LIB-FOO'"},
		{"CLIENT ID", ":1"},
		{"CLIENT INFO", `"id=1 addr=127.0.0.1:[0-9]+ laddr=127.0.0.1:[0-9]+ name=web-1 age=[0-9]+ db=0 user= resp=2 lib-name=redis-py lib-ver=5.0.1\\n"`},
		{"CLIENT LIST", `"id=1 .*"`},
		{"CLIENT NO-EVICT on", "+OK"},
		{"CLIENT KILL 1", "-ERR unknown subcommand .*"},
		{"CONFIG GET save", `["save" ""]`},
		{"CONFIG GET appendonly", `["appendonly" "no"]`},
		{"CONFIG GET max*", `["maxclients" "10000"]`},
		{"CONFIG GET nosuch", `[]`},
		{"CONFIG SET save 1", "-ERR CONFIG GET is all there is.*"},
		{"INFO", `".*redis_version:7.*firn_version:1.2.3.*loading:0.*role:master.*"`},
		{"COMMAND COUNT", ":[0-9]+"},
		{"COMMAND INFO incr nosuch", `[["incr" :2 [+fast +write] :1 :1 :1 [+@string] [] [] []] nil]`},
		{"COMMAND DOCS incr", `["incr" ["summary" "The next id .*" "since" "0.1.0" "group" "string"]]`},
		{"AUTH x", "-ERR AUTH called without any password configured.*"},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO 2 FOO", "-ERR Syntax error in HELLO option 'FOO'"},
		{"HELLO 3 SETNAME web-2", `{"server" "firn" "version" "1.2.3" "proto" :3 "id" :1 "mode" "standalone" "role" "master" "modules" []}`},
		{"CLIENT GETNAME", `"web-2"`},
		{"CONFIG GET save", `{"save" ""}`},
		{"FIRN.DECODE 9223372036854775807", `[{"id" "9223372036854775807" "layout" "uidgenerator" "time" "2024-11-20T13:24:15Z" "unix_ms" "1732109055000" "worker" "4194303" "seq" "8191"}]`},
		{"COMMAND INFO nosuch", `[_]`},
		{"RESET", "+RESET"},
		{"CLIENT GETNAME", "nil"},
		{"QUIT", "+OK"},
	} {
		got := p.do(strings.Fields(tt.command)...)
		pattern := strings.NewReplacer("[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "?", `\?`, "|", `\|`, "+", `\+`).Replace(tt.want)
		pattern = strings.NewReplacer(`\[0-9\]\+`, "[0-9]+", `\[0-9\]\{18\}`, "[0-9]{18}").Replace(pattern)
		if ok, err := regexp.MatchString("(?s)^"+pattern+"$", got); err != nil || !ok {
			t.Errorf("%s: %s, want %s (%v)", tt.command, got, tt.want, err)
		}
	}
	p.closed()
}

// What COMMAND says there is, is there, with that many arguments.
func TestCommandTable(t *testing.T) {
	p := dial(t, serve(t, nil, nil))
	for _, line := range regexp.MustCompile(`\["([a-z.]+)" :(-?[0-9]+) `).FindAllStringSubmatch(p.do("COMMAND"), -1) {
		name := line[1]
		arity, _ := strconv.Atoi(line[2])
		if name == "quit" || name == "command" {
			continue
		}
		args := []string{name}
		if arity < 0 {
			arity = -arity
		}
		if arity > 1 {
			if got := p.do(args...); !strings.HasPrefix(got, "-ERR wrong number of arguments for '"+name) {
				t.Errorf("%s alone: %s", name, got)
			}
		}
		for len(args) < arity {
			args = append(args, "1")
		}
		if got := p.do(args...); strings.Contains(got, "unknown command") || strings.Contains(got, "wrong number") && name != "client" {
			t.Errorf("%v: %s", args, got)
		}
	}
}

func TestInline(t *testing.T) {
	p := dial(t, serve(t, nil, nil))
	p.send("PING\r\n\r\n  \n  incr   orders \r\nPING\n")
	for _, want := range []string{"+PONG", ":1", "+PONG"} {
		if got := p.answer(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestReplyOff(t *testing.T) {
	p := dial(t, serve(t, nil, nil))
	p.send("CLIENT REPLY OFF\r\nINCR orders\r\nPING\r\nINCR nosuch\r\nINCR\r\nnosuch\r\nCLIENT REPLY ON\r\n")
	p.send("INCR orders\r\nCLIENT REPLY SKIP\r\nINCR orders\r\nINCR orders\r\n")
	for _, want := range []string{"+OK", ":2", ":4"} {
		if got := p.answer(); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// A browser that is made to send a form to this port does no harm.
func TestHTTP(t *testing.T) {
	p := dial(t, serve(t, nil, nil))
	p.send("POST / HTTP/1.1\r\nHost: x\r\n\r\nINCR orders\r\n")
	if got := p.answer(); got != "-ERR this is not HTTP" {
		t.Error(got)
	}
	p.closed()
	if got := dial(t, serve(t, nil, nil)).do("INCR", "orders"); got != ":1" {
		t.Error(got)
	}
}

// Integers above 2^53-1 are rounded in JavaScript: who is one gets strings.
func TestJavaScript(t *testing.T) {
	const last = 1<<53 - 1
	for _, tt := range []struct {
		name   string
		before []string
		strict bool // Options.Strings
		safe   bool
	}{
		{name: "nobody in particular"},
		{name: "redis-py", before: []string{"CLIENT SETINFO LIB-NAME redis-py"}},
		{name: "a name that begins alike", before: []string{"CLIENT SETINFO LIB-NAME ioredisx"}},
		{name: "SETNAME says nothing of the library", before: []string{"CLIENT SETNAME ioredis"}},
		{name: "node-redis", before: []string{"HELLO 3", "CLIENT SETINFO LIB-NAME node-redis"}, safe: true},
		{name: "node-redis with a tag", before: []string{"CLIENT SETINFO lib-name node-redis(app)"}, safe: true},
		{name: "ioredis", before: []string{"CLIENT SETINFO LIB-NAME ioredis"}, safe: true},
		{name: "who asks", before: []string{"FIRN.OPTION STRINGS"}, safe: true},
		{name: "who asks no more", before: []string{"FIRN.OPTION STRINGS ON", "FIRN.OPTION strings off"}},
		{name: "after RESET", before: []string{"FIRN.OPTION STRINGS", "RESET"}},
		{name: "the listener", strict: true, safe: true},
		{name: "the listener after RESET", before: []string{"RESET"}, strict: true, safe: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(t, nil, &resp.Options{Strings: tt.strict}, numbers(t, "big", &sequence.Options{First: last - 2}))
			p := dial(t, w)
			for _, line := range tt.before {
				if got := p.do(strings.Fields(line)...); strings.HasPrefix(got, "-") {
					t.Fatalf("%s: %s", line, got)
				}
			}
			big := func(n int64) string {
				if tt.safe && n > last {
					return fmt.Sprintf("%q", firn.ID(n).String())
				}
				return fmt.Sprintf(":%d", n)
			}
			for n := int64(last - 2); n <= last+1; n++ {
				if got := p.do("INCR", "big"); got != big(n) {
					t.Errorf("INCR: %s, want %s", got, big(n))
				}
			}
			if got := p.do("INCRBY", "big", "10"); got != big(last+11) {
				t.Errorf("INCRBY: %s, want %s", got, big(last+11))
			}
			if got, want := p.do("FIRN.NEXT", "big"), fmt.Sprintf("%q", firn.ID(last+12).String()); got != want {
				t.Errorf("FIRN.NEXT: %s, want %s", got, want)
			}
			if got, want := p.do("FIRN.RANGE", "big", "2"), fmt.Sprintf(`["%d" "2" "1"]`, last+13); got != want {
				t.Errorf("FIRN.RANGE: %s, want %s", got, want)
			}
		})
	}
}

func TestAuth(t *testing.T) {
	w := serve(t, &server.Options{Tokens: []server.Token{
		{Name: "web", Hash: server.HashToken("secret"), Rights: map[string]server.Right{"orders": server.Issue}},
	}}, nil)
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string // beginnings
	}{
		{
			"nobody",
			[]string{"PING", "INCR orders", "INFO", "HELLO 3", "COMMAND", "CLIENT ID"},
			[]string{"+PONG", "-NOAUTH", "-NOAUTH", "-NOAUTH", "-NOAUTH", "-NOAUTH"},
		},
		{
			"a token",
			[]string{"AUTH secret", "INCR orders", "INCR photo", "INCR nosuch", "FIRN.DECODE 1"},
			[]string{"+OK", ":", "-NOPERM", "-NOPERM", "-NOPERM"},
		},
		{"any name and a token", []string{"AUTH any secret", "INCR orders"}, []string{"+OK", ":"}},
		{"HELLO", []string{"HELLO 3 AUTH default secret", "INCR orders"}, []string{"{", ":"}},
		{"HELLO with a wrong one", []string{"HELLO 3 AUTH default x", "CONFIG GET save"}, []string{"-WRONGPASS", "-NOAUTH"}},
		{"a wrong one after a right one", []string{"AUTH secret", "AUTH x", "INCR orders"}, []string{"+OK", "-WRONGPASS", ":"}},
		{"RESET", []string{"AUTH secret", "RESET", "INCR orders"}, []string{"+OK", "+RESET", "-NOAUTH"}},
		{"empty", []string{"INCR orders"}, []string{"-NOAUTH"}},
	} {
		p := dial(t, w)
		for i, line := range tt.lines {
			if got := p.do(strings.Fields(line)...); !strings.HasPrefix(got, tt.want[i]) {
				t.Errorf("%s: %s: %s, want %s", tt.name, line, got, tt.want[i])
			}
		}
	}
	p := dial(t, w)
	if got := p.do("AUTH", ""); !strings.HasPrefix(got, "-WRONGPASS") {
		t.Errorf("an empty token: %s", got)
	}

	// Who guesses is sent away.
	p = dial(t, w)
	for range 5 {
		p.send(array("AUTH", "guess"))
	}
	for range 5 {
		if got := p.answer(); !strings.HasPrefix(got, "-WRONGPASS") {
			t.Fatal(got)
		}
	}
	io.WriteString(p.Conn, "PING\r\n")
	if got, err := readAnswer(p.r); err == nil {
		t.Errorf("after five wrong tokens: %s", got)
	}

	// A token that is taken away ends what its connections may do.
	p = dial(t, w)
	p.do("AUTH", "secret")
	if err := w.srv.Replace(&server.Options{Tokens: []server.Token{{Name: "other"}}}, numbers(t, "orders", nil)); err != nil {
		t.Fatal(err)
	}
	if got := p.do("INCR", "orders"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("with a token that is gone: %s", got)
	}
}

// Texts are for FIRN.NEXT. A cipher makes numbers of numbers, and those are integers.
func TestForms(t *testing.T) {
	key, err := public.NewKey(1)
	if err != nil {
		t.Fatal(err)
	}
	cipher, err := public.NewCipher("hidden", key, nil)
	if err != nil {
		t.Fatal(err)
	}
	hidden, texts := &upward{}, &upward{}
	w := serve(t, nil, nil, server.Numbers("hidden", hidden, &server.SeriesOptions{Form: cipher}),
		server.Numbers("texts", texts, &server.SeriesOptions{Form: public.Crockford}))
	p := dial(t, w)
	for n := firn.ID(1); n <= 5; n++ {
		want, err := cipher.Encrypt(n)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.do("INCR", "hidden"); got != ":"+want.String() {
			t.Errorf("INCR: %s, want %d", got, want)
		}
	}
	p.do("FIRN.OPTION", "STRINGS")
	for n := firn.ID(6); n <= 50; n++ {
		want, err := cipher.Encrypt(n)
		if err != nil {
			t.Fatal(err)
		}
		text := ":" + want.String()
		if want >= 1<<53 {
			text = strconv.Quote(want.String())
		}
		if got := p.do("INCR", "hidden"); got != text {
			t.Errorf("INCR: %s, want %s", got, text)
		}
	}
	p.send("INCR texts\r\nFIRN.NEXT texts\r\nFIRN.NEXT texts 2\r\nINCRBY texts 2\r\n")
	text := func(n firn.ID) string {
		s, err := public.Crockford.Append(nil, n)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.Quote(string(s))
	}
	for _, want := range []string{
		"-WRONGTYPE the series gives texts, and INCR answers an integer: FIRN.NEXT", text(1), "[" + text(2) + " " + text(3) + "]",
		"-WRONGTYPE the numbers of series texts do not follow one another: FIRN.NEXT texts 2 gives as many",
	} {
		if got := p.answer(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
