package page_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const tenMinutes = "/pools/linux?at=2026-01-05T10%3A30%3A00Z&minutes=10"

// press is a key in the element that has the focus.
func (r *reader) press(key string) {
	r.t.Helper()
	r.do(chromedp.KeyEvent(key))
}

// addressed waits until a parameter of the address is as it has to be.
func (r *reader) addressed(name, want string) {
	r.t.Helper()
	script := fmt.Sprintf(`new URLSearchParams(location.search).get(%q) ?? ""`, name)
	r.until(name+" of the address is "+want, func() bool { return evaluate[string](r, script) == want })
}

func TestTheWorkersOfAPoolAreReadByKeysByTheMouseAndAsATable(t *testing.T) {
	r := newShowcase(t)
	for _, s := range sizes {
		r.window(s, 1, "light")
		for _, view := range []string{"", "&view=table"} {
			r.open(tenMinutes + view)
			r.see("4 workers, busy 44 % of the time")
			r.check(s.name + view)
		}
	}
	r.window(sizes[1], 1, "light")
	r.open(tenMinutes)
	r.see("4 workers, busy 44 %")
	for _, text := range []string{"2 min 55 s of it lost on steps that left no result", "with open steps that need labels or resources", "while a tree was made", "for a reason that is not known"} {
		r.see(text)
	}

	// Each part has a name; keys go from one to the other, pick it, and zoom.
	if n := evaluate[int](r, `[...document.querySelectorAll(".item[data-item]")].filter((e) => !e.getAttribute("aria-label")).length`); n > 0 {
		t.Errorf("%d parts of the chart have no name", n)
	}
	evaluate[bool](r, `(document.querySelector('.item[data-item][tabindex="0"]').focus(), true)`)
	said := func(text string) {
		t.Helper()
		r.until("it is said "+text, func() bool {
			return strings.Contains(evaluate[string](r, `document.querySelector(".said").innerText`), text)
		})
	}
	said("Idle for 4.0 s: no step was open.")
	r.press(kb.ArrowRight)
	said("Idle for 16 s: no step was open, and the tree of a build was being made.")
	r.press(kb.ArrowRight)
	said("//menu:menu for menu-wide: passed after 92 s.")
	r.press(kb.ArrowDown)
	said("//menu:keys for menu-wide: failed after 44 s. Command \"test\" ended with exit code 1.")
	r.press(kb.ArrowDown)
	said("//theme:theme for menu-wide: aborted after 44 s. The step was ended: no build needs its result any more.")
	r.press(kb.ArrowRight)
	r.press(kb.ArrowRight)
	said("//menu:menu for faster-start: ended for a change that was moved to the front after 2 min 11 s.")
	r.press(kb.Enter)
	r.addressed("step", "linux-1/3 2026-01-05T10:21:14Z //menu:menu")
	if to := evaluate[string](r, `document.querySelector(".said a").getAttribute("href")`); to != "/queues/tools/changes/faster-start?at=2026-01-05T10%3A23%3A25Z" {
		t.Errorf("the step leads to %s", to)
	}
	r.press("+")
	r.addressed("at", "2026-01-05T10:24:50.000Z")
	r.addressed("minutes", "5")
	r.see("5 min")
	r.check("zoomed by a key")

	// By the mouse: a part of the chart, down to a minute.
	r.open(tenMinutes)
	r.see("4 workers, busy 44 %")
	evaluate[bool](r, `(() => {
		const box = document.querySelector(".canvas.workers"), lines = [...box.querySelectorAll("line.base")].map((l) => l.getBoundingClientRect().left)
		const at = (type, x) => box.querySelector("svg").dispatchEvent(new PointerEvent(type, {bubbles: true, button: 0, pointerType: "mouse", clientX: x, clientY: box.getBoundingClientRect().top + 4}))
		at("pointerdown", lines[6]); at("pointermove", lines[6] + 20); at("pointermove", lines[7]); at("pointerup", lines[7])
		box.querySelector("svg").dispatchEvent(new MouseEvent("click", {bubbles: true}))
		return true
	})()`)
	r.addressed("at", "2026-01-05T10:27:00.000Z")
	r.addressed("minutes", "1")
	r.see("//lint:lint")
	r.click("button", "Earlier")
	r.addressed("at", "2026-01-05T10:26:30.000Z")
	r.click("button", "Zoom out")
	r.addressed("at", "2026-01-05T10:27:00.000Z")
	r.addressed("minutes", "2")
	evaluate[bool](r, `(history.back(), true)`)
	r.addressed("at", "2026-01-05T10:26:30.000Z")
	r.addressed("minutes", "1")
	r.click("button", "Now")
	r.addressed("at", "")
	r.addressed("minutes", "1")
	r.see("//icons:icons")

	for range 6 {
		r.click("button", "Zoom in")
		r.click("button", "Zoom out")
	}
	if at := r.chosen("at"); at != "" {
		t.Errorf("up to now, zooming in and out goes to %s", at)
	}

	// One change, and the table.
	r.open(tenMinutes + "&change=theme-dark")
	r.see("4 workers, busy 44 %")
	r.until("the steps of others are pale", func() bool {
		return evaluate[int](r, `document.querySelectorAll(".item.run.dim").length`) == 9 && evaluate[int](r, `document.querySelectorAll(".item.run:not(.dim)[data-item]").length`) == 4
	})
	r.click("button", "Table")
	r.addressed("view", "table")
	r.see("//render:render")
	if text := r.text(); strings.Contains(text, "//start:start") || !strings.Contains(text, "the open steps needed what few machines have: gpu") {
		t.Errorf("the table of one change shows:\n%s", text)
	}
	r.check("the table")

	// Addresses that name nothing.
	r.open("/pools/linux?at=x&minutes=y&step=" + url.QueryEscape(markup))
	r.see("4 workers")
	r.check("an address with no time in it")
	r.allow("status of 40")
	r.open("/pools/" + url.PathEscape(markup))
	r.see("No queue has the pool")
	r.see("The pools are: default, linux.")
	r.check("what cannot be shown")
}

// TestTheWorkersAreShownAsTheyWork: steps come onto the page by themselves, and lead from the queue's page and to the change's.
func TestTheWorkersAreShownAsTheyWork(t *testing.T) {
	w := newWorld(t, "2", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.open("/queues/shop")
	r.click("header a", "Workers")
	r.see("Workers of pool default")
	r.open("/pools/default?minutes=5&view=table")
	r.see("Workers of pool default")
	w.land("more-cart", "more-cart", ada, "Count returns", map[string]string{"cart/b.txt": "fine\n"})
	r.see("//cart\t")
	r.see("Count returns") // among the changes
	// The mainline is verified last, while workers are idle.
	r.see("//search\t")
	r.check("a pool at work")
	r.click("button", "Chart")
	r.until("its steps are drawn", func() bool {
		return evaluate[bool](r, `[...document.querySelectorAll(".item.run[data-item]")].some((e) => e.getAttribute("aria-label").startsWith("//cart for Count returns: "))`)
	})
	r.check("a pool at work, drawn")
}
