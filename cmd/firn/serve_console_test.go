//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/browser"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/server"
)

// screenshot writes what a page looks like into the directory of FIRN_SCREENSHOTS, for
// people.
func screenshot(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	if dir := os.Getenv("FIRN_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), p.Picture(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// isTrue wants an expression to be true in the page.
func isTrue(t *testing.T, p *browser.Page, js string) {
	t.Helper()
	var yes bool
	if p.Eval("Boolean("+js+")", &yes); !yes {
		t.Errorf("%s is not true", js)
	}
}

const (
	canIssue = "document.querySelector('#status').dataset.level === 'ok'"
	draws    = "parseFloat(document.querySelector('#now-rate').innerText) > 0"
	askedFor = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/state')).length"
)

// focus presses Tab until the focus is on what a selector finds.
func focus(t *testing.T, p *browser.Page, selector string) {
	t.Helper()
	for range 50 {
		p.Press("Tab")
		var there bool
		if p.Eval(fmt.Sprintf("document.activeElement.matches(%q)", selector), &there); there {
			return
		}
	}
	t.Fatalf("no Tab leads to %s", selector)
}

// The console, as somebody sees it who looks at a server under load, whose store goes
// away and comes back, and which is then started again.
func TestServeConsole(t *testing.T) {
	t.Parallel()
	chromium := browser.Start(t, testserver.Chromium(t))
	pg := testserver.Postgres(t)
	dir := t.TempDir()
	onPostgres(t, pg.URL(), dir, photoLine, ordersLine)
	write(t, dir, "firn.yaml", "store: "+pg.URL()+`
pools: { main: { outage: 15s, renew: 1s, ttl: 3s, wait: 1s } }
series: { photo: { kind: flake }, orders: { kind: sequence } }
`)
	s := serve(t, dir)
	s.until("ready", s.ready)
	p := chromium.Open(t, "http://"+s.listen["http"]+"/")
	p.Until(canIssue)
	p.Until("document.querySelector('.chosen[data-key*=\" 0\"]')?.innerText.includes('this server')")
	screenshot(t, p, "idle")

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	c := s.redis("")
	load.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			c.Incr(ctx, "photo")
		}
	})
	few, enough := context.WithCancel(ctx)
	defer enough()
	load.Go(func() {
		for ; few.Err() == nil; time.Sleep(20 * time.Millisecond) {
			c.Incr(few, "orders") // so few that they last for a while
		}
	})
	p.Until(draws)
	p.Until("document.querySelector('[data-key=photo] .spark path:last-child').getAttribute('d').split('L').length > 2")

	consoleDecodes(t, p, s)
	consoleChooses(t, p)
	consoleFits(t, p)
	consoleStaysSmall(t, p)

	enough()
	pg.Kill(t)
	p.Until("document.querySelector('#status[data-level=warn]') && document.querySelector('#source-cards [data-level=warn]').innerText.includes('pool main')")
	p.Screen(360, 780)
	cardsFit(t, p, "degraded on a phone")
	screenshot(t, p, "degraded")
	p.Until("document.querySelector('#status').dataset.level === 'bad'")
	p.Until("document.querySelector('#reasons').innerText.includes('photo')")
	p.Until("document.querySelector('#store-cards').innerText.includes('does not answer')")
	cardsFit(t, p, "stopped on a phone")
	screenshot(t, p, "stopped")
	p.Screen(1280, 900)
	pg.Start(t)
	p.Until(canIssue)
	p.Until(draws)
	screenshot(t, p, "recovered")

	stop()
	load.Wait()
	at := s.listen["http"]
	s.stop()
	p.Until("document.querySelector('#status').dataset.level === 'gone'")
	screenshot(t, p, "gone")
	serve(t, dir, "--http", at)
	p.Until(canIssue)
	isTrue(t, p, "performance.getEntriesByType('resource').every((e) => e.name.startsWith(location.origin))")
}

// consoleDecodes decodes an id with the keyboard alone.
func consoleDecodes(t *testing.T, p *browser.Page, s *served) {
	t.Helper()
	id, err := s.redis("").Do(t.Context(), "FIRN.NEXT", "photo").Text()
	if err != nil {
		t.Fatal(err)
	}
	number, err := firn.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	focus(t, p, "#id-text")
	p.Type(id)
	p.Press("Enter")
	p.Until("document.querySelector('.bits')")
	parts, err := firn.Default().Decode(number)
	if err != nil {
		t.Fatal(err)
	}
	text := p.Text("#readings")
	for _, want := range []string{parts.Time.Format("2006-01-02T15:04:05.000Z"), "layout firn", "which ids of this server have", "bits 62–22", strconv.FormatInt(parts.Worker, 10)} {
		if !strings.Contains(text, want) {
			t.Errorf("decoded %s: %q is missing in\n%s", id, want, text)
		}
	}
	var bits string
	p.Eval("[...document.querySelectorAll('.bits .mono')].map((e) => e.innerText).join('').replaceAll(/\\s/g, '')", &bits)
	if want := fmt.Sprintf("%064b", int64(number)); bits != want {
		t.Errorf("the bits of %s are %s, want %s", id, bits, want)
	}
	p.Eval("document.querySelector('#id-text').select()", nil)
	p.Type("no id")
	p.Press("Enter")
	p.Until("document.querySelector('#readings .wrong')")
	p.Eval("document.querySelector('#id-text').select()", nil)
	p.Type(id)
	p.Press("Enter")
	p.Until("document.querySelector('.bits')")
}

// consoleChooses has the plots draw one series, with the keyboard alone. The focus
// stays where it is while new answers come.
func consoleChooses(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Eval("document.activeElement.blur()", nil)
	focus(t, p, "[data-key=orders] button")
	p.Press("Enter")
	p.Until("document.querySelector('#rate-plot').innerText.includes('of orders')")
	p.Until("document.querySelector('#rate-plot .plot').getAttribute('aria-label').startsWith('of orders: now ')")
	var before int
	p.Eval(askedFor, &before)
	p.Until(fmt.Sprintf("%s > %d", askedFor, before+1))
	isTrue(t, p, "document.activeElement.matches('[data-key=orders] button[aria-pressed=true]')")
}

// consoleFits looks at the page on screens of two sizes, by day and by night. What is
// read stands out from its ground as WCAG wants it.
func consoleFits(t *testing.T, p *browser.Page) {
	t.Helper()
	for _, look := range []struct {
		name   string
		width  int
		height int
		dark   bool
	}{{"phone-dark", 360, 780, true}, {"phone", 360, 780, false}, {"dark", 1280, 900, true}, {"light", 1280, 900, false}} {
		p.Screen(look.width, look.height)
		p.Dark(look.dark)
		p.Until("document.documentElement.scrollWidth <= innerWidth")
		p.Until("[...document.querySelectorAll('.scroll')].every((e) => e.scrollWidth <= e.clientWidth)")
		cardsFit(t, p, look.name)
		var faint []string
		p.Eval(faintTexts, &faint)
		if len(faint) > 0 {
			t.Errorf("%s: too little contrast: %q", look.name, faint)
		}
		screenshot(t, p, look.name)
	}
}

// cutOff are the parts of cards that reach over the edge of the screen, or whose text does over theirs.
const cutOff = `[...document.querySelectorAll('.card, .card *')].filter((e) => e.checkVisibility() &&
	(e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline'))
	.map((e) => e.closest('.card').querySelector('h3').innerText + ': ' + e.tagName + ' ' + e.innerText)`

// cardsFit wants each card to show all of its text.
func cardsFit(t *testing.T, p *browser.Page, look string) {
	t.Helper()
	var cards int
	if p.Eval("[...document.querySelectorAll('.card')].filter((e) => e.checkVisibility()).length", &cards); cards < 3 { // two sources and a store
		t.Errorf("%s: %d cards", look, cards)
	}
	var cut []string
	if p.Eval(cutOff, &cut); len(cut) > 0 {
		t.Errorf("%s: cut off: %q", look, cut)
	}
}

// faintTexts are texts whose contrast is below 4.5, each once for its element and class.
const faintTexts = `(() => {
	const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
	const light = (colors) => {
		pen.clearRect(0, 0, 1, 1);
		for (const c of colors) { pen.fillStyle = c; pen.fillRect(0, 0, 1, 1); }
		const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const faint = new Set();
	for (const e of document.querySelectorAll('body *')) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
		const grounds = [];
		for (let up = e; up; up = up.parentElement) grounds.unshift(getComputedStyle(up).backgroundColor);
		const [a, b] = [light(grounds), light([...grounds, getComputedStyle(e).color])].sort((a, b) => a - b);
		if ((b + 0.05) / (a + 0.05) < 4.5) faint.add(e.tagName + '.' + e.className + ' ' + ((b + 0.05) / (a + 0.05)).toFixed(1));
	}
	return [...faint];
})()`

// consoleStaysSmall makes sure that a page that is left open does not grow, and that
// one that nobody sees does not ask.
func consoleStaysSmall(t *testing.T, p *browser.Page) {
	t.Helper()
	var points int
	p.Eval(`import('/console/history.js').then(({ History }) => {
		const h = new History();
		const counts = (n) => ({ values: n, requests: n, errors: 0, latency: [n] });
		for (let i = 0; i < 86400; i++) h.add(i, i, counts(i), [1e-6]);
		for (let i = 0; i < 1000; i++) h.add(86400, 86400 + i, counts(86400 + i), [1e-6]);
		return h.points.length;
	})`, &points)
	if points < 300 || points > 400 {
		t.Errorf("after a day there are %d points", points)
	}
	var before, elements int
	p.Eval(askedFor, &before)
	p.Eval("document.querySelectorAll('*').length", &elements)
	p.Until(fmt.Sprintf("%s >= %d", askedFor, before+3))
	isTrue(t, p, fmt.Sprintf("document.querySelectorAll('*').length <= %d", elements+2)) // a fact that comes and goes
	p.Eval(`{
		const fetch = window.fetch;
		window.fetches = 0;
		window.fetch = (...all) => { fetches++; return fetch(...all); };
		Object.defineProperty(document, 'hidden', { value: true, configurable: true });
		document.dispatchEvent(new Event('visibilitychange'));
	}`, nil)
	p.Eval("new Promise((done) => setTimeout(done, 2500))", nil)
	isTrue(t, p, "fetches === 0")
	p.Eval("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))", nil)
	p.Until("fetches > 1")
}

// Before the first request the console has the pool that every name draws from.
func TestServeConsoleBeforeTheFirstRequest(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
	s.until("ready", s.ready)
	code, text := s.get("/console/state")
	var now struct {
		Sources []struct {
			Ready bool
			State struct {
				Kind  string
				Lease struct{ Pool string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &now); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v\n%s", code, err, text)
	}
	if len(now.Sources) != 1 || !now.Sources[0].Ready || now.Sources[0].State.Kind != "flake" || now.Sources[0].State.Lease.Pool != "default" {
		t.Errorf("%+v", now.Sources)
	}
	s.stop()
}

// What has given all its numbers cannot issue, and says so; its store is not to blame,
// and the server is ready, since another could do no better.
func TestServeUsedUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\nlisten: { admin: \"127.0.0.1:0\" }\n"+
		"series: { last: { kind: sequence, max: 30, cache: 20 }, odd: { kind: sequence, max: 5, increment: 2 }, invoice: { kind: document, pattern: \"INV-{1}\" }, photo: { kind: flake } }\n")
	s := serve(t, dir)
	c := s.redis("")
	if err := c.Do(t.Context(), "FIRN.NEXT", "last", 20).Err(); err != nil {
		t.Fatal(err)
	}
	p := browser.Start(t, testserver.Chromium(t)).Open(t, "http://"+s.listen["admin"]+"/")
	p.Until("document.querySelector('#word').innerText === 'Numbers run out'")
	for series, n := range map[string]int{"odd": 3, "invoice": 9} {
		for i := range n + 1 {
			if err := c.Do(t.Context(), "FIRN.NEXT", series).Err(); (err == nil) != (i < n) {
				t.Fatalf("%s %d: %v", series, i+1, err)
			}
		}
	}
	if code, text := s.get("/readyz"); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	s.do("POST", "/v1/series/none/next", "")
	s.listen["http"] = s.listen["admin"]
	_, metrics := s.get("/metrics")
	for _, want := range []string{`firn_numbers_remaining{series="odd"} 0`, `firn_http_responses_total{code="404"} 1`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, metrics)
		}
	}
	p.Until("document.querySelector('#word').innerText === 'Some series cannot issue'")
	p.Until("[...document.querySelectorAll('#source-cards .tone')].filter((e) => e.innerText === 'used up').length === 2")
	isTrue(t, p, "document.querySelector('#source-cards').innerText.includes('100 %')")
	isTrue(t, p, "document.querySelector('#store-cards .tone').innerText === 'answers'")
	isTrue(t, p, "document.querySelector('#store-cards').innerText.includes('journal_mode')")
	screenshot(t, p, "used-up")
}

// A series whose numbers end within a day at the rate of now is no series of which all is well.
func TestServeConsoleEndsSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries: { few: { kind: sequence, max: 1000000 }, photo: { kind: flake } }\n")
	s := serve(t, dir)
	p := browser.Start(t, testserver.Chromium(t)).Open(t, "http://"+s.listen["http"]+"/")
	p.Until(canIssue)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	c := s.redis("")
	load.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			c.Incr(ctx, "few")
		}
	})
	p.Until("document.querySelector('#word').innerText === 'Used up soon'")
	isTrue(t, p, "document.querySelector('#because').innerText.startsWith('few has ids for ')")
	isTrue(t, p, "document.querySelector('#source-cards [data-level=warn] .tone').innerText.startsWith('used up in ')")
	isTrue(t, p, "document.querySelectorAll('#source-cards [data-level=warn]').length === 1")
	config := filepath.Join(dir, "firn.yaml")
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	s.reload(notReloaded)
	stop()
	p.Until("document.querySelector('#client-cards [data-level=warn]')?.innerText.includes('is not there any more')")
	screenshot(t, p, "ends-soon")
}

// Where there are tokens, the console shows nothing until it is given one that has
// the right admin, and keeps it nowhere.
func TestServeConsoleToken(t *testing.T) {
	t.Parallel()
	chromium := browser.Start(t, testserver.Chromium(t))
	dir := t.TempDir()
	write(t, dir, "firn.yaml", fmt.Sprintf(`
store: sqlite:ids.db
series: { photo: { kind: flake }, invoice: { kind: document, pattern: "INV-{6}" } }
tokens:
  ops:  { hash: "sha256:%x", rights: { "*": [admin, decode] } }
  shop: { hash: "sha256:%x", rights: { "*": [issue, decode] } }
`, server.HashToken("the token of ops"), server.HashToken("the token of shop")))
	s := serve(t, dir)
	s.until("ready", s.ready)
	p := chromium.Open(t, "http://"+s.listen["http"]+"/")
	p.Until("!document.querySelector('#enter').hidden")
	screenshot(t, p, "token")
	isTrue(t, p, "document.querySelector('#live').hidden && document.activeElement.id === 'token'")
	for _, wrong := range []string{"no token", "the token of shop"} {
		p.Type(wrong)
		p.Press("Enter")
		p.Until("document.querySelector('#word').innerText === 'The token is not enough'")
		p.Eval("document.querySelector('#word').innerText = ''", nil)
		isTrue(t, p, "document.querySelector('#live').hidden")
	}
	p.Type("the token of ops")
	p.Press("Enter")
	p.Until(canIssue)
	isTrue(t, p, "document.querySelector('#enter').hidden && !document.querySelector('#live').hidden")
	isTrue(t, p, "document.querySelector('#now-left').innerText === '0 s'") // the document has nothing in hand
	p.Until("/ops.*request.*unknown tokens/s.test(document.querySelector('#client-cards').innerText)")
	isTrue(t, p, "/resp.*0 connections.*http.*settings.*in force/s.test(document.querySelector('#client-cards').innerText)")
	isTrue(t, p, "localStorage.length + sessionStorage.length === 0 && document.cookie === ''")
	isTrue(t, p, "!location.href.includes('token') && document.querySelector('#token').value === ''")
	focus(t, p, "#foot button")
	p.Press("Enter")
	p.Until("!document.querySelector('#enter').hidden && document.querySelector('#live').hidden")
	if strings.Contains(s.log.String(), "the token of") {
		t.Error("a token is in the log")
	}
}
