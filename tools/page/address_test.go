package page_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chosen are the parameters that pages have in their addresses, but for the moment of the past and how a queue is shown.
var chosen = []string{
	"author", "change", "fold", "from", "in", "line", "log", "minutes", "open", "owner", "pick", "q", "queue", "rows", "span", "state", "step", "team", "tokens", "unfold", "weeks",
}

// TestRubbishInAnAddressDoesNoHarm: each page shows its heading and what it can, whatever was made of its address, and goes back from there.
func TestRubbishInAnAddressDoesNoHarm(t *testing.T) {
	r := newShowcase(t)
	r.allow("status of 4") // the gateway refuses rubbish too
	r.window(sizes[1], 1, "light")
	r.open("/queues/shop")
	r.see("Count returns too")
	values := []string{"-1", "1e308", "99999", "__proto__", "\x00\u202e%", hurts + strings.Repeat("long", 500)}
	moments := []string{"0", "yesterday", "-271821-04-20T00:00:00Z", "+275760-09-13T00:00:00Z", hurts}
	var all []string
	for _, path := range []string{
		"/", "/services", "/dead-letters", "/access", "/pools/linux", "/queues/shop", "/queues/shop?view=graph", "/queues/shop/changes/tax-table", "/queues/shop/flakes", "/queues/shop/models", "/queues/shop/analytics",
	} {
		path, view, _ := strings.Cut(path, "?")
		for _, value := range values {
			address := path + "?" + view
			for _, name := range chosen {
				address += "&" + name + "=" + url.QueryEscape(value)
			}
			all = append(all, address)
		}
		for _, at := range moments {
			all = append(all, path+"?"+view+"&at="+url.QueryEscape(at))
		}
	}
	for _, part := range []string{"%", "%ff", "..", "%2e%2e%2f", url.PathEscape(hurts), "__proto__"} {
		all = append(all, "/"+part, "/queues/"+part, "/pools/"+part, "/queues/shop/changes/"+part, "/queues/"+part+"/flakes")
	}
	addresses, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	// The page is not loaded again: what an address did to it would be gone.
	lost := evaluate[[]string](r, fmt.Sprintf(`(async () => {
		const lost = []
		const goes = async (how) => {
			how()
			await new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
		}
		for (const address of %s) {
			await goes(() => { history.pushState(null, "", address); dispatchEvent(new PopStateEvent("popstate")) })
			if (!document.querySelector("h1")?.innerText || !document.querySelector("header a")) lost.push(address)
			for (const b of document.querySelectorAll("main button")) if (/^(Earlier|Later)/.test(b.innerText) && !b.disabled) await goes(() => b.click())
		}
		return lost
	})()`, addresses))
	for _, address := range lost {
		t.Errorf("%.200q has no heading or no links", address)
	}
	if evaluate[bool](r, "globalThis.hurt !== undefined") {
		t.Error("something of an address ran")
	}
	r.click("header a", "Dead letters")
	r.see("2 dead letters")
	evaluate[int](r, "history.go(-2), 0")
	r.until("it goes back", func() bool { return !strings.Contains(r.text(), "2 dead letters") })
	r.open("/queues/shop")
	r.see("Count returns too")
	r.check("rubbish in addresses")
}

// TestASliderThatIsDraggedForLongIsFollowed: a browser takes 200 addresses in ten seconds and no more, unless it is told to.
func TestASliderThatIsDraggedForLongIsFollowed(t *testing.T) {
	r := newShowcaseAt(t, started(t, showcase), chromedp.Flag("disable-ipc-flooding-protection", false))
	r.window(sizes[1], 1, "light")
	r.open("/dead-letters?span=60&at=2026-01-05T10%3A20%3A00Z")
	r.see("2 dead letters")
	dragged := evaluate[string](r, `(async () => {
		const slider = document.querySelector(".past-bar input[type=range]")
		for (let i = 0; i < 300; i++) {
			slider.value = String(500 + i)
			slider.dispatchEvent(new Event("input", { bubbles: true }))
			if (i % 100 === 99) await new Promise((done) => setTimeout(done, 20))
		}
		return slider.getAttribute("aria-valuetext")
	})()`)
	if !strings.Contains(dragged, "10:17:5") && !strings.Contains(dragged, "10:18:00") {
		t.Errorf("the slider is left at %s", dragged)
	}
	if at := r.chosen("at"); !strings.HasPrefix(at, "2026-01-05T10:17:5") && !strings.HasPrefix(at, "2026-01-05T10:18:0") {
		t.Errorf("the moment of the address is %s", at)
	}
	r.check("a slider that is dragged")
}

// TestWhatIsUnfoldedStaysSo where the page is loaded again.
func TestWhatIsUnfoldedStaysSo(t *testing.T) {
	r := newShowcase(t)
	r.window(sizes[1], 1, "light")
	r.open("/queues/shop/changes/checkout-more")
	r.see("What it waits for")
	unfolded := func() []bool {
		return evaluate[[]bool](r, `[...document.querySelectorAll("main details")].map((e) => e.open)`)
	}
	before := unfolded()
	if len(before) < 2 {
		t.Fatalf("%d parts of the page can be folded", len(before))
	}
	// Each is turned, the last one first, so that none is gone before its turn.
	evaluate[bool](r, `([...document.querySelectorAll("main details")].reverse().forEach((e) => e.querySelector("summary").click()), true)`)
	address := r.address()
	turned := unfolded()
	for i := range before {
		if turned[i] == before[i] {
			t.Errorf("%d of %d was not turned by a click", i+1, len(before))
		}
	}
	r.open(address)
	r.see("What it waits for")
	r.until("all is as the reader left it", func() bool { return slices.Equal(unfolded(), turned) })
	r.check("what is unfolded")
}

// TestADialogGivesTheFocusBack to what opened it, however it is closed, so that who has the keys alone goes on from there.
func TestADialogGivesTheFocusBack(t *testing.T) {
	r := newShowcase(t)
	r.window(sizes[1], 1, "light")
	r.open("/queues/shop/changes/checkout-more")
	r.see("What it waits for")
	for _, opener := range []string{".actions button.danger", "header > button[aria-haspopup=dialog]"} {
		for name, closes := range map[string]func(){
			"Esc":        func() { r.do(chromedp.KeyEvent(kb.Escape)) },
			"its button": func() { r.do(chromedp.Focus("dialog .close"), chromedp.KeyEvent(kb.Enter)) },
		} {
			r.do(chromedp.Focus(opener), chromedp.KeyEvent(kb.Enter))
			r.until("a dialog is open", func() bool { return evaluate[bool](r, `!!document.querySelector("dialog[open]")`) })
			if !evaluate[bool](r, `document.querySelector("dialog").contains(document.activeElement)`) {
				t.Errorf("%s: the focus is not in the dialog", opener)
			}
			closes()
			r.until("the dialog is closed", func() bool { return !evaluate[bool](r, `!!document.querySelector("dialog[open]")`) })
			r.until(opener+" has the focus again after "+name, func() bool {
				return evaluate[bool](r, fmt.Sprintf("document.activeElement === document.querySelector(%q)", opener))
			})
		}
	}
	r.check("dialogs")
}
