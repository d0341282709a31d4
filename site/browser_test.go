//go:build !windows

package site

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/browser"
	"github.com/firn-id/firn/internal/testserver"
)

// TestBrowser opens the site from the disk, without a server, as a reader does: every page on a
// small and a large screen, in the light and in the dark, with the keyboard.
func TestBrowser(t *testing.T) {
	testserver.OnlyLong(t)
	dir := build(t)
	home := "file://" + filepath.ToSlash(dir) + "/"
	p := browser.Start(t, testserver.Chromium(t)).Open(t, home+"index.html")
	t.Run("pages", func(t *testing.T) {
		for _, width := range []int{360, 1280} {
			p.Screen(width, 900)
			for _, name := range slices.Sorted(maps.Keys(pages(t, dir))) {
				visit(p, home+name)
				fits(t, p, fmt.Sprintf("%s, %d pixels", name, width))
			}
		}
	})
	t.Run("contrast", func(t *testing.T) {
		for _, dark := range []bool{false, true} {
			p.Dark(dark)
			for _, name := range []string{"index.html", "docs/guides/stores.html", "docs/getting-started.html", "docs/reference/firn-yaml.html"} {
				visit(p, home+name)
				var weak []string
				if p.Eval(contrast, &weak); len(weak) > 0 {
					t.Errorf("%s, dark %v: hard to read: %q", name, dark, weak)
				}
			}
		}
	})
	t.Run("search", func(t *testing.T) { searches(t, p, home) })
	t.Run("switch", func(t *testing.T) { switches(t, p, home) })
	t.Run("menu", func(t *testing.T) { opensMenu(t, p, home) })
}

// visit opens another page.
func visit(p *browser.Page, address string) {
	p.Eval("window.old = true", nil)
	p.Do("Page.navigate", browser.Params{"url": address})
	p.Until("!window.old && document.readyState === 'complete'")
}

// fits wants a page that is not wider than its screen, with pictures that were found.
func fits(t *testing.T, p *browser.Page, what string) {
	t.Helper()
	var wide int
	if p.Eval("document.documentElement.scrollWidth - innerWidth", &wide); wide > 0 {
		t.Errorf("%s: %d pixels too wide", what, wide)
	}
	isTrue(t, p, what, "[...document.images].every((i) => { i.loading = 'eager'; return !i.complete || i.naturalWidth > 0 })")
	isTrue(t, p, what, "performance.getEntriesByType('resource').every((e) => e.name.startsWith('file:'))")
}

// isTrue wants an expression to be true in the page.
func isTrue(t *testing.T, p *browser.Page, what, js string) {
	t.Helper()
	var yes bool
	if p.Eval("Boolean("+js+")", &yes); !yes {
		t.Errorf("%s: %s is not true", what, js)
	}
}

// contrast lists texts whose colour differs too little from what is behind them: by less than 4.5
// to 1, as WCAG 2 has it for AA.
const contrast = `(() => {
  const numbers = (c) => {
    const n = c.match(/[\d.]+/g).map(Number);
    if (c.startsWith("color(srgb")) n.splice(0, 3, n[0] * 255, n[1] * 255, n[2] * 255);
    return [n[0], n[1], n[2], n[3] ?? 1];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const behind = (e) => {
    if (!e) return [255, 255, 255, 1];
    const c = numbers(getComputedStyle(e).backgroundColor);
    return c[3] === 1 ? c : over(c, behind(e.parentElement));
  };
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => {
    const v = c[i] / 255;
    return sum + w * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  }, 0);
  const weak = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || e.closest("script")) continue;
    const ground = behind(e);
    const [a, b] = [light(over(numbers(getComputedStyle(e).color), ground)), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push(ratio.toFixed(2) + " " + e.tagName + "." + e.className + " " + texts.currentNode.data.trim().slice(0, 30));
  }
  return [...new Set(weak)].slice(0, 10);
})()`

// searches finds an error message from another page, and a word that no page has.
func searches(t *testing.T, p *browser.Page, home string) {
	visit(p, home+"docs/guides/stores.html")
	p.Press("/")
	p.Until("document.activeElement.id === 'query'")
	p.Type("pool ensure")
	p.Until("document.querySelectorAll('#results li').length > 3")
	isTrue(t, p, "search", "document.querySelector('#results mark')")
	p.Press("ArrowDown")
	var chosen string
	p.Eval("document.querySelector('#results [aria-selected=true] a').href", &chosen)
	isTrue(t, p, "search", "document.querySelector('#query').getAttribute('aria-activedescendant') === 'result-1'")
	p.Press("Enter")
	p.Until(fmt.Sprintf("location.href === %q && document.readyState === 'complete'", chosen))
	if u, err := url.Parse(chosen); err != nil || u.Fragment != "" {
		isTrue(t, p, chosen, "document.getElementById(decodeURIComponent(location.hash.slice(1)))")
	}

	p.Eval("document.querySelector('#search-open').click()", nil)
	p.Type("zzzzzz")
	p.Until("document.querySelector('#count').textContent === 'No places'")
	p.Press("Escape") // empties the field
	p.Press("Escape")
	p.Until("!document.querySelector('#search').open")
}

// switches chooses dark in a browser that likes it light, and finds it so on the next page.
func switches(t *testing.T, p *browser.Page, home string) {
	p.Dark(false)
	visit(p, home+"docs/concepts.html")
	const ground = "getComputedStyle(document.body).backgroundColor"
	var light, dark string
	p.Eval(ground, &light)
	p.Eval("document.querySelector('#theme').click()", nil)
	if p.Eval(ground, &dark); dark == light {
		t.Errorf("the switch leaves the ground %s", dark)
	}
	// Pictures further down are loaded when the reader comes to them.
	p.Until("((shown) => shown.length > 0 && shown.every((i) => i.currentSrc.endsWith('-dark.svg')))([...document.images].filter((i) => i.currentSrc))")
	visit(p, home+"docs/faq.html")
	isTrue(t, p, "next page", fmt.Sprintf("%s === %q", ground, dark))
	p.Eval("document.querySelector('#theme').click()", nil)
	isTrue(t, p, "switched back", fmt.Sprintf("%s === %q && !localStorage.getItem('theme')", ground, light))
}

// opensMenu reaches the navigation of a small screen with the keyboard.
func opensMenu(t *testing.T, p *browser.Page, home string) {
	p.Screen(360, 700)
	visit(p, home+"docs/faq.html")
	p.Press("Tab")
	isTrue(t, p, "first Tab", "document.activeElement.matches('.skip')")
	const shown = "document.querySelector('#pages').checkVisibility()"
	isTrue(t, p, "closed", "!"+shown)
	p.Eval("document.querySelector('#menu').focus()", nil)
	p.Press("Enter")
	isTrue(t, p, "open", shown+" && document.querySelector('#pages [aria-current=page]').textContent === 'Questions'")
	screenshot(t, p, "menu")
	p.Press("Escape")
	isTrue(t, p, "closed again", "!"+shown)
}

// screenshot writes what a page looks like into the directory of FIRN_SCREENSHOTS, for people.
func screenshot(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	dir := os.Getenv("FIRN_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".png"), p.Picture(), 0o644); err != nil {
		t.Fatal(err)
	}
}
