// Package page_test looks at the web page in Chromium, with a landfall up that lands real changes.
package page_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// eachLook runs a test at three sizes in both themes.
func (r *reader) eachLook(name string, test func()) {
	r.t.Helper()
	for _, s := range sizes {
		for _, theme := range []string{"light", "dark"} {
			r.look(s, theme)
			test()
			where := fmt.Sprintf("%s-%s-%s", name, s.name, theme)
			r.shoot(where)
			r.check(where)
		}
	}
}

// state returns what has become of a change, by the API.
func (w *world) state(id string) string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), "GET", w.url+"/v1/queues/shop/changes/"+url.PathEscape(id), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var c struct{ State string }
	if err := json.Unmarshal(text, &c); err != nil || response.StatusCode == 400 {
		w.t.Fatalf("%s: %s %v", id, text, err)
	}
	return c.State
}

const (
	ada = "Ada <ada@example.com>"
	cy  = "Cy Young <cy@example.com>"
)

func TestEveryPageIsSoundAtThreeSizesInBothThemes(t *testing.T) {
	w := newWorld(t, "4", 2)
	r := newReader(t, w)
	r.eachLook("empty", func() {
		r.open("/queues/tools")
		r.see("landfall land")
	})
	w.land("tax-table", "", cy, "New tax table", map[string]string{"tax/b.txt": "a bug\n"})
	w.land("round-up", "", ada, "Round prices up", map[string]string{"prices/b.txt": "fine\n"})
	for i, name := range []string{"cart", "catalog", "search", "prices", "tax", "checkout"} {
		w.land(name+"-more", "", "Bo <bo@example.com>", "More of the "+name, map[string]string{fmt.Sprintf("%s/c%d.txt", name, i): "fine\n"})
	}
	// Three are held, so that the queue is not empty however long the pictures take.
	held := []string{"round-up", "prices-more", "checkout-more"}
	for _, id := range held {
		w.post("/v1/queues/shop/changes/"+id+"/hold", `{"who":"Ada","why":"not before the sale"}`)
	}
	r.eachLook("queues", func() {
		r.open("/")
		r.see("in the queue")
	})
	r.eachLook("services", func() {
		r.open("/services")
		r.see("2 workers busy, on 1 machine")
		r.see("Partitions")
		r.see("lander")
	})
	r.eachLook("queue", func() {
		r.open("/queues/shop")
		r.see("More of the checkout")
	})
	r.eachLook("graph", func() {
		r.open("/queues/shop?view=graph")
		r.see("changes that meet")
		r.do(chromedp.Focus("a.node[tabindex='0']"))
		r.until("the graph says what is pointed at", func() bool {
			return strings.HasPrefix(evaluate[string](r, `document.querySelector(".said").innerText`), "#1 ")
		})
	})
	r.eachLook("change-waits", func() {
		r.open("/queues/shop/changes/checkout-more")
		r.see("What happened")
	})
	r.open("/queues/shop")
	r.until("the change with a bug is rejected", func() bool { return w.state("tax-table") == "rejected" })
	r.eachLook("row-opened", func() {
		r.open("/queues/shop?open=tax-table")
		r.see("What failed")
	})
	r.eachLook("change-rejected", func() {
		r.open("/queues/shop/changes/tax-table")
		r.click(".failed button", "Output")
		r.see("checking tax")
	})
	w.post("/v1/queues/shop/changes/round-up/release", "{}")
	r.until("a change lands", func() bool { return w.state("round-up") == "landed" })
	r.eachLook("change-landed", func() {
		r.open("/queues/shop/changes/round-up")
		r.see("On the mainline")
	})
	for _, p := range []struct{ name, path, text string }{
		{"dead-letters", "/dead-letters", "There are none"}, {"access", "/access?queue=shop", "Access"}, {"models", "/queues/shop/models", "priors"},
		{"flakes", "/queues/shop/flakes", "1 target rejected changes"}, {"workers", "/pools/default", "Workers of pool default"},
	} {
		r.eachLook(p.name, func() {
			r.open(p.path)
			r.see(p.text)
		})
	}
	r.eachLook("figures", func() {
		r.open("/queues/shop/analytics")
		r.until("there are figures, or no history", func() bool {
			text := evaluate[string](r, `document.querySelector("main").innerText`)
			return strings.Contains(text, "What if?") || strings.Contains(text, "There is no history")
		})
	})
	r.eachLook("nothing", func() {
		r.open("/queues/shop/changes/ghost")
		r.see("The queue has no such change")
	})
	r.eachLook("no-queue", func() {
		r.open("/queues/ghost")
		r.see("There is no such queue")
	})
}

func TestAReaderFollowsAndSteersChanges(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")

	// The page is opened once, and never touched.
	r.open("/queues/shop/changes/round-up")
	r.see("The queue has no such change")
	w.land("round-up", "", ada, "Round prices up", map[string]string{"prices/b.txt": "fine\n"})
	r.see("Admitted as revision 1")
	r.see("testing")
	r.see("On the mainline")
	r.see("Proof: 2 target versions")
	r.check("a change that landed")

	// From the list of queues it is two clicks to why a change was rejected.
	w.land("tax-table", "", cy, "New tax table", map[string]string{"tax/b.txt": "a bug\n"})
	r.until("the change with a bug is rejected", func() bool { return w.state("tax-table") == "rejected" })
	r.open("/")
	r.click(".card h2 a", "shop")
	r.click("button.open", "New tax table")
	r.see("What failed")
	r.see("FAIL tax: there is a bug")
	r.check("a change that was rejected")

	// Its output has the address of the page.
	r.click(".failed button", "Output")
	r.see("tax/b.txt:1:a bug")
	if red := evaluate[int](r, `document.querySelectorAll(".lines .c1").length`); red == 0 {
		t.Error("the red of the output is not shown")
	}
	r.click(".lines li:nth-child(2) a", "")
	again := r.address()
	r.open(again)
	r.see("tax/b.txt:1:a bug")
	if chosen := evaluate[int](r, `document.querySelectorAll(".lines li.chosen").length`); chosen != 1 {
		t.Errorf("the address %s does not choose the line", again)
	}
	r.do(chromedp.SendKeys(".log input", "1:a BUG"))
	r.see("1 line found")
	if lines := evaluate[[]string](r, `[...document.querySelectorAll(".lines li span[dir]")].map((e) => e.innerText)`); !slices.Equal(lines, []string{"tax/b.txt:1:a bug"}) {
		t.Errorf("what is found is %q", lines)
	}
	if whole := evaluate[string](r, `fetch(document.querySelector(".log a[download]").href).then((a) => a.text())`); !strings.HasPrefix(whole, "checking tax\n") || !strings.Contains(whole, "tax/b.txt:1:a bug") {
		t.Errorf("what is downloaded is %q", whole)
	}

	// Hold, release and cancel, each after it is confirmed, with the reader's name.
	r.open("/queues/shop")
	r.do(chromedp.SendKeys(".who input", "Gra"))
	w.post("/v1/queues/shop/pause", `{"who":"Bo"}`) // it does not land before the reader has held it
	w.land("cart-more", "", ada, "More of the cart", map[string]string{"cart/c.txt": "fine\n"})
	r.see("More of the cart")
	r.do(chromedp.Evaluate[chromedp.Void](`history.pushState(null, "", "?drawn=again"); dispatchEvent(new PopStateEvent("popstate"))`)) // the page is drawn again while the name is typed
	r.do(chromedp.SendKeys(".who input", "ce\n"))
	r.click("button.open", "More of the cart")
	r.click(".actions button", "Hold")
	r.see("does not land until it is released")
	r.do(chromedp.SendKeys("dialog input", "not before the sale"))
	r.check("a dialog")
	r.click("dialog button", "Hold")
	r.see("‖ held")
	r.see("not before the sale")
	w.post("/v1/queues/shop/resume", `{"who":"Bo"}`)
	r.click(".actions button", "Cancel")
	r.see("It leaves the queue")
	r.click("dialog button", "Back")
	if state := w.state("cart-more"); state == "cancelled" {
		t.Error("the change was cancelled although the reader went back")
	}
	r.click(".actions button", "Cancel")
	r.click("dialog button.danger", "Cancel")
	r.until("the change is cancelled", func() bool { return w.state("cart-more") == "cancelled" })
	r.see("Cancelled by Grace")

	r.click(".actions button", "Retry")
	r.click("dialog button.main", "Retry")
	r.until("the change lands after all", func() bool { return w.state("cart-more") == "landed" })
	r.see("On the mainline")
	r.check("a change that landed when it was asked for again")

	// What cannot be done says what to do.
	w.stop()
	r.see("stale")
	r.click("button", "Pause")
	r.click("dialog button.main", "Pause")
	r.see("The gateway does not answer")
}

func TestTheGraphIsReadWithTheKeys(t *testing.T) {
	w := newWorld(t, "30", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	// The services are shown as they are, without a touch of the page.
	r.open("/services")
	r.see("of 2 workers busy")
	w.land("prices-more", "", ada, "More of the prices", map[string]string{"prices/b.txt": "fine\n"})
	w.land("search-more", "", ada, "More of the search", map[string]string{"search/b.txt": "fine\n"})
	w.land("tax-more", "", cy, "More of the tax", map[string]string{"tax/b.txt": "fine\n"})
	r.see("2 of 2 workers busy")
	r.open("/queues/shop")
	r.see("More of the tax")
	r.do(chromedp.KeyEvent("g"))
	r.see("2 changes that meet")
	r.see("1 change that meets no other")
	said := func(text string) {
		t.Helper()
		r.until("the graph says "+text, func() bool {
			return strings.Contains(evaluate[string](r, `document.querySelector(".said").innerText`), text)
		})
	}
	r.do(chromedp.Focus("a.node[tabindex='0']"))
	said("#1 More of the prices is")
	said("#3 meets it from behind")
	r.do(chromedp.KeyEvent(kb.ArrowRight))
	said("#2 More of the search is")
	said("It meets nothing ahead")
	r.do(chromedp.KeyEvent(kb.ArrowRight))
	said("It meets #1 in //checkout")
	r.do(chromedp.KeyEvent(kb.ArrowUp))
	said("#1 More of the prices is")
	r.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	r.see("What it waits for")
	if open := r.chosen("open"); open != "tax-more" {
		t.Errorf("the change that is opened is %q", open)
	}
	r.check("the graph with a change that is opened")
}

func TestALongQueueIsDrawnAsDensities(t *testing.T) {
	w := newWorld(t, "300", 1)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	const many = 230
	folders := []string{"cart", "catalog", "prices", "search", "tax"}
	base := strings.TrimSpace(w.git("rev-parse", "origin/main"))
	push := []string{"push", "-q", "origin"}
	for i := range many {
		w.git("checkout", "-q", base)
		w.write(fmt.Sprintf("%s/n%d.txt", folders[i%5], i), "fine\n")
		w.commit(ada, "change")
		w.git("branch", "-q", fmt.Sprint("n", i))
		push = append(push, fmt.Sprint("n", i))
	}
	w.git(push...)
	for i := range many {
		w.ask(asked{Title: fmt.Sprint("Number ", i), Author: ada, Entries: []map[string]string{{"ref": fmt.Sprint("n", i)}}})
	}
	r.open("/queues/shop?view=graph")
	r.see(fmt.Sprint(many, " changes. A row"))
	r.shoot("graph-densities")
	r.check("densities")
	said := func(pattern string) {
		t.Helper()
		r.until("the graph says "+pattern, func() bool {
			return regexp.MustCompile(pattern).MatchString(evaluate[string](r, `document.querySelector(".said").innerText`))
		})
	}
	r.do(chromedp.Focus(".parts button"))
	said(`^Places 1 to 120: (\d+ testing, )?\d+ waiting, in 3 rows of changes that meet\.$`)
	r.do(chromedp.KeyEvent(kb.Tab))
	said(`^Places 121 to 230: (\d+ testing, )?\d+ waiting, in 3 rows of changes that meet\.$`)
	evaluate[bool](r, `document.querySelector(".densities g").dispatchEvent(new MouseEvent("mouseenter"))`)
	said(`^Places 1 to 3, of the 138 meet: (1 testing, 1 waiting|2 (testing|waiting))\.$`)
	r.do(chromedp.Focus(".parts button:nth-child(2)"), chromedp.KeyEvent(kb.Enter))
	r.see("Places 121 to 230")
	r.click("main .line button", "All 230")
	r.click(".parts button", "121–230")
	r.see("Places 121 to 230")
	r.shoot("graph-part")
	r.check("a part of a long queue")
	r.open("/queues/shop")
	r.see("Number 99")
	r.do(chromedp.Evaluate[chromedp.Void]("scrollTo(0, document.body.scrollHeight)"))
	r.see("Number 150")
	r.check("a long table")
}

func TestAPageGoesOnWhereItsStreamBroke(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "dark")
	r.open("/queues/shop")
	r.see("Nothing has been asked for yet")
	w.stop()
	r.see("stale")
	w.start()
	r.see("live")
	w.land("round-up", "", ada, "Round prices up", map[string]string{"prices/b.txt": "fine\n"})
	r.see("Round prices up")
	r.see("landed")
	r.allow("ERR_") // The gateway was away.
	r.check("after the gateway was away")
}

func TestNothingOfAChangeRuns(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[0], "light")
	const hurt = `<img src=x onerror="globalThis.hurt=1"><script>globalThis.hurt=1</script>'"><svg/onload=alert(1)>`
	long := strings.Repeat("word", 1<<18) // 1 MB
	branch := "feature/<img/src=x/onerror=alert(1)>&\"';%2F"
	branch = w.land(branch, "", hurt, hurt, map[string]string{"prices/b.txt": "fine\n"})
	w.land("long", "<b>bold</b>/../%00", "Ada "+long[:200], long[:900], map[string]string{"cart/b.txt": "fine\n"})
	w.land("turned", "", "\u05d0\u05d3\u05d4 <ada@example.com>", "\u05db\u05d5\u05ea\u05e8\u05ea (abc) 12", map[string]string{"search/b.txt": "fine\n"})
	w.land("output", "", ada, "Output that hurts", map[string]string{
		"tax/landfall.yaml": "targets:\n  - name: tax\n    kind: test\n    sources: [\"*.txt\", \"*.out\"]\n    steps: [{ name: check, run: [sh, -c, \"cat tax/*.out; exit 1\"] }]\n",
		"tax/x.out":         long + "\nerror: " + hurt + "\n\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\n\x1b[31m\u202eturned\x1b[0m\n\x00\x01\x02\x7f\n" + long[:20_000] + "\n",
	})
	for _, id := range []string{branch, "<b>bold</b>/../%00", "turned", "output"} {
		r.until("the change "+id+" is decided", func() bool { s := w.state(id); return s == "landed" || s == "rejected" })
	}
	sound := func(where string) {
		t.Helper()
		if evaluate[bool](r, `globalThis.hurt !== undefined || document.querySelectorAll("img, iframe, script:not([src='/page.js']), #page b, a[href^='javascript']").length > 0`) {
			t.Errorf("%s: something of a change became a part of the page", where)
		}
		r.shoot("hostile-" + where)
		r.check(where)
	}
	// So are the reasons that people give.
	reason, err := json.Marshal(map[string]string{"who": hurt, "why": hurt})
	if err != nil {
		t.Fatal(err)
	}
	w.post("/v1/queues/shop/pause", string(reason))
	w.land("kept", "", ada, "Kept", map[string]string{"cart/k.txt": "fine\n"})
	w.land("behind", "", ada, "Behind", map[string]string{"cart/k.txt": "fine, too\n"})
	w.post("/v1/queues/shop/changes/kept/hold", string(reason))
	r.open("/queues/shop")
	r.see("Paused by <img src=x")
	r.see("It is held by <img src=x")
	sound("reasons")
	r.open("/queues/shop/changes/behind")
	r.see("What kept waits for: It is held by <img src=x")
	sound("reasons-of-another")
	w.post("/v1/queues/shop/resume", string(reason))
	r.open("/queues/shop")
	r.see("resumed by <img src=x")
	sound("resumed")
	r.open("/queues/shop")
	r.see("<script>globalThis.hurt=1</script>")
	sound("queue")
	for i, id := range []string{branch, "<b>bold</b>/../%00", "turned", "output"} {
		r.open("/queues/shop?open=" + url.QueryEscape(id))
		r.see("Everything about it")
		r.click(".panel a", "Everything about it")
		r.see("What happened")
		sound(fmt.Sprint("change-", i))
	}
	r.click(".failed button", "Output")
	r.see("turned")
	sound("output")
}

func TestReadersSignInAndDoWhatTheirRolesAllow(t *testing.T) {
	w := newWorld(t, "600", 2) // nothing lands before the test is over
	company, partner := w.protect()
	w.land("cart-more", "", ada, "More of the cart", map[string]string{"cart/c.txt": "fine\n"})
	w.land("tax-more", "", "Test User2 <test-user2@zitadel.ch>", "More of the tax", map[string]string{"tax/c.txt": "fine\n"})
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.allow("a request to " + company)
	r.allow("a request to " + partner)
	r.allow("status of 401") // Chromium complains about each answer that says so.

	// Who is not known is shown nothing but where to sign in, at each size and in each theme.
	r.eachLook("unknown", func() {
		r.open("/queues/shop")
		r.see("Sign in to see the queues")
		r.see("Sign in by company")
	})
	if text := r.text(); strings.Contains(text, "More of the") {
		t.Errorf("somebody who is not known is shown:\n%s", text)
	}

	// A provider that says no is shown with what to do, and not as JSON.
	r.eachLook("not-signed-in", func() {
		r.open("/v1/signin/company/callback?error=access_denied&error_description=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&state=x")
		r.see("You are not signed in")
		r.see("Try again")
	})
	if again := evaluate[string](r, `[...document.querySelectorAll("main a")].map((a) => a.getAttribute("href")).join()`); again != "/v1/signin/company/start,/" {
		t.Errorf("who is not signed in is led to %s", again)
	}

	// An operator comes back to the page, and does what operators do.
	r.look(sizes[1], "light")
	r.open("/queues/shop?q=more")
	r.click("a.signin", "company")
	r.see("Test User, operator")
	r.see("More of the tax")
	if at := r.address(); at != "/queues/shop?q=more" {
		t.Errorf("who has signed in comes back to %s", at)
	}
	r.click("button", "Pause")
	r.see("nothing lands until it is resumed")
	r.do(chromedp.SendKeys("dialog input", "the sale"))
	r.click("dialog button.main", "Pause")
	r.see("Paused by Test User since")
	r.see(": the sale. Builds go on, nothing lands.")
	r.click("button", "Resume")
	r.click("dialog button.main", "Resume")
	r.until("the queue is resumed", func() bool { return !strings.Contains(r.text(), "Paused by") })

	// It does something to several at once, with the keys.
	r.do(chromedp.Focus("button.open[data-change='cart-more']"), chromedp.KeyEvent("x"), chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	r.see("2 changes picked")
	r.eachLook("picked", func() {
		r.open(r.address())
		r.see("2 changes picked")
	})
	r.look(sizes[1], "light")
	r.click(".several button", "Hold 2")
	r.do(chromedp.SendKeys("dialog input", "for the audit"))
	r.click("dialog button.main", "Hold")
	for _, id := range []string{"cart-more", "tax-more"} {
		r.until(id+" is held", func() bool {
			return evaluate[int](r, fmt.Sprintf(`[...document.querySelectorAll(".row")].filter((e) => e.querySelector("[data-change='%s']") && e.innerText.includes("held")).length`, id)) == 1
		})
	}
	// Who comes back from a change is where the change was opened.
	r.do(chromedp.Focus("button.open[data-change='tax-more']"), chromedp.KeyEvent("o"))
	r.see("Held by Test User: for the audit")
	r.do(chromedp.NavigateBack())
	r.until("the row has the focus again", func() bool { return evaluate[string](r, `document.activeElement.dataset.change ?? ""`) == "tax-more" })
	r.open("/queues/shop/changes/tax-more")
	r.see("Held by Test User: for the audit")
	r.check("an operator's page")

	// What is refused after all says why: the session has ended in the meantime.
	signOut := func() {
		evaluate[int](r, `fetch("/v1/signout", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}).then((a) => a.status)`)
	}
	r.click(".actions button", "Release")
	r.do(chromedp.SendKeys("dialog input", "the audit is over"))
	signOut()
	r.see("You are not signed in any more. What you have typed stays here")
	r.check("a dialog whose session has ended")
	r.click("dialog button.main", "Release")
	r.see("It is not known who asks.")

	// What was typed is still there after signing in in another tab.
	again := r.another()
	again.open(evaluate[string](r, `document.querySelector("dialog a.signin").getAttribute("href")`))
	again.see("Test User, operator")
	r.until("the reader is known again", func() bool { return !strings.Contains(r.text(), "not signed in any more") })
	r.click("dialog button.main", "Release")
	r.see("Released by Test User: the audit is over")
	signOut()

	// A contributor steers its own changes alone, and reads why.
	r.open("/")
	r.see("Sign in to see the queues")
	r.click("a.signin", "partner")
	r.see("Test User2")
	r.open("/queues/shop/changes/cart-more")
	r.see("Test User2, contributor")
	r.see("What you may not do")
	if n := evaluate[int](r, `document.querySelectorAll(".actions button").length`); n != 0 {
		t.Errorf("a contributor has %d buttons on a change of another", n)
	}
	r.click(".refused summary", "What you may not do")
	r.see("Release: In the queue")
	r.see("needs the role operator; you have contributor")
	r.see("The change is not yours")
	r.check("a change of another")
	r.open("/queues/shop/changes/tax-more")
	r.click(".actions button", "Cancel")
	r.do(chromedp.SendKeys("dialog input", "not needed"))
	r.click("dialog button.danger", "Cancel")
	r.until("the contributor's change is cancelled", func() bool { return w.state("tax-more") == "cancelled" })
	r.see("Cancelled by Test User2: not needed")
	r.open("/queues/tools")
	r.see("There is no such queue") // it is one that the contributor may not read

	// Whoever signs out is shown nothing more, on any page of the browser.
	r.open("/queues/shop")
	r.see("More of the cart")
	r.click("button", "Sign out")
	r.click("dialog button.main", "Sign out")
	r.see("You are signed out")
	if text := r.text(); strings.Contains(text, "More of the") {
		t.Errorf("who has signed out is shown:\n%s", text)
	}
	r.check("signed out")
}

func TestTheLogOfARunningStepIsFollowed(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	// It prints for a while, an unfinished line and what a terminal would obey among it, and fails.
	const script = `i=0; while [ $i -lt 80 ]; do i=$((i+1)); printf '\033[32mtick\033[0m %d of 80\033]0;title\007\007\n' $i; printf 'half a line'; sleep 0.2; echo; done; ` +
		`printf '\033[31mFAIL\033[0m tax: there is a bug\n'; exit 1`
	w.land("tax-table", "", cy, "New tax table", map[string]string{
		"tax/landfall.yaml": fmt.Sprintf("targets:\n  - name: tax\n    kind: test\n    sources: [\"*.txt\"]\n    steps:\n      - name: check\n        run: [sh, -c, %q]\n", script),
	})
	r.open("/queues/shop/changes/tax-table")
	r.until("the step runs, and its output is opened", func() bool {
		return evaluate[bool](r, `(() => { const step = [...document.querySelectorAll(".steps li:has(.state.running)")].find((e) => e.innerText.includes("//tax")); step?.querySelector("button").click(); return !!step })()`)
	})
	lines := func(text string) int {
		t.Helper()
		return evaluate[int](r, fmt.Sprintf(`[...document.querySelectorAll(".lines li")].filter((e) => e.innerText.includes(%q)).length`, text))
	}
	r.until("the first lines of the running step are shown", func() bool { return lines("tick 2 of 80") == 1 })
	if !strings.Contains(r.text(), "it runs: what it prints appears here") {
		t.Errorf("the page does not say that the step runs:\n%s", r.text())
	}
	r.until("a line that is not whole is shown", func() bool {
		return strings.HasSuffix(evaluate[string](r, `document.querySelector(".lines li:last-child").innerText`), "half a line")
	})
	shown := lines("tick")
	r.until("what it prints is added", func() bool { return lines("tick") > shown })
	r.until("the end is in sight", func() bool {
		return evaluate[bool](r, `(() => { const l = document.querySelector(".lines"); return l.scrollHeight > l.clientHeight + 100 && l.scrollTop + l.clientHeight >= l.scrollHeight - 40 })()`)
	})
	r.shoot("log-running")
	// Whoever reads further above stays there.
	evaluate[int](r, `(document.querySelector(".lines").scrollTop = 0)`)
	shown = lines("tick")
	r.until("more is added below", func() bool { return lines("tick") > shown })
	if at := evaluate[float64](r, `document.querySelector(".lines").scrollTop`); at != 0 {
		t.Errorf("the reader was taken to %v", at)
	}
	r.check("the log of a running step")
	if odd := evaluate[bool](r, `/[\u0000-\u0009\u000b-\u001f]|title/.test(document.querySelector(".lines").innerText)`); odd {
		t.Errorf("the log has what a terminal would obey: %q", evaluate[string](r, `document.querySelector(".lines").innerText.slice(0, 300)`))
	}
	if state := w.state("tax-table"); state != "testing" {
		t.Fatalf("the change is %s before its step has ended: the test has seen nothing live", state)
	}

	// It is complete when the step has failed, with the decisive line first, and stays where the reader has opened it.
	r.until("the step has failed", func() bool { return w.state("tax-table") == "rejected" })
	r.see("What failed")
	r.until("the whole output is there", func() bool {
		return lines("tick") == 80 && lines("FAIL tax: there is a bug") == 1 && !strings.Contains(r.text(), "it runs:")
	})
	if first := evaluate[string](r, `document.querySelector(".steps pre.decisive").innerText`); !strings.Contains(first, "there is a bug") {
		t.Errorf("the decisive lines are %q", first)
	}
	if n := evaluate[int](r, `document.querySelectorAll(".log").length`); n != 1 {
		t.Errorf("%d logs are open, the reader has opened one", n)
	}
	r.check("the log of a step that has failed")
	r.open(r.address())
	r.until("the address opens the log", func() bool { return lines("tick") == 80 })
}

func TestTheTimelineOfAChangeSaysWhenAndWhy(t *testing.T) {
	w := newWorld(t, "2", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	w.land("round-up", "", ada, "Round prices up", map[string]string{"prices/b.txt": "fine\n"})
	w.post("/v1/queues/shop/changes/round-up/hold", `{"who":"Ada","why":"not before the sale"}`)
	r.open("/queues/shop/changes/round-up")
	r.see("When")
	said := func(texts ...string) {
		t.Helper()
		r.until(fmt.Sprintf("the timeline says %q", texts), func() bool {
			now := evaluate[string](r, `document.querySelector(".times ~ .said").innerText`)
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(now, text) })
		})
	}
	// Until it is released, what it waits for goes on.
	said("Analysed for", "built for", "held, and not built for")
	r.until("each step is a bar on its worker", func() bool { return evaluate[int](r, `document.querySelectorAll(".times a.time.passed").length`) == 2 })
	r.do(chromedp.Focus(".times [tabindex='0']"))
	said("Analysed for")
	r.until("the keys lead to what it waits for", func() bool {
		r.do(chromedp.KeyEvent(kb.ArrowRight))
		now := evaluate[string](r, `document.querySelector(".times ~ .said").innerText`)
		return strings.Contains(now, "Held, and not built for") && strings.Contains(now, "so far")
	})
	said("release it to let it land")
	r.until("it is held for longer than a wait that is left out", func() bool {
		now := evaluate[string](r, `document.querySelector(".times ~ .said").innerText`)
		return !slices.ContainsFunc([]string{"0 s", "< 1 s", "1 s"}, func(short string) bool { return strings.Contains(now, "not built for "+short) })
	})
	r.check("the timeline of a change that is held")

	w.post("/v1/queues/shop/changes/round-up/release", "{}")
	r.until("the change lands", func() bool { return w.state("round-up") == "landed" })
	r.see("On the mainline")
	r.eachLook("timeline", func() {
		r.open("/queues/shop/changes/round-up")
		r.see("When")
		r.until("the timeline is drawn", func() bool { return evaluate[int](r, `document.querySelectorAll(".times a.time.passed").length`) == 2 })
		evaluate[int](r, `(document.querySelector(".times").scrollIntoView({block: "center"}), 0)`)
	})
	r.look(sizes[1], "light")

	// The phases follow one another over the whole width, and steps are drawn where their build is.
	type bar struct {
		State    string
		From, To float64
	}
	bars := func(row string) []bar {
		t.Helper()
		return evaluate[[]bar](r, fmt.Sprintf(`[...[...document.querySelectorAll(".times svg > g")].find((g) => g.querySelector("text.name")?.textContent.startsWith(%q)).querySelectorAll(".time")].map((e) => { const b = e.querySelector(".bar"); return {State: e.getAttribute("class"), From: b.x.baseVal.value, To: b.x.baseVal.value + b.width.baseVal.value} })`, row))
	}
	var width float64
	r.until("the timeline is drawn at the window's width", func() bool {
		width = evaluate[float64](r, `document.querySelector(".times svg").width.baseVal.value`)
		box := evaluate[float64](r, fmt.Sprintf(`innerWidth === %d ? document.querySelector(".times").clientWidth : 0`, sizes[1].width))
		return math.Abs(box-width) < 1
	})
	phases := bars("the change")
	for i, p := range phases {
		if i == 0 && p.From > 9 || i > 0 && math.Abs(p.From-phases[i-1].To) > 3 || i == len(phases)-1 && p.To < width-12 {
			t.Errorf("the phases are %+v in a width of %v", phases, width)
		}
	}
	if n := len(phases); n < 4 || !strings.Contains(phases[n-1].State, "landing") {
		t.Errorf("the phases are %+v", phases)
	}
	all := bars("built on the mainline")
	build := all[len(all)-1] // the one before it is its wait for a worker
	for _, worker := range []string{"worker up/1", "worker up/2"} {
		for _, step := range bars(worker) {
			if step.From < build.From-1 || step.To > build.To+1 || step.To <= step.From {
				t.Errorf("a step of %s is at %+v, its build at %+v", worker, step, build)
			}
		}
	}

	// From a bar it is one key to the step's output.
	r.do(chromedp.Focus(".times [tabindex='0']"), chromedp.KeyEvent(kb.ArrowDown))
	said("Held by Ada: not before the sale")
	r.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	said("on up/1: passed, ")
	r.do(chromedp.KeyEvent(kb.Enter))
	r.until("the output is opened", func() bool { return evaluate[int](r, `document.querySelectorAll(".log .lines li").length`) > 2 })
	r.check("the timeline of a change that has landed")
}

// TestEveryAttemptAtAStepIsOnTheTimeline, and leads to its own output.
func TestEveryAttemptAtAStepIsOnTheTimeline(t *testing.T) {
	w := newWorld(t, "1", 2)
	w.stop()
	w.change("retries: { failed: 0 }", "retries: { failed: 1 }")
	w.start()
	r := newReader(t, w)
	r.look(sizes[1], "light")
	w.land("tax-table", "", cy, "New tax table", map[string]string{"tax/b.txt": "a bug\n"})
	r.until("the change is rejected", func() bool { return w.state("tax-table") == "rejected" })
	r.open("/queues/shop/changes/tax-table")
	r.see("When")
	r.until("both attempts are bars", func() bool { return evaluate[int](r, `document.querySelectorAll(".times a.time.failed").length`) == 2 })
	evaluate[int](r, `([...document.querySelectorAll(".times a.time.failed")].find((e) => !e.getAttribute("aria-label").includes("attempt 2")).dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true})), 0)`)
	r.until("the output of the first is opened", func() bool { return evaluate[int](r, `document.querySelectorAll(".log .lines li").length`) > 2 })
	r.check("the timeline of a change of which a step was tried again")
}

// TestNothingStandsUnderWhatFailedWhereNoStepDid: the sentence above says that the change does not merge.
func TestNothingStandsUnderWhatFailedWhereNoStepDid(t *testing.T) {
	w := newWorld(t, "0", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	w.git("checkout", "-q", "-b", "old-prices", "main")
	w.write("prices/a.txt", "old\n")
	w.commit("Bo <bo@example.com>", "Old prices")
	w.git("push", "-q", "origin", "old-prices")
	w.git("checkout", "-q", "main")
	w.write("prices/a.txt", "new\n")
	w.commit("Bo <bo@example.com>", "New prices")
	w.git("push", "-q", "origin", "main")
	id := w.ask(asked{Title: "Old prices", Author: ada, Entries: []map[string]string{{"ref": "old-prices"}}})
	r.until("the change has left", func() bool { return w.state(id) == "rejected" || w.state(id) == "ejected" })
	r.open("/queues/shop/changes/" + id)
	r.see("does not merge")
	r.see("What happened")
	if n := evaluate[int](r, `[...document.querySelectorAll("section.failed")].filter((e) => e.children.length < 2).length`); n > 0 {
		t.Errorf("%d headings stand above nothing: %s", n, r.text())
	}
	r.check("a change that does not merge")
}
