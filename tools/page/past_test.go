package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// get returns the answer of a route.
func (w *world) get(path string) string {
	w.t.Helper()
	response, err := http.Get(w.url + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %d %s %v", path, response.StatusCode, text, err)
	}
	return string(text)
}

var shownOfThePast = []string{
	"/v1/queues", "/v1/queues/shop", "/v1/queues/shop/changes", "/v1/queues/shop/graph", "/v1/queues/shop/changes/round-up", "/v1/queues/shop/changes/round-up/explain",
	"/v1/queues/shop/changes/tax-table",
}

// still waits until nothing has happened for a second, and returns a moment in it and what was served then.
func (w *world) still() (at string, served []string) {
	w.t.Helper()
	all := func() (out []string) {
		for _, path := range shownOfThePast {
			out = append(out, w.get(path))
		}
		return out
	}
	for range 60 {
		served = all()
		moment := time.Now().UTC()
		time.Sleep(time.Second)
		if fmt.Sprint(all()) == fmt.Sprint(served) {
			return moment.Format(time.RFC3339Nano), served
		}
	}
	w.t.Fatal("something happens all the time")
	return "", nil
}

func TestThePastOfAnIncidentIsShownAndPlayed(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	w.land("tax-table", "", cy, "New tax table", map[string]string{"tax/b.txt": "a bug\n"})
	w.land("round-up", "", ada, "Round prices up", map[string]string{"prices/b.txt": "fine\n"})
	w.post("/v1/queues/shop/changes/round-up/hold", `{"who":"Ada","why":"not before the sale"}`)
	r.until("the change with a bug is rejected", func() bool { return w.state("tax-table") == "rejected" })
	w.post("/v1/queues/shop/pause", `{"who":"Grace","why":"incident 7"}`)
	at, served := w.still()
	w.post("/v1/queues/shop/resume", `{"who":"Grace"}`)
	w.post("/v1/queues/shop/changes/round-up/release", "{}")
	r.until("the held change lands", func() bool { return w.state("round-up") == "landed" })

	// Byte for byte what was served then.
	for i, path := range shownOfThePast {
		if then := w.get(path + "?at=" + url.QueryEscape(at)); then != served[i] {
			t.Errorf("%s was\n%s\nand of the past is\n%s", path, served[i], then)
		}
	}

	query := "at=" + url.QueryEscape(at)
	r.eachLook("past-queue", func() {
		r.open("/queues/shop?" + query)
		r.see("This is the past")
		r.see("Paused by Grace since")
		r.see(": incident 7. Builds go on, nothing lands.")
		r.see("‖ held")
	})
	if buttons := evaluate[int](r, `[...document.querySelectorAll("main button")].filter((b) => /^(Pause|Resume|Hold|Release|Cancel|Retry)/.test(b.innerText)).length + document.querySelectorAll("main input[type=checkbox][aria-label^=Pick]").length`); buttons > 0 {
		t.Errorf("%d actions are offered in the past", buttons)
	}
	r.look(sizes[1], "light")

	// Links stay in the past.
	r.click("button.open", "Round prices up")
	r.click(".panel a", "Everything about it")
	r.see("What happened")
	r.see("not before the sale")
	r.see("What was predicted of it then, and how its builds were ranked, is not shown of the past.")
	if where := r.address(); !strings.Contains(where, "at=") {
		t.Errorf("the link has left the past: %s", where)
	}
	if strings.Contains(r.text(), "On the mainline") {
		t.Error("the change of the past has landed")
	}
	r.check("a change of the past")
	r.open("/queues/shop?view=graph&" + query)
	r.see("1 change that meets no other")
	r.check("the graph of the past")

	// So is the page of all queues.
	r.open("/?" + query)
	r.see("Paused by Grace since")
	r.see(": incident 7. Builds go on, nothing lands.")
	r.check("the queues of the past")

	// The slider goes on with the keys, and ends at the present.
	r.open("/queues/shop?span=10&" + query)
	r.see("Paused by Grace")
	r.do(chromedp.Focus(".past-bar input[type=range]"))
	before := r.address()
	r.do(chromedp.KeyEvent(kb.ArrowRight))
	if r.address() == before {
		t.Error("the address has no other moment")
	}
	r.do(chromedp.KeyEvent(kb.End))
	r.until("the present is shown", func() bool {
		return !strings.Contains(r.text(), "This is the past") && !strings.Contains(r.text(), "Paused by Grace")
	})
	r.see("live")

	// Played forward, it comes to the landing.
	r.open("/queues/shop?span=10&" + query)
	r.see("Paused by Grace")
	r.click(".past-bar button", "Play")
	r.until("it is played to where the queue is not paused", func() bool { return !strings.Contains(r.text(), "Paused by Grace") })
	r.check("the past is played")
	r.open("/queues/shop?" + query)
	r.see("Paused by Grace")
	r.click(".past-sign button", "Back to now")
	r.see("live")
	r.see("Round prices up")
	r.check("back from the past")
}

func TestAMomentThatIsNoneIsSaid(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.allow("400")
	r.open("/queues/shop?at=yesterday")
	r.see("The address names no moment")
	r.see("is not a time")
	if text := r.text(); strings.Contains(text, "Reading") {
		t.Errorf("it goes on reading:\n%s", text)
	}
	r.click("main button", "Back to now")
	r.see("Nothing has been asked for yet")
	r.check("no moment")
}

func TestListsAreShownAsTheyWere(t *testing.T) {
	r := newShowcase(t)
	r.window(sizes[1], 1, "light")
	shows := func(path, text string, hides ...string) {
		t.Helper()
		r.open(path)
		r.see("This is the past")
		r.see(text)
		for _, hidden := range hides {
			if text := r.text(); strings.Contains(text, hidden) {
				t.Errorf("%s shows %q:\n%s", path, hidden, text)
			}
		}
	}
	shows("/dead-letters?at=2026-01-05T10%3A28%3A00Z", "the queue is there now", "Send again")
	shows("/dead-letters?at=2026-01-05T10%3A20%3A00Z", "2 dead letters", "the queue is there now")
	shows("/dead-letters?at=2026-01-05T09%3A00%3A00Z", "1 dead letter", "linter")
	shows("/queues/shop/models?at=2026-01-05T09%3A00%3A00Z", "0a44b1e2c6d8", "Roll back", "Use it")
	shows("/queues/shop/models?at=2026-01-05T08%3A00%3A00Z", "5f1d0c7a9b3e", "0a44b1e2c6d8")
	r.click("header a", "Access") // links stay in the past
	r.see("nightly build")
	r.see("dashboard")
	shows("/access?at=2026-01-01T00%3A00%3A00Z", "nightly build", "dashboard", "Make a token", "Revoke")
	r.check("the past of lists")
	r.do(chromedp.Focus(".past-bar input[type=range]"))
	r.do(chromedp.KeyEvent(kb.End))
	r.see("dashboard")
	r.see("Make a token")
}

// TestPagesOfEverythingElseStayInThePast when they are gone to from there; what has none says so, and leads back to it.
func TestPagesOfEverythingElseStayInThePast(t *testing.T) {
	r := newShowcase(t)
	r.window(sizes[1], 1, "light")
	r.open("/queues/shop?at=2026-01-05T10%3A00%3A20Z")
	r.see("This is the past")
	for _, c := range []struct{ link, shows, hides string }{
		{"Services", "claimed 30 min ago", "build-3"},
		{"Access", "nightly build", "Make a token"},
		{"Figures", "What if? simulates the newest changes, so it is of the present alone.", "Simulate"},
		{"Models", "priors predict", "Roll back"},
	} {
		if c.link == "Figures" { // the pages of a queue
			r.click("header a", "shop")
			r.see("Count returns too")
		}
		r.click("header a", c.link)
		r.see("This is the past")
		r.see(c.shows)
		if text := r.text(); strings.Contains(text, c.hides) {
			t.Errorf("%s shows %q:\n%s", c.link, c.hides, text)
		}
		if at := r.chosen("at"); at != "2026-01-05T10:00:20Z" {
			t.Errorf("%s: the moment is %q", c.link, at)
		}
		if bars := evaluate[int](r, `document.querySelectorAll(".past-bar").length`); bars != 1 {
			t.Errorf("%s has %d sliders", c.link, bars)
		}
		r.check(c.link)
	}

	// Figures are of the moment, and are read again for another.
	r.open("/queues/shop/analytics?at=2025-12-24T12%3A00%3A00Z")
	r.see("What had happened by Dec 24, 2025")
	r.see("//catalog:catalog")
	if text := evaluate[string](r, "document.body.textContent"); !strings.Contains(text, "Dec 22") || strings.Contains(text, "Dec 29") || strings.Contains(text, "//checkout:checkout") {
		t.Errorf("the figures of the past have what came later:\n%s", text)
	}
	r.do(chromedp.Focus(".past-bar input[type=range]"))
	r.do(chromedp.KeyEvent(kb.End))
	r.see("//checkout:checkout")
	r.see("Simulate")
	r.see("live")
}
