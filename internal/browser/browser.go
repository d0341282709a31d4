// Package browser opens pages in a real headless Chromium for tests, and looks at
// them as a person would: by what is shown, with a keyboard, on screens of any size.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// patience is for what comes soon, on a machine that has much else to do.
const patience = time.Minute

// A Browser is a Chromium of a test's own. It resolves no names, so that a page gets
// nothing that does not come from this host.
type Browser struct {
	out *os.File // what it is told

	mu      sync.Mutex // guards the rest, and writing
	asked   int
	answers map[int]chan answer
	ended   error // it answers no more
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts the program, which ends with the test.
func Start(tb testing.TB, program string) *Browser {
	tb.Helper()
	in, theirOut := pipe(tb)
	theirIn, out := pipe(tb)
	cmd := exec.Command(program, "--headless=new", "--remote-debugging-pipe", "--user-data-dir="+tb.TempDir(),
		"--no-sandbox", // root has none, and the pages are ours
		"--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-sync",
		"--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--force-color-profile=srgb", "--hide-scrollbars", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &Browser{out: out, answers: map[int]chan answer{}}
	var reading sync.WaitGroup
	reading.Go(func() { b.read(in) })
	tb.Cleanup(func() {
		b.ask("", "Browser.close", nil, nil)
		killed := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		cmd.Wait()
		killed.Stop()
		out.Close()
		reading.Wait()
		in.Close()
	})
	return b
}

func pipe(tb testing.TB) (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	return r, w
}

// read hands out answers until the browser ends. Each message ends with a zero byte.
func (b *Browser) read(in *os.File) {
	r := bufio.NewReader(in)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ended = fmt.Errorf("browser: it has ended: %w", err)
			for _, wait := range b.answers {
				close(wait)
			}
			b.answers = nil
			return
		}
		var a answer
		if json.Unmarshal(text[:len(text)-1], &a) != nil || a.ID == 0 {
			continue // an event
		}
		b.mu.Lock()
		wait := b.answers[a.ID]
		delete(b.answers, a.ID)
		b.mu.Unlock()
		if wait != nil {
			wait <- a
		}
	}
}

// ask calls a method of the protocol, in a session or that of the browser.
func (b *Browser) ask(session, method string, params, result any) error {
	wait, err := b.send(session, method, params)
	if err != nil {
		return err
	}
	select {
	case a, ok := <-wait:
		switch {
		case !ok:
			return b.ended
		case a.Error != nil:
			return fmt.Errorf("browser: %s: %s", method, a.Error.Message)
		case result != nil:
			return json.Unmarshal(a.Result, result)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("browser: %s: no answer in %s", method, patience)
	}
}

func (b *Browser) send(session, method string, params any) (<-chan answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, b.ended
	}
	b.asked++
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{b.asked, session, method, params})
	if err != nil {
		return nil, err
	}
	wait := make(chan answer, 1)
	b.answers[b.asked] = wait
	_, err = b.out.Write(append(text, 0))
	return wait, err
}

// A Page is a tab. Its methods end the test where the browser does not do as asked.
type Page struct {
	tb      testing.TB
	browser *Browser
	session string
}

// Params are those of a method of the protocol.
type Params map[string]any

// Open opens a page in a tab of its own, which shares nothing with other tabs.
func (b *Browser) Open(tb testing.TB, url string) *Page {
	tb.Helper()
	p := &Page{tb: tb, browser: b}
	var context struct {
		ID string `json:"browserContextId"`
	}
	p.must(b.ask("", "Target.createBrowserContext", nil, &context))
	var target struct {
		ID string `json:"targetId"`
	}
	p.must(b.ask("", "Target.createTarget", Params{"url": "about:blank", "browserContextId": context.ID, "width": 1280, "height": 900}, &target))
	var session struct {
		ID string `json:"sessionId"`
	}
	p.must(b.ask("", "Target.attachToTarget", Params{"targetId": target.ID, "flatten": true}, &session))
	p.session = session.ID
	tb.Cleanup(func() { b.ask("", "Target.disposeBrowserContext", Params{"browserContextId": context.ID}, nil) })
	p.Do("Page.enable", nil)
	p.Do("Page.navigate", Params{"url": url})
	p.Until("document.readyState === 'complete' && location.href !== 'about:blank'")
	return p
}

func (p *Page) must(err error) {
	p.tb.Helper()
	if err != nil {
		p.tb.Fatal(err)
	}
}

// Do calls a method of the protocol.
func (p *Page) Do(method string, params Params) {
	p.tb.Helper()
	p.must(p.browser.ask(p.session, method, params, nil))
}

// Eval sets result to the value of an expression of JavaScript.
func (p *Page) Eval(js string, result any) {
	p.tb.Helper()
	var a struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	p.must(p.browser.ask(p.session, "Runtime.evaluate", Params{"expression": js, "returnByValue": true, "awaitPromise": true}, &a))
	if a.Exception != nil {
		p.tb.Fatalf("browser: %s: %s", js, a.Exception.Exception.Description)
	}
	if result != nil && len(a.Result.Value) > 0 {
		p.must(json.Unmarshal(a.Result.Value, result))
	}
}

// Until waits until an expression is true.
func (p *Page) Until(js string) {
	p.tb.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var done bool
		p.Eval("Boolean("+js+")", &done)
		if done {
			return
		}
		if time.Now().After(end) {
			p.tb.Fatalf("browser: not within %s: %s\n%s", patience, js, p.Text("body"))
		}
	}
}

// Text returns what is shown of the first element that a selector finds.
func (p *Page) Text(selector string) (text string) {
	p.tb.Helper()
	p.Eval(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return text
}

// Press presses a key, such as Tab or Enter.
func (p *Page) Press(key string) {
	p.tb.Helper()
	k := keys[key]
	params := Params{"key": key, "code": key, "windowsVirtualKeyCode": k.code}
	if k.text != "" {
		params["text"] = k.text
	}
	for _, what := range []string{"keyDown", "keyUp"} {
		params["type"] = what
		p.Do("Input.dispatchKeyEvent", params)
	}
}

var keys = map[string]struct {
	code int
	text string
}{"Tab": {9, ""}, "Enter": {13, "\r"}, "Escape": {27, ""}, "ArrowDown": {40, ""}, "/": {191, "/"}}

// Type writes a text where the focus is.
func (p *Page) Type(text string) {
	p.tb.Helper()
	p.Do("Input.insertText", Params{"text": text})
}

// Screen sets the size of the screen in CSS pixels.
func (p *Page) Screen(width, height int) {
	p.tb.Helper()
	p.Do("Emulation.setDeviceMetricsOverride", Params{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// Dark makes the browser one of a person who likes it dark, or not.
func (p *Page) Dark(yes bool) {
	p.tb.Helper()
	value := "light"
	if yes {
		value = "dark"
	}
	p.Do("Emulation.setEmulatedMedia", Params{"features": []Params{{"name": "prefers-color-scheme", "value": value}}})
}

// Picture returns the whole page as a PNG.
func (p *Page) Picture() []byte {
	p.tb.Helper()
	var shot struct {
		Data string `json:"data"`
	}
	p.must(p.browser.ask(p.session, "Page.captureScreenshot", Params{"format": "png", "captureBeyondViewport": true}, &shot))
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	p.must(err)
	return png
}
