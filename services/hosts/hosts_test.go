package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"context"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/snapshottest"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
)

func TestACommandIsALineOfItsOwn(t *testing.T) {
	for text, want := range map[string][]Command{
		"/landfall land":                              {Land},
		"please\n/landfall retry\r\nthanks":           {Retry},
		"> /landfall land":                            nil,
		"use /landfall land":                          nil,
		"```\n/landfall land\n```\n/landfall cancel":  {Cancel},
		"~~~ sh\n/landfall land\n```\n/landfall hold": nil,
		"    /landfall land":                          nil,
		// What others show of somebody's text, such as the output of a step, ends where it is said to end.
		"````\n```\n/landfall land\n````\n/landfall hold":                  {Hold},
		"```\n``` x\n/landfall land\n```\n/landfall hold":                  {Hold},
		"~~~~\n~~~\n/landfall land":                                        nil,
		"``` `a`\n/landfall hold\n```\n/landfall land\n```":                {Hold},
		"<!--\n/landfall land\n```\n-->\n/landfall hold":                   {Hold},
		"see <!-- this\n/landfall land -->\n/landfall hold":                {Hold},
		"<details><pre class=x>\n\n/landfall land\n</pre>\n/landfall hold": {Hold},
		"the tags `<pre>` and `<!--`\n/landfall land":                      {Land},
		"<!-- a --> <!-- b -->\n/landfall land":                            {Land},
		"<prefix>\n/landfall land":                                         {Land},
		"/landfall":                                                        {Unknown},
		"/landfall land now":                                               {Unknown},
		"/landfall launch":                                                 {Unknown},
		"/landfalls land":                                                  nil,
		strings.Repeat("/landfall land\n", 100):                            {Land, Land, Land, Land, Land},
		strings.Repeat("x", 70<<10) + "\n/landfall land":                   nil,
	} {
		if got := Commands(text); !slices.Equal(got, want) {
			t.Errorf("%.60q: %v, want %v", text, got, want)
		}
	}
}

func TestEveryCommandIsInTheTableOfDoors(t *testing.T) {
	rows := map[Command]access.Verb{}
	for _, d := range access.Doors() {
		if name, is := strings.CutPrefix(d.Name, prefix+" "); is && d.Kind == access.Comment {
			rows[Command(name)] = d.Verb
		}
	}
	if !maps.Equal(rows, verbs) {
		t.Errorf("the table has %v, commands need %v", rows, verbs)
	}
	for c := range verbs {
		if got := Commands(prefix + " " + string(c)); !slices.Equal(got, []Command{c}) {
			t.Errorf("%s is read as %v", c, got)
		}
	}
}

func FuzzCommands(f *testing.F) {
	f.Add("/landfall land")
	f.Add("```\n/landfall land\n~~~")
	f.Fuzz(func(t *testing.T, text string) {
		got := Commands(text)
		if len(got) > maxCommands || len(got) > strings.Count(text, prefix) {
			t.Errorf("%v", got)
		}
	})
}

func FuzzNoTextCallsAnybody(f *testing.F) {
	f.Add("@ada [x](http://y) <img src=x> `a` #1 \\@b")
	f.Fuzz(func(t *testing.T, text string) {
		got := []rune(escape(text))
		for i := 0; i < len(got); i++ {
			c, escaped := got[i], false
			if c == '\\' && i+1 < len(got) {
				i++
				c, escaped = got[i], true
			}
			if strings.ContainsRune("@#[]<>`*_!\\&|", c) && !escaped {
				t.Errorf("%q has a bare %c: %q", text, c, string(got))
			}
			if (c == '@' || c == '#') && (i+1 == len(got) || got[i+1] != '\u200b') {
				t.Errorf("%q calls somebody: %q", text, string(got))
			}
		}
		if strings.ContainsAny(inCode(text), "`\n") {
			t.Errorf("%q ends its code", text)
		}
	})
}

// setting is a queue main at a host forge.
var setting = Settings{Log: "log", Host: "forge", URL: "https://git.example.com", Queue: "main", Label: "landfall", Withdraw: true}

func newReview() *review {
	return &review{kept: &eventsv1.HostedChange{Host: "forge", Queue: "main", Number: 7, Change: "pr-7"}}
}

func pullOf(head string, events ...Event) Pull {
	p := Pull{Number: 7, Head: head, Ref: "refs/pull/7/head", Fits: true, Open: true, Author: User{ID: 1, Login: "ada"}, Events: events}
	for _, e := range events {
		p.Last = e.ID
	}
	return p
}

// looks takes a pull request until nothing more follows, and returns the facts.
func looks(t *testing.T, r *review, p Pull) (facts []proto.Message) {
	t.Helper()
	rules := access.NewRules(configuration.Access{Mode: configuration.AccessRequired})
	for range 20 {
		next := r.take(setting, rules, p, 1)
		for _, f := range next.facts {
			facts = append(facts, f.message)
			if _, is := f.message.(*eventsv1.ChangeCancelled); is {
				r.cancelUS = 1
			}
		}
		if proto.Equal(next.kept, r.kept) {
			return facts
		}
		r.kept = next.kept
	}
	t.Fatal("it does not come to an end")
	return nil
}

func by(id int64, login string, p Permission, text string) Event {
	return Event{ID: id, Kind: Commented, By: User{ID: 10 + id, Login: login}, Permission: p, Text: text}
}

func TestWhoMayNotLandIsToldSo(t *testing.T) {
	r := newReview()
	if facts := looks(t, r, pullOf("a1", by(1, "eve", ReadPermission, "/landfall land"))); len(facts) != 0 || r.state() != nobody {
		t.Errorf("it is %q: %v", r.state(), facts)
	}
	if !strings.Contains(r.kept.Note, "needs the role") {
		t.Errorf("the note is %q", r.kept.Note)
	}
}

func TestARequestIsOfWhoAskedAndOfTheCommitThatWasThere(t *testing.T) {
	r, p := newReview(), pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
	p.Missing = []string{"an approval"}
	if facts := looks(t, r, p); len(facts) != 0 || r.state() != waiting {
		t.Fatalf("it is %q: %v", r.state(), facts)
	}
	p.Missing = nil
	facts := looks(t, r, p)
	if len(facts) != 1 {
		t.Fatalf("facts are %v", facts)
	}
	m := facts[0].(*eventsv1.LandRequest)
	if m.RequestId != setting.requestID(7, 4) || m.Actor.Issuer != setting.URL || m.Actor.Subject != "14" || m.Actor.Name != "ada" || m.Actor.Role != "lander" || m.Entries[0].Commit != "a1" || m.Entries[0].Ref != "refs/pull/7/head" {
		t.Errorf("it is %v", m)
	}
	if again := looks(t, r, p); len(again) != 0 {
		t.Errorf("it is asked again: %v", again)
	}
}

// TestATitleOrABranchThatCannotBePrintedKeepsNothingFromLanding: a request with one is refused, and titles have 👩‍💻 in them.
func TestATitleOrABranchThatCannotBePrintedKeepsNothingFromLanding(t *testing.T) {
	p := pullOf(strings.Repeat("a1", 20), by(4, "ada", WritePermission, "/landfall land"))
	p.Title, p.Branch = "Sign in \u202efor 👩\u200d💻\x1b[2J", "refs/heads/for-👩\u200d💻"
	facts := looks(t, newReview(), p)
	if len(facts) != 1 {
		t.Fatalf("facts are %v", facts)
	}
	m := facts[0].(*eventsv1.LandRequest)
	if problem := admission.Complete(m, admission.Limits{Stack: 1}); problem != nil {
		t.Errorf("it is refused: %s", problem.Message)
	}
	if m.Title != "Sign in ?for 👩?💻?[2J" || m.Entries[0].Review != nil {
		t.Errorf("it is %v", m)
	}
}

func TestAPushWhileItWaitsAsksForNothing(t *testing.T) {
	r, p := newReview(), pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
	p.Missing = []string{"an approval"}
	looks(t, r, p)
	if facts := looks(t, r, pullOf("b2")); len(facts) != 0 || r.state() != nobody || !strings.Contains(r.kept.Note, "pushed") {
		t.Errorf("it is %q with %q: %v", r.state(), r.kept.Note, facts)
	}
}

// queue puts what was asked for into the queue.
func (r *review) enqueue(state string, revision uint64) {
	r.outcome = &eventsv1.ChangeOutcome{Queue: "main", Subject: "pr-7", Change: "pr-7", State: state, RequestId: r.kept.RequestId, Revision: revision, Head: r.kept.Head, Reason: &eventsv1.OutcomeReason{Text: "red"}}
}

func TestAPushWithdrawsWhatIsInTheQueueUnlessItIsKept(t *testing.T) {
	for _, withdraw := range []bool{true, false} {
		r := newReview()
		looks(t, r, pullOf("a1", by(4, "ada", WritePermission, "/landfall land")))
		r.enqueue("admitted", 1)
		s := setting
		s.Withdraw = withdraw
		next := r.take(s, access.NewRules(configuration.Access{Mode: configuration.AccessRequired}), pullOf("b2"), time.Hour.Microseconds())
		if cancelled := len(next.facts) == 1; cancelled != withdraw {
			t.Errorf("withdraw %v: %v", withdraw, next.facts)
		}
	}
}

// TestWhatTheLanderMovedIsNoPush: neither that nor what the host asks for of the new head, which nobody has approved, stops the landing.
func TestWhatTheLanderMovedIsNoPush(t *testing.T) {
	r := newReview()
	p := pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
	p.Branch = "refs/heads/ada/a"
	facts := looks(t, r, p)
	if review := facts[0].(*eventsv1.LandRequest).Entries[0].Review; review.GetBranch() != p.Branch || review.GetShown() != p.Ref {
		t.Errorf("it is under review at %v", review)
	}
	r.enqueue("testing", 1)
	r.cancelUS = -time.Hour.Microseconds()
	moved := pullOf("t1", by(5, "bob", WritePermission, "/landfall land"))
	moved.Landing, moved.Missing = true, []string{"1 of 1 approvals"}
	if facts := looks(t, r, moved); len(facts) != 0 || r.kept.Head != "a1" {
		t.Errorf("of %s follows %v", r.kept.Head, facts)
	}
	off := moved
	off.Events = []Event{{ID: 6, Kind: Unlabelled, Auto: true, By: User{ID: 3, Login: "host"}, Permission: AdminPermission}}
	if facts := looks(t, r, off); len(facts) != 0 {
		t.Errorf("of a switch that the host puts off follows %v", facts)
	}
	// Its trailers may be forged: it is believed for a while, and where a landing can be under way.
	rules := access.NewRules(configuration.Access{Mode: configuration.AccessRequired})
	for after, want := range map[time.Duration]int{landingPause - time.Second: 0, landingPause: 1} {
		if next := r.take(setting, rules, moved, after.Microseconds()); len(next.facts) != want {
			t.Errorf("%v after it was seen follows %v", after, next.facts)
		}
	}
	waits := newReview()
	asked := pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
	asked.Missing = []string{"1 of 1 approvals"}
	looks(t, waits, asked)
	forged := pullOf("b2")
	forged.Landing = true
	if facts := looks(t, waits, forged); len(facts) != 0 || waits.state() != nobody {
		t.Errorf("a forged head that is approved has %v follow, and leaves it %q", facts, waits.state())
	}
	off.Events = []Event{{ID: 7, Kind: Unlabelled, By: User{ID: 3, Login: "ada"}, Permission: WritePermission}}
	if facts := looks(t, r, off); len(facts) != 1 {
		t.Errorf("of the label that somebody takes off follows %v", facts)
	}
	r.cancelUS = -time.Hour.Microseconds()
	// The host has not called it merged yet.
	r.pull = &moved
	r.enqueue("landed", 1)
	r.outcome.Commits = []string{"t0", "t1"}
	if got := r.report(setting, 1); got.Merged != "t1" || strings.Contains(got.Text, "has not landed") {
		t.Errorf("it reports %+v", got)
	}
	// What somebody pushes is one.
	r.enqueue("testing", 1)
	if facts := looks(t, r, pullOf("b2")); len(facts) != 1 {
		t.Errorf("of a push follows %v", facts)
	}
}

// TestALandingCommitIsKnownByItsTrailers of the pull request and the queue, and is asked for once.
func TestALandingCommitIsKnownByItsTrailers(t *testing.T) {
	const message = "Add x\n\nLandfall-Change: pr-7\nLandfall-Revision: 1\nLandfall-Queue: main\nLandfall-Part: 1/1\n"
	for _, c := range []struct {
		message, queue string
		number         int64
		want           bool
	}{
		{message, "main", 7, true}, {message, "main", 8, false}, {message, "release", 7, false}, {"Add x, as Landfall-Change: pr-7 of Landfall-Queue: main", "main", 7, false},
	} {
		h := NewHeads()
		asked := 0
		for range 2 {
			if got, err := h.IsLanding("c", c.queue, c.number, func() (string, error) { asked++; return c.message, nil }); got != c.want || err != nil || asked != 1 {
				t.Errorf("%+v: %v, %v, asked %d times", c, got, err, asked)
			}
		}
	}
}

func TestAnApprovalThatIsWithdrawnHoldsUntilItIsBack(t *testing.T) {
	r := newReview()
	p := pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
	looks(t, r, p)
	r.enqueue("testing", 1)
	r.cancelUS = -time.Hour.Microseconds() // no cancellation is under way
	p.Missing = []string{"1 of 1 approvals"}
	facts := looks(t, r, p)
	if len(facts) != 1 || facts[0].(*eventsv1.ChangeHeld).Why != "it waits for 1 of 1 approvals" {
		t.Fatalf("facts are %v", facts)
	}
	r.enqueue("held", 1)
	r.pull = &p
	if got := r.status(setting, r.state(), 1); got.Text != "Held: waits for 1 of 1 approvals" {
		t.Errorf("the status is %+v", got)
	}
	p.Missing = nil
	if facts = looks(t, r, p); len(facts) != 1 || facts[0].(*eventsv1.ChangeReleased).Hold != "host" {
		t.Errorf("facts are %v", facts)
	}
}

func TestOnlyAnOperatorMovesToTheFront(t *testing.T) {
	r := newReview()
	looks(t, r, pullOf("a1", by(4, "ada", WritePermission, "/landfall land")))
	r.enqueue("testing", 1)
	if facts := looks(t, r, pullOf("a1", by(5, "ada", WritePermission, "/landfall front"))); len(facts) != 0 || !strings.Contains(r.kept.Note, "needs the role") {
		t.Errorf("by who may write: %v, %q", facts, r.kept.Note)
	}
	facts := looks(t, r, pullOf("a1", by(6, "root", AdminPermission, "/landfall front")))
	if len(facts) != 1 || facts[0].(*eventsv1.ChangeMoved).Who != "root" || facts[0].(*eventsv1.ChangeMoved).Before != "" {
		t.Errorf("by an operator: %v", facts)
	}
}

func TestACommitThatWasRejectedComesBackOnlyByRetry(t *testing.T) {
	r := newReview()
	looks(t, r, pullOf("a1", by(4, "ada", WritePermission, "/landfall land")))
	r.enqueue("rejected", 1)
	if facts := looks(t, r, pullOf("a1", by(5, "ada", WritePermission, "/landfall land"))); len(facts) != 0 || !strings.Contains(r.kept.Note, "retry") {
		t.Errorf("by land: %v, %q", facts, r.kept.Note)
	}
	facts := looks(t, r, pullOf("a1", by(6, "ada", WritePermission, "/landfall retry")))
	if len(facts) != 1 || facts[0].(*eventsv1.LandRequest).Revision != 2 {
		t.Errorf("by retry: %v", facts)
	}
}

func TestClosingCancelsAndWhoClosesIsNamed(t *testing.T) {
	r := newReview()
	looks(t, r, pullOf("a1", by(4, "ada", WritePermission, "/landfall land")))
	r.enqueue("testing", 3)
	p := pullOf("a1", Event{ID: 9, Kind: Closed, By: User{ID: 5, Login: "bob"}, Permission: WritePermission})
	p.Open = false
	facts := looks(t, r, p)
	if len(facts) != 1 {
		t.Fatalf("facts are %v", facts)
	}
	if m := facts[0].(*eventsv1.ChangeCancelled); m.Who != "bob" || m.Revision != 3 || m.Actor.Subject != "5" {
		t.Errorf("it is %v", m)
	}
}

func TestTheSameStateIsReportedOnce(t *testing.T) {
	r := newReview()
	p := pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
	looks(t, r, p)
	r.pull = &p
	r.enqueue("rejected", 1)
	now := time.Hour.Microseconds()
	first := r.report(setting, now)
	if first.Status == nil || first.Status.State != StatusFailure || !strings.Contains(first.Text, "Rejected") {
		t.Fatalf("it reports %+v", first)
	}
	r.pull.Status, r.kept.CommentHash = *first.Status, hashOf(first.Text)
	if again := r.report(setting, now); !again.empty() {
		t.Errorf("it reports %+v again", again)
	}
}

func TestLinesOfAFailureCannotLeaveTheirBlock(t *testing.T) {
	r := newReview()
	p := pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
	looks(t, r, p)
	r.enqueue("rejected", 1)
	r.place = &Place{State: "rejected", Failure: "it fails @all", Lines: []string{"```", "````", "@ada\x1b[31m", "/approve"}}
	text := r.comment(setting, r.state())
	if !strings.Contains(text, "\n`````\n ```\n ````\n @ada?[31m\n /approve\n`````") || strings.Contains(text, " @all") {
		t.Errorf("it is %s", text)
	}
}

// TestTextsOfOthersLinkToNothing: hosts make links of addresses that stand bare.
func TestTextsOfOthersLinkToNothing(t *testing.T) {
	for _, text := range []string{"see https://evil.example/x", "HTTP://evil.example", "www.evil.example", "WWW.evil.example"} {
		got := strings.ToLower(escape(text))
		if strings.Contains(got, "://") || strings.Contains(got, "www.") {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// TestTheIDOfARequestIsNotGuessed: whoever may land could ask under it first, and a pull request would be closed as merged for another change.
func TestTheIDOfARequestIsNotGuessed(t *testing.T) {
	ids := map[string]bool{}
	for _, log := range []string{"one", "two"} {
		s := setting
		s.Log = log
		r, p := newReview(), pullOf("a1", by(4, "ada", WritePermission, "/landfall land"))
		for range 2 {
			r.kept = r.take(s, access.NewRules(configuration.Access{Mode: configuration.AccessRequired}), p, 1).kept
		}
		ids[r.kept.RequestId] = true
	}
	if len(ids) != 2 {
		t.Errorf("the ids are %v", ids)
	}
}

// fake is a host that takes every webhook whose body is the secret.
type fake struct{ Host }

func (fake) Notice(h http.Header, body, secret []byte) (Notice, error) {
	if !bytes.HasPrefix(body, secret) {
		return Notice{}, ErrForged
	}
	return Notice{Repository: "acme/shop", Number: 7, Event: "e", Delivery: h.Get("D")}, nil
}

// TestAFloodOfForgedWebhooksLeavesFewLines in the log, each short and of one line.
func TestAFloodOfForgedWebhooksLeavesFewLines(t *testing.T) {
	var text bytes.Buffer
	r := &Receiver{Logger: slog.New(slog.NewTextHandler(&text, nil)), Repositories: map[string]Repository{"main": {Settings{Host: "forge"}, fake{}}},
		Secrets: func(context.Context, string) ([]byte, error) { return []byte("secret"), nil }}
	handler := r.Handler()
	for range 5000 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/v1/hosts/"+strings.Repeat("x", 10_000), strings.NewReader("{}")))
		if w.Code != http.StatusNotFound {
			t.Fatal(w.Code)
		}
	}
	if lines := strings.Count(text.String(), "\n"); lines < 1 || lines > 500 || text.Len() > 500*lines {
		t.Errorf("%d lines of %d bytes", lines, text.Len())
	}
}

func TestWebhooksThatAreForgedReplayedOrOversizedAreRefused(t *testing.T) {
	log := memory.New(memory.Options{ID: "log", Partitions: 1})
	r := &Receiver{Log: log, Instance: "i", Logger: slog.New(slog.DiscardHandler), Repositories: map[string]Repository{"main": {setting, fake{}}}, Names: map[string]string{"main": "Acme/Shop"},
		Secrets: func(context.Context, string) ([]byte, error) { return []byte("s"), nil }}
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	post := func(path, body, delivery string) int {
		request, _ := http.NewRequest("POST", server.URL+path, strings.NewReader(body))
		request.Header.Set("D", delivery)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, c := range []struct {
		path, body, delivery string
		want                 int
	}{
		{"/v1/hosts/forge", "x", "1", http.StatusUnauthorized},
		{"/v1/hosts/other", "s", "1", http.StatusNotFound},
		{"/v1/hosts/forge", "s" + strings.Repeat("x", maxWebhook), "1", http.StatusRequestEntityTooLarge},
		{"/v1/hosts/forge", "s", "1", http.StatusNoContent},
		{"/v1/hosts/forge", "s", "1", http.StatusConflict},
		{"/v1/hosts/forge", "s", "2", http.StatusNoContent},
	} {
		if got := post(c.path, c.body, c.delivery); got != c.want {
			t.Errorf("%s %.5s %s: %d, want %d", c.path, c.body, c.delivery, got, c.want)
		}
	}
	arrivals := func(proof string) (a Arrivals, status int) {
		request, _ := http.NewRequest("GET", server.URL+"/v1/hosts/forge", nil)
		request.Header.Set(ArrivalsHeader, proof)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_ = json.NewDecoder(answer.Body).Decode(&a)
		return a, answer.StatusCode
	}
	if a, status := arrivals(ArrivalsProof("forge", []byte("s"))); status != http.StatusOK || !a.Taken.After(a.Refused) || !strings.Contains(a.Reason, "longer than") {
		t.Errorf("arrivals are %+v, %d", a, status)
	}
	for _, proof := range []string{"", ArrivalsProof("forge", []byte("x")), ArrivalsProof("other", []byte("s"))} {
		if a, status := arrivals(proof); status != http.StatusUnauthorized || a != (Arrivals{}) {
			t.Errorf("with the proof %q: %+v, %d", proof, a, status)
		}
	}
	doors := 0
	for _, d := range access.Doors() {
		if d.Kind != access.HostRoute {
			continue
		}
		doors++
		method, path, _ := strings.Cut(strings.ReplaceAll(d.Name, "{host}", "forge"), " ")
		w := httptest.NewRecorder()
		if server.Config.Handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("{}"))); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without the secret: %d", d.Name, w.Code)
		}
	}
	if doors == 0 {
		t.Error("no door of the hosts service was tried")
	}
	if end, err := log.End(t.Context(), events.TopicHosts, 0); err != nil || end != 2 {
		t.Errorf("there are %d records: %v", end, err)
	}
}

// TestASnapshotHoldsWhatTheLogSays folds records into a core, and into one that was restored half way.
func TestASnapshotHoldsWhatTheLogSays(t *testing.T) {
	settings := map[string]Settings{"main": setting}
	rules := access.NewRules(configuration.Access{Mode: configuration.AccessRequired})
	c := newCore(settings, rules, time.Minute)
	apply := func(topic string, offset int64, source string, term int64, m proto.Message) {
		e := journal.Entry{Offset: offset, Topic: topic}
		e.Source, e.Term, e.Message = source, term, m
		c.Apply(runner.Input{Record: &e, Now: time.Unix(1, 0)})
	}
	apply(events.TopicHosts, 0, events.ServiceHosts, 0, &eventsv1.Claim{Service: events.ServiceHosts})
	apply(events.TopicHosts, 1, receiverSource, -1, &eventsv1.HostNoticed{Host: "forge", Queue: "main", Number: 7})
	apply(events.TopicHosts, 2, events.ServiceHosts, 0, &eventsv1.HostedChange{Host: "forge", Queue: "main", Number: 8, Change: "pr-8", Head: "a1", RequestId: "r", StampUs: 5})
	apply(events.TopicOutcomes, 0, events.ServiceOutcomes, -1, &eventsv1.ChangeOutcome{Queue: "main", Subject: "pr-8", Change: "pr-8", State: "admitted", RequestId: "r", Sequence: 4})
	apply(events.TopicOutcomes, 1, events.ServiceOutcomes, -1, &eventsv1.ChangeOutcome{Queue: "main", Subject: "-request/0/1", Change: "pr-8", State: "refused", RequestId: "q", Sequence: 6})
	if got := c.reviews[key{"main", 8}].state(); got != queued || !c.reviews[key{"main", 7}].noticed {
		t.Errorf("it is %q", got)
	}
	c.floors["main"] = 3
	state, err := proto.Marshal(c.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	restored, err := restore(newCore(settings, rules, time.Minute), state)
	if err != nil {
		t.Fatal(err)
	}
	fields := snapshottest.New(t)
	fields.Same(c, restored)
	fields.Done()
}

func TestAHostThatFailsIsAskedMoreAndMoreRarely(t *testing.T) {
	c := newCore(map[string]Settings{"main": setting}, access.NewRules(configuration.Access{}), time.Hour)
	c.GoLive(time.Unix(100, 0))
	k := key{"main", 7}
	r := c.review(k)
	var pauses []int64
	for range 10 {
		r.busy = true
		c.agendaOf("main").flying++
		c.Apply(runner.Input{Outcome: Results{Looked{Key: k, Err: errors.New("away")}}, Now: time.Unix(100, 0)})
		pauses = append(pauses, (r.nextUS-c.now)/1e6)
	}
	if want := []int64{1, 2, 4, 8, 16, 32, 64, 120, 120, 120}; !slices.Equal(pauses, want) {
		t.Errorf("pauses are %v", pauses)
	}
}
