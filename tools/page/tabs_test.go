package page_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// front is a proxy before a gateway. It counts the streams through it, and breaks them.
type front struct {
	url   string
	proxy *httputil.ReverseProxy

	mu     sync.Mutex
	broken bool
	// open are the streams that are open, each with what ends it, and came the Last-Event-ID of each that was asked for.
	open map[*http.Request]chan struct{}
	came []string
}

func newFront(t testing.TB, gateway string) *front {
	t.Helper()
	to, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{open: map[*http.Request]chan struct{}{}}
	f.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.Out.Header.Del("Accept-Encoding")
	}, FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		f.shut(true) // Close waits for the streams, which end with their connections
		server.CloseClientConnections()
		server.Close()
	})
	f.url = server.URL
	return f
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/watch" {
		f.proxy.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	end := make(chan struct{})
	f.came = append(f.came, r.Header.Get("Last-Event-ID"))
	broken := f.broken
	if !broken {
		f.open[r] = end
	}
	f.mu.Unlock()
	if broken {
		panic(http.ErrAbortHandler) // the connection is closed
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // the proxy's, where its client has gone
		f.proxy.ServeHTTP(w, r)
	}()
	select {
	case <-done:
	case <-end:
	}
	f.mu.Lock()
	delete(f.open, r)
	f.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// streams returns how many streams are open, and the Last-Event-ID of each that was ever asked for.
func (f *front) streams() (open int, came []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open), append(came, f.came...)
}

// shut ends all streams, and refuses others until it is opened again.
func (f *front) shut(broken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken = broken; !broken {
		return
	}
	for r, end := range f.open {
		close(end)
		delete(f.open, r)
	}
}

// told keeps what the shared worker tells the page.
const told = `
globalThis.told = []
if (globalThis.SharedWorker) globalThis.SharedWorker = class extends SharedWorker {
	constructor(...given) {
		super(...given)
		this.port.addEventListener("message", (e) => told.push(...e.data))
	}
}`

// told returns the parts that the page was told, after the first that has a text, and whether one was told whole.
func (r *reader) told(after string) (parts []any, whole bool) {
	r.t.Helper()
	var all []struct {
		Type string
		Part any
	}
	if err := json.Unmarshal([]byte(evaluate[string](r, `JSON.stringify(told.filter((m) => m.type !== "status"))`)), &all); err != nil {
		r.t.Fatal(err)
	}
	begun := false
	for _, m := range all {
		text, err := json.Marshal(m.Part)
		if err != nil {
			r.t.Fatal(err)
		}
		if begun {
			parts, whole = append(parts, m.Part), whole || m.Type == "state"
		}
		begun = begun || strings.Contains(string(text), after)
	}
	return parts, whole
}

// TestTheTabsOfABrowserShareAStream that is resumed where it broke: each is told every patch, once and in order.
func TestTheTabsOfABrowserShareAStream(t *testing.T) {
	w := newWorld(t, "600", 1) // nothing lands before the test is over
	w.land("cart-more", "", ada, "More of the cart", map[string]string{"cart/c.txt": "fine\n"})
	f := newFront(t, w.url)
	first := newReader(t, &world{t: t, url: f.url})
	tabs := []*reader{first, first.another()}
	for _, r := range tabs {
		command(r, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: told})
		r.look(sizes[1], "light")
		r.open("/queues/shop")
		r.see("More of the cart")
		r.until("there is one stream", func() bool { open, _ := f.streams(); return open == 1 })
	}
	_, before := f.streams()

	// What the gateway sends to who loses nothing.
	response, err := http.Get(w.url + "/v1/watch?changes=shop")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var mu sync.Mutex
	var sent []string
	go func() {
		lines := bufio.NewReader(response.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if data, is := strings.CutPrefix(line, "data: "); is {
				mu.Lock()
				sent = append(sent, data)
				mu.Unlock()
			}
		}
	}()
	// mark has the change held for a reason, and waits until the gateway has sent that.
	mark := func(reason string) {
		t.Helper()
		w.post("/v1/queues/shop/changes/cart-more/hold", fmt.Sprintf(`{"who":"Ada","why":%q}`, reason))
		first.until("the gateway sends "+reason, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(strings.Join(sent, ""), reason)
		})
		w.post("/v1/queues/shop/changes/cart-more/release", "{}")
	}
	see := func(reason string) {
		t.Helper()
		for _, r := range tabs {
			r.until("the page is told "+reason, func() bool {
				return evaluate[bool](r, fmt.Sprintf(`told.some((m) => JSON.stringify(m).includes(%q))`, reason))
			})
		}
	}
	mark("the first reason")
	see("the first reason")
	f.shut(true)
	for _, r := range tabs {
		r.see("stale")
	}
	mark("the second reason")
	mark("the third reason")
	f.shut(false)
	see("the third reason")
	mark("the fourth reason")
	w.post("/v1/queues/shop/pause", `{"who":"Ada","why":"the last reason"}`)
	see("the last reason")
	for _, r := range tabs {
		r.see("Paused by Ada")
		r.see("live")
	}

	open, came := f.streams()
	if open != 1 || len(came) < len(before)+1 {
		t.Errorf("%d streams are open; %q came, %q before the break", open, came, before)
	}
	for _, id := range came[len(before):] {
		if id == "" {
			t.Errorf("a stream is asked for from its beginning after the break: %q", came)
		}
	}
	mu.Lock()
	var want []any
	begun := false
	for _, data := range sent {
		var part any
		if err := json.Unmarshal([]byte(data), &part); err != nil {
			t.Fatal(err)
		}
		if begun {
			want = append(want, part)
		}
		if begun = begun || strings.Contains(data, "the first reason"); strings.Contains(data, "the last reason") {
			break
		}
	}
	mu.Unlock()
	if len(want) < 4 { // a reason each, and the pause
		t.Fatalf("the gateway has sent no more than %v", want)
	}
	for i, r := range tabs {
		got, whole := r.told("the first reason")
		if whole || len(got) < len(want) || !reflect.DeepEqual(got[:len(want)], want) {
			t.Errorf("tab %d was told, one of them whole: %t,\n%v\nand the gateway has sent\n%v", i, whole, got, want)
		}
		r.allow("ERR_") // the proxy was away
		r.check(fmt.Sprint("tab ", i))
	}

	// What a tab watches alone comes by the one stream too, and its end leaves the others theirs.
	tabs[1].open("/queues/shop/changes/cart-more")
	tabs[1].see("Released by")
	tabs[1].do(chromedp.Navigate("about:blank"))
	w.post("/v1/queues/shop/resume", `{"who":"Ada","why":"all is well"}`)
	first.see("all is well")
	if open, came := f.streams(); open != 1 || came[len(came)-1] == "" {
		t.Errorf("%d streams are open; %q came", open, came)
	}
}

// TestAPageHasItsOwnStreamWhereTabsCannotShareOne.
func TestAPageHasItsOwnStreamWhereTabsCannotShareOne(t *testing.T) {
	f := newFront(t, started(t, showcase, "5"))
	r := newReader(t, &world{t: t, url: f.url})
	command(r, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: "delete globalThis.SharedWorker"})
	r.look(sizes[1], "light")
	r.open("/queues/shop")
	r.see("written ")
	r.until("there is one stream", func() bool { open, _ := f.streams(); return open == 1 })
	before := len(evaluate[string](r, `[...document.querySelectorAll(".why")].map((e) => e.innerText).join()`))
	r.until("the page is kept up", func() bool {
		return len(evaluate[string](r, `[...document.querySelectorAll(".why")].map((e) => e.innerText).join()`)) != before
	})
	r.check("a page without a shared worker")
	r.do(chromedp.Navigate("about:blank"))
	r.until("its stream ends with it", func() bool { open, _ := f.streams(); return open == 0 })
}
