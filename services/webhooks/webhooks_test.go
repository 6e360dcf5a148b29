package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
)

// TestTheSignatureIsThatOfStandardWebhooks takes the example of the specification's own tests.
func TestTheSignatureIsThatOfStandardWebhooks(t *testing.T) {
	key, err := keyOf([]byte(testSecret + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	for _, bad := range []string{"", "whsec_", "whsec_c2hvcnQ=", "no base64!"} {
		if _, err := keyOf([]byte(bad)); err == nil || bad != "" && strings.Contains(err.Error(), bad) && len(bad) > 7 {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestAnOutcomeIsDeliveredOnceAndSigned, to those that want it, from when they are configured; one that is written again is not.
func TestAnOutcomeIsDeliveredOnceAndSigned(t *testing.T) {
	w := newWorld(t)
	all, ends := newReceiver(t), newReceiver(t)
	w.outcome("old", "landed")
	w.endpoint("all", all.URL+"/hook?token=hidden")
	w.endpoint("ends", ends.URL, "landed", "rejected")
	o := w.start()
	defer o.Close()
	w.until(o, "the endpoints are followed", func() bool { return len(w.records()) == 2 })
	first := w.outcome("a", "admitted")
	second := w.outcome("a", "landed")
	w.write(first, &eventsv1.ChangeOutcome{Queue: "main", Subject: "a", State: "admitted", Sequence: w.sequence[""] - 2})
	w.write(second, &eventsv1.ChangeOutcome{Queue: "main", Subject: "a", State: "landed", Sequence: w.sequence[""]})
	third := w.outcome("b", "admitted")
	w.delivered(o, 4)
	w.step(o)
	if got, want := all.all(), []string{first, second, third}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) || slices.Index(got, first) > slices.Index(got, second) {
		t.Errorf("it has taken %v, want %v", got, want)
	}
	if got := ends.all(); !slices.Equal(got, []string{second}) {
		t.Errorf("of ends it has taken %v, want %s", got, second)
	}
	head, content := ends.heads[0], ends.bodies[0]
	stamp, err := strconv.ParseInt(head.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := keyOf([]byte(testSecret))
	if got, want := head.Get("webhook-signature"), sign(key, second, time.Unix(stamp, 0), []byte(content)); got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
	if b := decode(t, content); b.Type != "build.landfall.change.landed" || !strings.Contains(string(b.Data), `"subject":"a"`) {
		t.Errorf("the body is %s", content)
	}
	if text := w.logged.String() + fmt.Sprint(w.records()); strings.Contains(text, "hidden") || strings.Contains(text, "MfKQ9r8G") {
		t.Errorf("a secret is in the log:\n%s", text)
	}
}

// TestAFailureDelaysNothingElse: not another endpoint, and not another change. The change's own next outcome waits.
func TestAFailureDelaysNothingElse(t *testing.T) {
	w := newWorld(t)
	good, bad := newReceiver(t), newReceiver(t)
	var stuck string
	bad.answer = func(id string) int {
		if id == stuck {
			return 503
		}
		return 200
	}
	w.endpoint("good", good.URL)
	w.endpoint("bad", bad.URL)
	o := w.start()
	defer o.Close()
	w.until(o, "the endpoints are followed", func() bool { return len(w.records()) == 2 })
	stuck = w.outcome("a", "admitted")
	next := w.outcome("a", "landed")
	other := w.outcome("b", "admitted")
	w.delivered(o, 4)
	w.until(o, "the failure is recorded", func() bool { return len(w.ended(eventsv1.DeliveryState_DELIVERY_STATE_FAILED)) == 1 })
	if got := bad.all(); !slices.Equal(got, []string{other}) {
		t.Errorf("it has taken %v, want %s", got, other)
	}
	if tries := bad.tries(stuck); tries != 1 {
		t.Errorf("it was tried %d times at once", tries)
	}
	w.clock = w.clock.Add(firstPause)
	w.until(o, "it is tried again", func() bool { return bad.tries(stuck) == 2 })
	bad.mu.Lock()
	stuck = ""
	bad.mu.Unlock()
	w.until(o, "the second failure is recorded", func() bool {
		n := 0
		for _, m := range w.records() {
			if d, is := m.(*eventsv1.WebhookDelivery); is && d.State == eventsv1.DeliveryState_DELIVERY_STATE_FAILED {
				n++
			}
		}
		return n == 2
	})
	w.clock = w.clock.Add(2 * firstPause)
	w.delivered(o, 6)
	if got := bad.all(); got[len(got)-1] != next {
		t.Errorf("it has taken %v, and %s last", got, next)
	}
}

// TestADeliveryIsGivenUpAfterADay, and can be asked for.
func TestADeliveryIsGivenUpAfterADay(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t)
	r.answer = func(string) int { return 500 }
	w.endpoint("bot", r.URL)
	o := w.start()
	defer o.Close()
	w.until(o, "the endpoint is followed", func() bool { return len(w.records()) == 1 })
	begun := w.clock
	id := w.outcome("a", "admitted")
	behind := w.outcome("a", "landed")
	givenUp := func() bool { return w.ended(eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP)["bot "+id] == 1 }
	attempts := 0
	for !givenUp() {
		attempts++
		w.until(o, "an attempt ends", func() bool {
			n := 0
			for _, m := range w.records() {
				if d, is := m.(*eventsv1.WebhookDelivery); is && d.Id == id {
					n++
				}
			}
			return n >= attempts
		})
		if !givenUp() {
			w.clock = w.clock.Add(pauseAfter(uint32(attempts)))
		}
	}
	if took := w.clock.Sub(begun); took < tryFor-2*lastPause || took > tryFor || attempts < 30 {
		t.Errorf("it was given up after %v and %d attempts", took, attempts)
	}
	r.mu.Lock()
	r.answer = nil
	r.mu.Unlock()
	w.until(o, "what waited is delivered", func() bool {
		w.clock = w.clock.Add(time.Second)
		return len(w.ended(eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED)) == 1
	})
	if got := r.all(); !slices.Equal(got, []string{behind}) {
		t.Errorf("what waited behind it: %v, want %s", got, behind)
	}
	if _, err := w.log.Append(t.Context(), events.TopicDeliveries, 0, events.Envelope{Source: "people", Queue: "main", Term: -1, Message: &eventsv1.WebhookAsked{
		Endpoint: "bot", Id: id, Outcome: &eventsv1.ChangeOutcome{Queue: "main", Subject: "a", State: "admitted", Sequence: 2}}}); err != nil {
		t.Fatal(err)
	}
	w.delivered(o, 2)
	if got := r.all(); !slices.Equal(got, []string{behind, id}) {
		t.Errorf("it has taken %v", got)
	}
}

// TestAnEndpointThatIsGoneIsNotTriedAgain.
func TestAnEndpointThatIsGoneIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t)
	r.answer = func(string) int { return http.StatusGone }
	w.endpoint("bot", r.URL)
	o := w.start()
	defer o.Close()
	w.until(o, "the endpoint is followed", func() bool { return len(w.records()) == 1 })
	id := w.outcome("a", "admitted")
	w.until(o, "it is given up", func() bool { return w.ended(eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP)["bot "+id] == 1 })
}

// TestPrivateAddressesAndRedirectsAreNotFollowed unless they are allowed.
func TestPrivateAddressesAndRedirectsAreNotFollowed(t *testing.T) {
	aim := newReceiver(t)
	from := httptest.NewServer(http.RedirectHandler(aim.URL, http.StatusTemporaryRedirect))
	defer from.Close()
	secret := func(context.Context) ([]byte, error) { return []byte(testSecret), nil }
	s := newSender(map[string]Endpoint{
		"private": {URL: aim.URL, Secret: secret}, "redirect": {URL: from.URL, Secret: secret, AllowPrivate: true},
		"secretless": {URL: aim.URL, AllowPrivate: true, Secret: func(context.Context) ([]byte, error) { return nil, errors.New("no such file") }},
		"nobody":     {URL: "http://127.0.0.1:1/path-with-a-token", AllowPrivate: true, Secret: secret},
	}, "test")
	defer s.close()
	for name, want := range map[string]string{"private": "allow_private", "redirect": "redirects are not followed", "secretless": "secret cannot be read", "nobody": "refused"} {
		r := s.attempt(Send{Key: key{endpoint: name}, ID: "x", Outcome: &eventsv1.ChangeOutcome{}})
		if !strings.Contains(r.Message, want) || strings.Contains(r.Message, "token") {
			t.Errorf("%s: %q, want %q", name, r.Message, want)
		}
	}
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "169.254.169.254:80", "[fe80::1]:80", "0.0.0.0:80", "[::ffff:127.0.0.1]:80", "224.0.0.1:80", "168.63.129.16:80", "x"} {
		if refusePrivate("tcp", address, nil) == nil {
			t.Errorf("%s is called", address)
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if address := net.JoinHostPort(a.(*net.IPNet).IP.String(), "80"); refusePrivate("tcp", address, nil) == nil {
			t.Errorf("%s, which is this machine's, is called", address)
		}
	}
	for _, address := range []string{"192.0.2.1:443", "[2001:db8::1]:443", "10.255.254.253:443"} {
		if err := refusePrivate("tcp", address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	if got := aim.all(); len(got) != 0 {
		t.Errorf("it has taken %v", got)
	}
}

// TestARestartLosesNothing: owners end at random, at any moment, and start with a snapshot or without. Each outcome is delivered in the
// order of its change, and again only if it was under way when an owner ended.
func TestARestartLosesNothing(t *testing.T) {
	r := seedtest.Random(t)
	repeated := 0
	for range 12 {
		w := newWorld(t)
		w.store = snapshot.InMemory(snapshot.Pace{After: 1 + r.IntN(10)})
		bot := newReceiver(t)
		failing := map[string]bool{}
		bot.answer = func(id string) int {
			bot.mu.Lock()
			defer bot.mu.Unlock()
			if failing[id] && bot.tried[id] < 2 {
				return 500
			}
			return 200
		}
		w.endpoint("bot", bot.URL)
		o := w.start()
		w.until(o, "the endpoint is followed", func() bool { return len(w.records()) == 1 })
		order := map[string][]string{}
		atRisk, n := map[string]bool{}, 0
		for range 60 {
			change := string(rune('a' + r.IntN(4)))
			id := w.outcome(change, "held")
			n++
			bot.mu.Lock()
			failing[id] = r.IntN(4) == 0
			bot.mu.Unlock()
			order[change] = append(order[change], id)
			for range r.IntN(4) {
				w.step(o)
			}
			if r.IntN(3) == 0 {
				w.clock = w.clock.Add(time.Duration(r.IntN(20)) * time.Second)
			}
			if r.IntN(6) == 0 {
				done := w.ended(eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED)
				o.Close()
				for _, ids := range order {
					for _, id := range ids {
						if done["bot "+id] == 0 {
							atRisk[id] = true
						}
					}
				}
				if r.IntN(3) == 0 {
					w.store = snapshot.InMemory(snapshot.Pace{After: 1 + r.IntN(10)})
				}
				o = w.start()
			}
		}
		w.until(o, "all is delivered", func() bool {
			w.clock = w.clock.Add(time.Second)
			return len(w.ended(eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED)) == n
		})
		o.Close()
		first := map[string]int{}
		for i, id := range bot.all() {
			if _, had := first[id]; had {
				repeated++
				if !atRisk[id] {
					t.Fatalf("%s is delivered again though its delivery was recorded", id)
				}
				continue
			}
			first[id] = i
		}
		for change, ids := range order {
			for i := 1; i < len(ids); i++ {
				if first[ids[i-1]] > first[ids[i]] {
					t.Fatalf("of %s, %s comes before %s: %v", change, ids[i], ids[i-1], bot.all())
				}
			}
		}
		for id, times := range w.ended(eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED) {
			if times != 1 {
				t.Fatalf("%s is recorded %d times", id, times)
			}
		}
	}
	t.Logf("%d deliveries were repeated", repeated)
}

// TestTooManyOpenDeliveriesAreGivenUp, and recorded, so that nothing is lost without a word.
func TestTooManyOpenDeliveriesAreGivenUp(t *testing.T) {
	c := newCore(map[string]Wants{"bot": {}})
	l := newLedger(0, 0)
	c.ledgers["bot"] = l
	for i := range int64(maxOpen + 2) {
		m := &eventsv1.ChangeOutcome{Queue: "main", Subject: fmt.Sprint(i), Sequence: i}
		l.add(i, delivery{outcome: m}, i < maxOpen)
		if i >= maxOpen {
			e := entry(i, m)
			c.Apply(runner.Input{Record: &e})
		}
	}
	if len(c.ended) != 2 {
		t.Fatalf("%d are given up, want 2", len(c.ended))
	}
	d := c.Decide()[0].(runner.Append).Message.(*eventsv1.WebhookDelivery)
	if d.State != eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP || d.Position != maxOpen || d.Attempt != 0 {
		t.Errorf("it is %v", d)
	}
}

// TestAnEndpointThatIsNoLongerConfiguredIsForgotten, and begins anew when it is back.
func TestAnEndpointThatIsNoLongerConfiguredIsForgotten(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t)
	r.answer = func(string) int { return 500 }
	w.endpoint("bot", r.URL)
	o := w.start()
	w.until(o, "the endpoint is followed", func() bool { return len(w.records()) == 1 })
	w.outcome("a", "admitted")
	w.until(o, "it failed", func() bool { return len(w.records()) == 2 })
	o.Close()
	kept := w.endpoints
	w.endpoints = map[string]Endpoint{}
	o = w.start()
	w.until(o, "the endpoint is left", func() bool { return len(w.records()) == 3 })
	o.Close()
	w.outcome("b", "admitted")
	w.endpoints = kept
	r.mu.Lock()
	r.answer = nil
	r.mu.Unlock()
	o = w.start()
	defer o.Close()
	w.until(o, "the endpoint is followed again", func() bool { return len(w.records()) == 4 })
	id := w.outcome("c", "admitted")
	w.delivered(o, 1)
	if got := r.all(); !slices.Equal(got, []string{id}) {
		t.Errorf("it has taken %v, want %s", got, id)
	}
}

func TestASnapshotHoldsTheWholeCore(t *testing.T) {
	wants := map[string]Wants{"bot": {}}
	c := newCore(wants)
	records := []proto.Message{
		&eventsv1.Claim{Service: events.ServiceWebhooks},
		&eventsv1.WebhookFollowed{Endpoint: "bot", From: 3, StampUs: 5},
		&eventsv1.WebhookDelivery{Endpoint: "bot", Id: "main/8", Queue: "main", Subject: "a", Sequence: 8, Position: 9, State: eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED, Attempt: 1, SettledBelow: 5},
		&eventsv1.WebhookDelivery{Endpoint: "bot", Id: "main/9", Queue: "main", Subject: "b", Sequence: 9, Position: 7, State: eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED, Attempt: 1},
		&eventsv1.WebhookDelivery{Endpoint: "bot", Id: "main/4", Queue: "main", Subject: "c", Sequence: 4, Position: 8, State: eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP, Attempt: 3},
		&eventsv1.WebhookDelivery{Endpoint: "bot", Id: "main/10", Position: 10, State: eventsv1.DeliveryState_DELIVERY_STATE_FAILED, Attempt: 1, NextUs: 7},
		&eventsv1.WebhookAsked{Endpoint: "bot", Id: "main/6", Outcome: &eventsv1.ChangeOutcome{Subject: "b"}},
		&eventsv1.WebhookDelivery{Endpoint: "bot", Id: "main/6", Position: 6, Asked: true, State: eventsv1.DeliveryState_DELIVERY_STATE_FAILED, Attempt: 1},
	}
	for i, m := range records {
		e := entry(int64(i), m)
		e.Topic, e.Source, e.Term = events.TopicDeliveries, events.ServiceWebhooks, 0
		if _, asked := m.(*eventsv1.WebhookAsked); asked {
			e.Source, e.Term = "people", -1
		}
		c.Apply(runner.Input{Record: &e})
	}
	state, err := proto.Marshal(c.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	restored, err := restore(wants, state)
	if err != nil {
		t.Fatal(err)
	}
	fields := snapshottest.New(t)
	fields.Same(c, restored)
	fields.Done()
}
