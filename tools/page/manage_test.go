package page_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// publish writes records to landfall.land-requests, as a program of others does.
func (w *world) publish(records ...*kgo.Record) {
	w.t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(w.data, "broker", name))
		if err != nil {
			w.t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(read("address")), kgo.DefaultProduceTopic("landfall.land-requests"),
		kgo.SASL(scram.Auth{User: "landfall", Pass: read("secret")}.AsSha256Mechanism()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// configure adds text to the configuration; it counts after the next start.
func (w *world) configure(text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

const markup = `<img src=x onerror=globalThis.hurt=1>`

func TestDeadLettersAreReadAndSentAgain(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.open("/access")
	r.see("Access is open: whoever reaches this gateway is believed")
	r.see("needs somebody who is")
	r.check("access that is open")
	r.open("/dead-letters")
	r.see("There are none")
	r.check("no dead letters")
	w.git("checkout", "-q", "-b", "new-prices")
	w.write("prices/n.txt", "fine\n")
	w.commit(ada, "change")
	w.git("push", "-q", "origin", "main:late-main", "new-prices")
	w.publish(
		&kgo.Record{Value: []byte(`{"queue":"late","change":"new-prices","title":"New prices","entries":[{"ref":"new-prices"}]}`), Key: []byte(markup), Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte("shop-7\xff")}}},
		&kgo.Record{Value: []byte(`{"queue":"shop","change":"` + strings.Repeat("w", 3000))},
		&kgo.Record{Value: []byte(`{"change":"` + markup + `","revision":-1}`), Key: []byte("shop")},
	)
	r.see("3 dead letters") // on the page that was open before they were there
	w.configure("  late:\n    repository: shop\n    branch: late-main\n")
	company, partner := w.protect()
	r.allow("a request to " + company)
	r.allow("a request to " + partner)
	r.allow("status of 401")
	r.allow("ERR_") // The gateway was away.

	// Who may not send deliveries reads why, of the queues that it may read, and neither the record nor the action.
	r.open("/dead-letters")
	r.click("a.signin", "partner")
	r.see("1 dead letter")
	if text := r.text(); !strings.Contains(text, markup) || !strings.Contains(text, "Correct the program that published it") || strings.Contains(text, "Send again") || strings.Contains(text, "The record") {
		t.Errorf("a contributor is shown:\n%s", text)
	}
	r.check("a contributor's dead letters")
	r.click("button", "Sign out")
	r.click("dialog button.main", "Sign out")
	r.see("You are signed out")

	r.open("/dead-letters")
	r.click("a.signin", "company")
	r.see("3 dead letters")
	r.eachLook("dead-letters", func() {
		r.open("/dead-letters")
		r.see("3 dead letters")
		evaluate[int](r, `[...document.querySelectorAll(".record")].map((d) => d.open = true).length`)
		r.see("shop-7\uFFFD")
	})
	if evaluate[bool](r, `globalThis.hurt !== undefined || document.querySelectorAll("img").length > 0`) {
		t.Error("something of a record became a part of the page")
	}
	r.look(sizes[1], "light")
	evaluate[int](r, `(() => { const s = document.querySelector("main select"); s.value = "late"; s.dispatchEvent(new Event("change", {bubbles: true})); return 0 })()`)
	r.see("1 dead letter")
	if at := r.chosen("queue"); at != "late" {
		t.Errorf("the address has %q", at)
	}
	r.click(".letters button", "Send again")
	r.see("The land request is published again")
	r.do(chromedp.SendKeys("dialog input", "the queue is there now\n"))
	r.see("sent again")
	r.see("by Test User: the queue is there now")
	r.check("a dead letter that was sent again")
	r.open("/queues/late/changes/new-prices")
	r.see("New prices")

	// What cannot be sent again says why.
	r.open("/dead-letters?queue=shop")
	r.click(".letters button", "Send again")
	r.click("dialog button.main", "Send again")
	r.see("cannot be read by this version either")
	r.allow("status of 409")
	r.check("a dead letter that cannot be sent again")
}

func TestAccessIsShownExplainedAndGiven(t *testing.T) {
	w := newWorld(t, "1", 2)
	company, partner := w.protect()
	w.stop()
	w.configure("    - { role: admin, queues: [tools], issuer: company, any: [{ all: { sub: id1 } }] }\n")
	w.start()
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.allow("a request to " + company)
	r.allow("a request to " + partner)
	r.allow("status of 401")

	// A contributor sees its own role and what it may not do, and no tokens.
	r.open("/access")
	r.click("a.signin", "partner")
	r.see("shop: contributor")
	r.see("✓ your own changes")
	r.see("needs the role operator; you have contributor")
	if text := r.text(); strings.Contains(text, "Make a token") || strings.Contains(text, "What somebody else") || strings.Contains(text, "tools") {
		t.Errorf("a contributor is shown:\n%s", text)
	}
	r.check("a contributor's access")
	r.click("main button", "Sign out here or everywhere")
	r.click("dialog button", "Sign out everywhere")
	r.see("You are signed out")

	// An admin has somebody explained, by the keys; the address has what was asked.
	r.open("/access?queue=tools")
	r.click("a.signin", "company")
	r.see("tools: admin")
	r.see("shop: operator")
	r.see("There are none.")
	r.do(chromedp.SendKeys("input[name=user]", "id1"), chromedp.SendKeys("input[name=issuer]", "company\n"))
	r.see("Allowed, as admin.")
	r.eachLook("access", func() {
		r.open("/access?queue=tools&user=id2&verb=pause&issuer=company&claim=groups%3D" + url.QueryEscape(markup))
		r.see("Not allowed: In the queue")
		r.see("sub is not id1")
		r.see("There are none.")
	})
	r.look(sizes[1], "light")

	// What others make and revoke is seen at once.
	var made struct{ Token struct{ ID string } }
	if err := json.Unmarshal(w.post("/v1/tokens", `{"name":"weekly","role":"viewer","queues":["tools"]}`), &made); err != nil {
		t.Fatal(err)
	}
	r.see("weekly")
	w.post("/v1/tokens/"+made.Token.ID+"/revoke", `{"why":"not needed"}`)
	r.see("There are none.")

	// A token's secret is shown once, counts, and counts no more once it is revoked.
	r.click("button", "Make a token")
	r.do(chromedp.SendKeys("dialog input", "nightly "+markup))
	r.check("the dialog of a token")
	r.click("dialog button.main", "Make")
	r.see("Copy its secret now")
	admin := w.token
	w.token = strings.TrimSpace(evaluate[string](r, `document.querySelector(".secret").innerText`))
	r.check("a token's secret")
	known := func() int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "GET", w.url+"/v1/whoami", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+w.token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := known(); status != 200 {
		t.Errorf("the new token is answered by %d", status)
	}
	r.click("dialog button", "Done")
	r.see("nightly " + markup)
	r.see("by Test User")
	if strings.Contains(r.text(), w.token) {
		t.Error("the secret is shown again")
	}
	r.click("main button.danger", "Revoke")
	r.do(chromedp.SendKeys("dialog input", "it has leaked\n"))
	r.see("There are none.")
	if status := known(); status != 401 {
		t.Errorf("the revoked token is answered by %d", status)
	}
	r.click("main label", "also those that are over")
	r.see("revoked")
	r.check("tokens that are over")
	w.token = admin
	if evaluate[bool](r, `globalThis.hurt !== undefined || document.querySelectorAll("img").length > 0`) {
		t.Error("something of a name became a part of the page")
	}
}

func TestModelsAreShownAndChosen(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.open("/queues/shop")
	r.click("header a", "Models")
	r.see("priors predict")
	r.check("no models")
	w.stop()
	w.command("", publisher, w.data, "shop")
	company, partner := w.protect()
	r.allow("a request to " + company)
	r.allow("a request to " + partner)
	r.allow("status of 401")
	r.allow("ERR_") // The gateway was away.

	// A contributor reads how good they are, and chooses none.
	r.open("/queues/shop/models")
	r.click("a.signin", "partner")
	r.see("predicts, chosen")
	r.see("better than the rolling baseline")
	r.see("0.4100")
	if buttons := evaluate[int](r, `document.querySelectorAll("main button").length`); buttons != 0 {
		t.Errorf("a contributor has %d buttons", buttons)
	}
	r.check("a contributor's models")
	r.click("button", "Sign out")
	r.click("dialog button.main", "Sign out")
	r.see("You are signed out")

	r.open("/queues/shop/models")
	r.click("a.signin", "company")
	r.see("predicts, chosen")
	r.eachLook("models", func() {
		r.open("/queues/shop/models")
		r.see("Use it")
		r.see(markup + " is not better")
	})
	if evaluate[bool](r, `globalThis.hurt !== undefined || document.querySelectorAll("img").length > 0`) {
		t.Error("something of a card became a part of the page")
	}
	r.look(sizes[1], "light")
	inUse := func() string {
		return evaluate[string](r, `document.querySelector(".letters strong")?.closest("li").innerText ?? ""`)
	}
	r.click("main button", "Use it")
	r.see("It predicts from the next record on.")
	r.do(chromedp.SendKeys("dialog input", "it is better\n"))
	r.until("the model is in use", func() bool { return strings.Contains(inUse(), "by Test User: it is better") })
	r.click("main button", "Roll back")
	r.do(chromedp.SendKeys("dialog input", "it is not\n"))
	r.until("the one before is in use", func() bool { return strings.Contains(inUse(), "by Test User: it is not") })
	w.post("/v1/queues/shop/models/rollback", `{"kind":"success","priors":true,"why":"by a program"}`)
	r.until("what a program does is seen at once", func() bool { return inUse() == "" })
	r.click("main button", "Use it")
	r.click("dialog button.main", "Use it")
	r.until("a model is in use again", func() bool { return inUse() != "" })
	r.click("main button", "Use priors")
	r.click("dialog button.main", "Use priors")
	r.until("no model is in use", func() bool { return inUse() == "" })
	r.see("rolled back")
	r.check("models that were chosen")
}

func TestARedMainlineIsShownAndRetried(t *testing.T) {
	w := newWorld(t, "0", 2)
	// The step of the prices passes once a file outside of the repository is there: a server that is away, say.
	server := filepath.Join(w.outside, "server")
	step := fmt.Sprintf(`if [ -e %[1]s ]; then echo ok; else echo "FAIL: the server of the prices is away"; exit 1; fi`, server)
	w.write("prices/landfall.yaml", fmt.Sprintf("targets:\n  - name: prices\n    kind: test\n    sources: [\"*.txt\"]\n    steps: [{ name: check, run: [sh, -c, %q] }]\n", step))
	w.commit("Bo <bo@example.com>", "The prices need a server")
	w.git("push", "-q", "origin", "main")
	company, partner := w.protect()
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.allow("a request to " + company)
	r.allow("a request to " + partner)
	r.allow("status of 401")
	w.land("round-up", "", ada, "Round prices up", map[string]string{"prices/b.txt": "fine\n"})

	// A contributor reads what fails and why it may not have it retried.
	r.open("/queues/shop")
	r.click("a.signin", "partner")
	r.see("The mainline is red in //prices")
	r.see("FAIL: the server of the prices is away")
	r.click("section.failed .refused summary", "What you may not do")
	r.see("Retry the mainline: In the queue")
	if n := evaluate[int](r, `[...document.querySelectorAll("button")].filter((b) => b.innerText.includes("Retry the mainline")).length`); n != 0 {
		t.Errorf("a contributor is offered to retry the mainline")
	}
	r.check("a red mainline, for a contributor")
	r.click("button", "Sign out")
	r.click("dialog button.main", "Sign out")
	r.see("You are signed out")

	// An operator reads the output, and has it retried once the server is there.
	r.open("/queues/shop")
	r.click("a.signin", "company")
	r.see("Retry the mainline")
	r.eachLook("mainline-red", func() {
		r.open("/queues/shop")
		r.click("section.failed button", "Output")
		r.until("the output is shown", func() bool { return evaluate[int](r, `document.querySelectorAll(".lines li.decisive").length`) > 0 })
	})
	r.look(sizes[1], "light")

	// A row says briefly what it waits for, and the mainline can be retried with all changes that wait for it at once.
	r.open("/queues/shop?pick=round-up")
	r.see("Retry 1")
	if why := evaluate[string](r, `document.querySelector(".row .why").innerText`); !strings.Contains(why, "//prices") || strings.Contains(why, "landfall retry") {
		t.Errorf("the row says %q", why)
	}
	if err := os.WriteFile(server, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.click("button", "Retry the mainline")
	r.see("is verified there again")
	r.do(chromedp.SendKeys("dialog input", "the server is back\n"))
	r.until("the change lands", func() bool { return w.state("round-up") == "landed" })
	r.until("the mainline is not shown as red", func() bool { return !strings.Contains(r.text(), "What fails on the mainline") })
	r.check("a mainline that was retried")
}

func TestFlakyTargetsAreShownAndQuarantined(t *testing.T) {
	w := newWorld(t, "0", 2)
	w.stop()
	w.change("retries: { failed: 0 }", "retries: { failed: 1 }")
	// The steps of the prices and the tax fail at the first run of each version, and pass at the second.
	for _, name := range []string{"prices", "tax"} {
		step := fmt.Sprintf(`if mkdir "%[1]s/%[2]s-$(cat %[2]s/*.txt | cksum | cut -d" " -f1)"; then echo "FAIL: a race"; exit 1; fi; echo ok`, w.outside, name)
		w.write(name+"/landfall.yaml", fmt.Sprintf("targets:\n  - name: %[1]s\n    kind: test\n    owners: [\"@shop/%[1]s\"]\n    sources: [\"*.txt\"]\n    steps: [{ name: check, run: [sh, -c, %[2]q] }]\n", name, step))
	}
	w.commit("Bo <bo@example.com>", "Two tests with a race")
	w.git("push", "-q", "origin", "main")
	company, partner := w.protect()
	r := newReader(t, w)
	r.look(sizes[1], "light")
	r.allow("a request to " + company)
	r.allow("a request to " + partner)
	r.allow("status of 401")

	// Who may not quarantine reads what there is, on a page that was open before.
	r.open("/queues/shop")
	r.click("a.signin", "partner")
	r.see("Test User2, contributor")
	r.click("header a", "Failing targets")
	r.see("Targets of which a version failed")
	w.land("round-up", "", ada, "Round prices up", map[string]string{"prices/b.txt": "fine\n"})
	w.land("tax-table", "", cy, "New tax table", map[string]string{"tax/b.txt": "fine\n"})
	r.see("2 flaky targets")
	r.see("100 %")
	r.see("@shop/prices")
	w.post("/v1/queues/shop/quarantines", fmt.Sprintf(`{"target":"//ta*","until":%q,"why":"a race in %s"}`, time.Now().Add(72*time.Hour).Format(time.RFC3339), markup))
	r.see("a race in " + markup)
	if buttons := evaluate[int](r, `document.querySelectorAll("main button").length`); buttons != 0 {
		t.Errorf("a contributor has %d buttons", buttons)
	}
	r.check("a contributor's flaky targets")
	r.click("button", "Sign out")
	r.click("dialog button.main", "Sign out")
	r.see("You are signed out")

	r.open("/queues/shop/flakes")
	r.click("a.signin", "company")
	r.see("2 flaky targets")
	r.eachLook("flakes", func() {
		r.open("/queues/shop/flakes")
		r.see("2 flaky targets")
		r.see("a race in " + markup)
	})
	if evaluate[bool](r, `globalThis.hurt !== undefined || document.querySelectorAll("img").length > 0`) {
		t.Error("something of a reason became a part of the page")
	}
	r.look(sizes[1], "light")
	evaluate[int](r, `(() => { const s = document.querySelector("main select"); s.value = "@shop/prices"; s.dispatchEvent(new Event("change", {bubbles: true})); return 0 })()`)
	r.see("1 flaky target;")
	if at := r.chosen("owner"); at != "@shop/prices" {
		t.Errorf("the address has the owner %q", at)
	}

	// A quarantine needs a reason.
	r.click("main button", "Quarantine")
	r.see("It runs as before and is reported")
	if !evaluate[bool](r, `document.querySelector("dialog button.main").disabled`) {
		t.Error("a quarantine without a reason is offered")
	}
	r.check("the dialog of a quarantine")
	r.do(chromedp.SendKeys("dialog .reason input", "until the race is mended\n"))
	r.see("until the race is mended")
	quarantined := func(target string) bool {
		t.Helper()
		return evaluate[bool](r, fmt.Sprintf(`!!document.querySelector("button[aria-label='End the quarantine of %s']")`, target))
	}
	r.until("the prices are quarantined", func() bool { return quarantined("//prices") })
	r.click("button[aria-label='End the quarantine of //prices']", "End")
	r.click("dialog button.main", "End the quarantine")
	r.until("it is over", func() bool { return !quarantined("//prices") })

	// What the queue has not seen is refused, with what to do.
	r.click("main button", "Quarantine a target")
	r.do(chromedp.SendKeys("dialog .fields input", "//pricse"), chromedp.SendKeys("dialog .reason input", "a race\n"))
	r.see("Did you mean //prices?")
	r.allow("status of 404")
	r.check("a quarantine that is refused")
}
