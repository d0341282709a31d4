//go:build !windows

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/browser"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/console"
	"github.com/firn-id/firn/server/daemon"
	"github.com/firn-id/firn/shard/topology"
)

// movesServer is one between whose databases shards move.
func movesServer(tb testing.TB, _ ...string) *testserver.Server {
	return testserver.Postgres(tb, movesSettings...)
}

var movesSettings = []string{
	"wal_level=logical", "max_replication_slots=200", "max_wal_senders=100", "max_logical_replication_workers=100",
	"max_worker_processes=120", "max_connections=300", "fsync=off", "wal_retrieve_retry_interval=100ms",
}

// The page of shards, as somebody sees it who looks on while shards are written to,
// move, and while a server goes away.
func TestConsoleShards(t *testing.T) {
	t.Parallel()
	chromium := browser.Start(t, testserver.Chromium(t))
	away := movesServer(t)
	a := database(t, testserver.Shared(t, movesServer), "a")
	b := database(t, away, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	succeed(t, append([]string{"shard", "init", "--count", "64", "--yes"}, flags...)...)
	onDatabase(t, a, "CREATE TABLE insta3.t (id bigint PRIMARY KEY DEFAULT insta3.next_id(), x text); INSERT INTO insta3.t (x) SELECT repeat('x', 1000) FROM generate_series(1, 500); CREATE TABLE insta9.t (n integer)")
	p := chromium.Open(t, consoleOf(t, flags...))
	p.Screen(1280, 900)
	p.Until("!document.querySelector('#shards').hidden")
	isTrue(t, p, asksForShards+" === 0") // they are below, and nobody has looked
	p.Eval("document.querySelector('#shards').scrollIntoView()", nil)
	p.Until("document.querySelectorAll('.cells i').length === 64")
	p.Until("document.querySelector('#shard-a-3').dataset.shade === '5' && document.querySelector('#shard-a-4').dataset.shade === '0'")

	shardsByKeyboard(t, p)
	shardsByRate(t, p, a)
	succeed(t, append([]string{"shard", "move", "3,5", "--to", "b"}, flags...)...)
	onDatabase(t, a, "SELECT firn.close(7)")
	p.Until("document.querySelector('#shard-b-3[data-state=moving]') && document.querySelectorAll('.cells i').length === 64")
	p.Until("document.querySelector('#move-rows').innerText.includes('3,5')")
	p.Until("document.querySelector('#move-rows').innerText.includes('a → b') && document.querySelector('#move-rows').innerText.includes('arrived')")
	p.Until("document.querySelector('#shard-a-7').dataset.state === 'closed'")
	shardsFit(t, p, "shards")

	away.Kill(t)
	p.Until("document.querySelector('#shard-servers [data-level=bad]')?.innerText.includes('away')")
	isTrue(t, p, "document.querySelector('#shard-servers [data-level=ok]').innerText.includes('answers')")
	isTrue(t, p, "document.querySelectorAll('.cells i').length === 64") // as they were
	p.Until("document.querySelector('#move-rows').innerText.includes('b does not answer')")
	shardsFit(t, p, "shards-away")
	away.Start(t)
	p.Until("!document.querySelector('#shard-servers [data-level=bad]')")
	shardsUnseen(t, p)
	manyShards(t, p)
}

// consoleOf serves the console of a cluster, which is asked as often as its page likes.
func consoleOf(t *testing.T, flags ...string) string {
	t.Helper()
	cmd := newShardsStatus()
	cmd.SetContext(t.Context())
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	servers, err := shardServers(cmd)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(console.Handler(srv, &console.Options{Shards: daemon.WatchShards(func() []topology.Server { return servers }), Every: time.Second}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// The shards of firn.yaml are those of the console, for those who may see it, and a
// change of the file is followed.
func TestServeShards(t *testing.T) {
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	succeed(t, "shard", "init", "--count", "4", "--yes", "--server", "a="+a)
	dir := t.TempDir()
	config := func(shards string) {
		write(t, dir, "firn.yaml", fmt.Sprintf("store: sqlite:ids.db\n%s\ntokens: { ops: { hash: \"sha256:%x\", rights: { \"*\": [admin] } }, shop: { hash: \"sha256:%x\", rights: { \"*\": [issue, decode] } } }\n",
			shards, server.HashToken("ops"), server.HashToken("shop")))
	}
	config("")
	s := serve(t, dir)
	s.until("ready", s.ready)
	ask := func(token string) (code int, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.listen["http"]+"/console/shards", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		body, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.StatusCode, string(body)
	}
	if code, text := ask("ops"); code != http.StatusNotFound || !strings.Contains(text, "knows of no shards") {
		t.Errorf("without shards: %d %s", code, text)
	}
	config(fmt.Sprintf("shards: { servers: { a: %q } }", a))
	s.signal(syscall.SIGHUP)
	s.until("shards", func() bool {
		code, text := ask("ops")
		return code == http.StatusOK && strings.Contains(text, `"name":"a"`) && strings.Contains(text, `[3,`)
	})
	for token, want := range map[string]int{"": http.StatusUnauthorized, "shop": http.StatusForbidden} {
		if code, text := ask(token); code != want || strings.Contains(text, "name") {
			t.Errorf("%q: %d %s", token, code, text)
		}
	}
	config(fmt.Sprintf("shards: { servers: { a: %q, b: %q } }", a, b))
	s.signal(syscall.SIGHUP)
	s.until("a server that is no member", func() bool {
		_, text := ask("ops")
		return strings.Contains(text, `"name":"b","problem":"server b: `)
	})
}

const asksForShards = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/console/shards')).length"

// shardsByKeyboard goes from cell to cell with keys, and points at one.
func shardsByKeyboard(t *testing.T, p *browser.Page) {
	t.Helper()
	focus(t, p, ".cells")
	isTrue(t, p, "!document.querySelector('#shard-tip').hidden && document.querySelector('#shard-name').innerText === 'shard 0'")
	for range 3 {
		p.Press("ArrowRight")
	}
	isTrue(t, p, "document.activeElement.getAttribute('aria-activedescendant') === 'shard-a-3'")
	tip := p.Text("#shard-tip")
	for _, want := range []string{"shard 3", "kB", "served by a"} {
		if !strings.Contains(tip, want) {
			t.Errorf("%q is missing in\n%s", want, tip)
		}
	}
	isTrue(t, p, "document.querySelector('#shard-a-3').getAttribute('aria-label').startsWith('shard 3, ')")
	screenshot(t, p, "shards-focus")
	p.Press("End")
	isTrue(t, p, "document.querySelector('#shard-name').innerText === 'shard 31'")
	p.Press("Escape")
	isTrue(t, p, "document.querySelector('#shard-tip').hidden")
	var at struct{ X, Y float64 }
	p.Eval("document.querySelector('#shard-b-40').scrollIntoView({ block: 'center' })", nil)
	p.Eval("(({ x, y }) => ({ x: x + 4, y: y + 4 }))(document.querySelector('#shard-b-40').getBoundingClientRect())", &at)
	p.Do("Input.dispatchMouseEvent", browser.Params{"type": "mouseMoved", "x": at.X, "y": at.Y})
	p.Until("document.querySelector('#shard-name').innerText === 'shard 40' && document.querySelector('#shard-tip').innerText.includes('served by b')")
}

// shardsByRate has the colours say what is written.
func shardsByRate(t *testing.T, p *browser.Page, a string) {
	t.Helper()
	p.Eval("document.querySelector('[name=shade][value=rate]').click()", nil)
	p.Until("document.querySelector('#shard-a-9').facts.one[2] === 0") // it is known there
	onDatabase(t, a, "INSERT INTO insta9.t SELECT generate_series(1, 5000)")
	p.Until("document.querySelector('#shard-a-9').dataset.shade === '5' && document.querySelector('#shard-a-3').dataset.shade === '0'")
	isTrue(t, p, "document.querySelector('#shade-most').innerText.includes('rows/s')")
	screenshot(t, p, "shards-rate")
	p.Eval("document.querySelector('[name=shade][value=size]').click()", nil)
	p.Until("document.querySelector('#shard-a-3').dataset.shade === '5'")
}

// shardsFit is consoleFits for the section of shards.
func shardsFit(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	for _, look := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"phone-dark", 360, 780, true}, {"phone", 360, 780, false}, {"dark", 1280, 900, true}, {"light", 1280, 900, false}} {
		p.Screen(look.width, look.height)
		p.Dark(look.dark)
		p.Eval("document.querySelector('#shards').scrollIntoView()", nil)
		p.Until("document.documentElement.scrollWidth <= innerWidth")
		p.Until("[...document.querySelectorAll('.scroll')].every((e) => e.scrollWidth <= e.clientWidth)")
		var faint []string
		if p.Eval(faintTexts, &faint); len(faint) > 0 {
			t.Errorf("%s: too little contrast: %q", look.name, faint)
		}
		screenshot(t, p, name+"-"+look.name)
	}
}

// manyShards draws 8,192, as a server would say it, and goes through them.
func manyShards(t *testing.T, p *browser.Page) {
	t.Helper()
	const answer = `(round) => ({ known: true, age_seconds: 1, every_seconds: 0.3, moves: [], servers: ['a', 'b'].map((name, i) => ({
		name, shards: Array.from({ length: 4096 }, (_, n) => [i * 4096 + n, 1e4 * (1 + (n * 7919 + round) % 997), n % 50, false]) })) })`
	var took []float64
	p.Eval(`{
		const real = window.fetch;
		let round = 0;
		window.fetch = async (url, o) => String(url).endsWith('console/shards') ? new Response(JSON.stringify((`+answer+`)(round++))) : real(url, o);
	}`, nil)
	p.Eval("document.querySelector('#shards').scrollIntoView()", nil)
	p.Until("document.querySelectorAll('.cells i').length === 8192")
	p.Eval(`import('/console/shards.js').then(async (m) => {
		const took = [];
		for (let round = 0; round < 3; round++) {
			m.forget();
			const begun = performance.now();
			await m.shards(true, async () => (`+answer+`)(round));
			document.querySelector('#shards').getBoundingClientRect();
			took.push(performance.now() - begun);
		}
		return took;
	})`, &took)
	t.Logf("8,192 shards are drawn in %.0f ms", took)
	isTrue(t, p, "document.querySelectorAll('.cells i').length === 8192 && document.documentElement.scrollWidth <= innerWidth")
	p.Eval("document.activeElement.blur(); document.querySelector('.cells').focus()", nil)
	p.Press("End")
	isTrue(t, p, "document.querySelector('#shard-name').innerText === 'shard 4095'")
	p.Press("ArrowUp")
	isTrue(t, p, "Number(document.querySelector('#shard-name').innerText.slice(6)) < 4095 - 50")
	shardsFit(t, p, "shards-many")
}

// shardsUnseen makes sure that nobody is asked who is not looked at.
func shardsUnseen(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Screen(1280, 500)
	p.Eval("document.querySelector('#status').scrollIntoView()", nil)
	p.Until("document.querySelector('#shards').getBoundingClientRect().top > innerHeight")
	var states, asked, before int
	p.Eval(askedFor, &states)
	p.Until(fmt.Sprintf("%s > %d", askedFor, states+1)) // what was on its way is here
	p.Eval(asksForShards, &before)
	p.Eval(askedFor, &states)
	p.Until(fmt.Sprintf("%s > %d", askedFor, states+1)) // the page is awake
	if p.Eval(asksForShards, &asked); asked != before {
		t.Errorf("%d questions, where nobody looks", asked-before)
	}
}
