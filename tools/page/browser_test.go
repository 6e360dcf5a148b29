package page_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// reader is somebody who looks at the page in Chromium. What the browser complains about fails the test.
type reader struct {
	t   testing.TB
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string
	// allowed are parts of complaints that a test brings about.
	allowed []string
	// width is the window's, if one is set.
	width int64
	// folder has pictures for a person. Pictures that are compared are shrunk by shrink.
	folder string
	shrink int
}

// size is that of a window.
type size struct {
	name          string
	width, height int64
	phone         bool
}

var sizes = []size{{"phone", 390, 844, true}, {"laptop", 1280, 800, false}, {"4k", 3840, 2160, false}}

func newReader(t testing.TB, w *world, more ...chromedp.ExecAllocatorOption) *reader {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"))
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), append(options, more...)...)
	t.Cleanup(cancel)
	return newTab(t, allocated, w.url)
}

// another opens another tab of the same browser.
func (r *reader) another() *reader {
	r.t.Helper()
	return newTab(r.t, r.ctx, r.url)
}

func newTab(t testing.TB, browser context.Context, address string) *reader {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	r := &reader{t: t, ctx: ctx, url: address}
	r.do() // opens the tab
	host := strings.TrimPrefix(address, "http://")
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *cdpruntime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				text += " " + e.ExceptionDetails.Exception.Description
			}
			r.complain("exception: " + text)
		case *cdpruntime.EventConsoleAPICalled:
			if e.Type == cdpruntime.ConsoleAPICalledTypeError || e.Type == cdpruntime.ConsoleAPICalledTypeWarning || e.Type == cdpruntime.ConsoleAPICalledTypeAssert {
				text := ""
				for _, a := range e.Args {
					text += string(a.Value) + a.Description + " "
				}
				r.complain("console: " + text)
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				r.complain("log: " + e.Entry.Text + " " + e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Host != host {
				r.complain("a request to " + e.Request.URL)
			}
		case *page.EventJavascriptDialogOpening:
			r.complain("a dialog opened: " + e.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// What the policy refuses is reported to the page, and kept there.
	report := `globalThis.refused = []; addEventListener("securitypolicyviolation", (e) => refused.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample))`
	command(r, network.Enable, network.EnableParams{})
	command(r, log.Enable, cdp.Empty{})
	command(r, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	command(r, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: report})
	return r
}

// command runs a command of the browser's protocol.
func command[P, R any](r *reader, c cdp.Command[P, R], params P) {
	r.t.Helper()
	if _, err := chromedp.Call(r.ctx, c, params); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) complain(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, text)
}

// allow has complaints with that text count for nothing from now on.
func (r *reader) allow(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allowed = append(r.allowed, text)
}

func (r *reader) do(actions ...chromedp.Action[chromedp.Void]) {
	r.t.Helper()
	if err := chromedp.Do(r.ctx, actions...); err != nil {
		r.t.Fatal(err)
	}
}

// look sets the window's size and the theme.
func (r *reader) look(s size, theme string) {
	r.t.Helper()
	r.width = s.width
	command(r, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1, Mobile: s.phone})
	command(r, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
}

func (r *reader) open(path string) {
	r.t.Helper()
	r.do(chromedp.Navigate(r.url + path))
}

// address is the page's, of this gateway. What a reader chooses is written into it a moment later, so it is waited for until it stays.
func (r *reader) address() string {
	r.t.Helper()
	at := ""
	r.until("the address stays", func() bool {
		before := at
		at = evaluate[string](r, `new Promise((done) => setTimeout(() => done(location.pathname + location.search), 150))`)
		return at == before
	})
	return at
}

// chosen is a parameter of the address, once that stays.
func (r *reader) chosen(name string) string {
	r.t.Helper()
	u, err := url.Parse(r.address())
	if err != nil {
		r.t.Fatal(err)
	}
	return u.Query().Get(name)
}

// evaluate runs a script in the page, and returns what it says.
func evaluate[T any](r *reader, script string) T {
	r.t.Helper()
	value, err := chromedp.Run(r.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		r.t.Fatal(err)
	}
	return value
}

// text is what the page shows: nothing while a page is on its way.
func (r *reader) text() string {
	r.t.Helper()
	return evaluate[string](r, `document.body?.innerText ?? ""`)
}

// see waits until the page shows a text.
func (r *reader) see(text string) {
	r.t.Helper()
	r.until("the page shows "+text, func() bool { return strings.Contains(r.text(), text) })
}

func (r *reader) until(what string, true func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !true(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("not within a minute: %s; complaints: %q. The page shows:\n%s", what, r.problems, r.text())
		}
	}
}

// click clicks the first element that a selector finds and that has a text.
func (r *reader) click(selector, text string) {
	r.t.Helper()
	script := fmt.Sprintf(`(() => { const e = [...document.querySelectorAll(%q)].find((e) => e.innerText.includes(%q)); if (!e) return false; e.scrollIntoView({block: "center"}); e.click(); return true })()`, selector, text)
	r.until("there is a "+selector+" with "+text, func() bool { return evaluate[bool](r, script) })
}

// shoot keeps a picture of the page in the folder LANDFALL_PAGE_LOOKS, for a person.
func (r *reader) shoot(name string) {
	r.t.Helper()
	folder := os.Getenv("LANDFALL_PAGE_LOOKS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(r.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// check fails the test for everything that the browser or axe-core complains about.
func (r *reader) check(where string) {
	r.t.Helper()
	for _, refused := range evaluate[[]string](r, "globalThis.refused") {
		r.complain("refused by the policy: " + refused)
	}
	r.fits(where)
	r.axe()
	r.mu.Lock()
	defer r.mu.Unlock()
complaints:
	for _, p := range r.problems {
		for _, a := range r.allowed {
			if strings.Contains(p, a) {
				continue complaints
			}
		}
		r.t.Errorf("%s: %s", where, p)
	}
	r.problems = nil
}

// fits complains about a page that is wider than its window. What a phone says of its own grows with the page.
func (r *reader) fits(where string) {
	r.t.Helper()
	if wide := evaluate[int64](r, "document.documentElement.scrollWidth"); r.width > 0 && wide > r.width {
		out := evaluate[[]string](r, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => !e.closest(".wide, pre, svg") && e.getBoundingClientRect().right > %d).map((e) => e.tagName + "." + e.className)`, r.width))
		r.complain(fmt.Sprintf("%s: the page is %d pixels wide in a window of %d: %q", where, wide, r.width, out))
	}
}

// axe complains about what axe-core finds.
func (r *reader) axe() {
	r.t.Helper()
	source, err := os.ReadFile(filepath.Join(os.Getenv("LANDFALL_PAGE_PACKAGES"), "axe-core", "axe.min.js"))
	if err != nil {
		r.t.Fatal("axe-core is not installed: run make page-test, which does: ", err)
	}
	evaluate[int](r, string(source)+";0")
	findings := evaluate[[]string](r, `axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.target + " " + (n.any[0]?.message ?? ""))))`)
	for _, f := range findings {
		r.complain("axe-core: " + f)
	}
	// It leaves nothing behind that the next page would be blamed for.
	evaluate[bool](r, "delete globalThis.axe")
}
