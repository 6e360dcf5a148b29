package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// ask publishes a land request of an id for a branch, as any client of Kafka may.
func ask(t *testing.T, log journal.Log, id, branch string) {
	t.Helper()
	value := fmt.Sprintf(`{"queue":%q,"request_id":%q,"entries":[{"ref":%q}]}`, testQueue, id, branch)
	writer := log.(interface {
		Write(ctx context.Context, records ...journal.Record) error
	})
	if err := writer.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
}

// answersTo is what was answered to a request id, in order.
func answersTo(t *testing.T, log journal.Log, id string) (out []string) {
	t.Helper()
	for _, e := range all(t, log, events.TopicChanges) {
		switch m := e.Message.(type) {
		case *eventsv1.RequestRefused:
			if m.RequestId == id {
				out = append(out, m.Code)
			}
		case *eventsv1.ChangeAdmitted:
			if m.Admission.RequestId == id {
				out = append(out, "admitted")
			}
		case *eventsv1.ChangeRevised:
			if m.Admission.RequestId == id {
				out = append(out, "revised")
			}
		}
	}
	return out
}

// TestWhatWasRefusedForTheMomentIsDecidedAnewWhenAskedAgain under the same id, and admitted once.
func TestWhatWasRefusedForTheMomentIsDecidedAnewWhenAskedAgain(t *testing.T) {
	repo, log := newRepository(t), newLog(1)
	r := startGateway(t, log, repo, "g1")
	land := func(id, ref string, status int) {
		t.Helper()
		got, reply := r.call("POST", "/v1/queues/main/changes", object{"request_id": id, "entries": []object{{"ref": ref}}})
		if got != status {
			t.Errorf("%s under %s: %d %v, want %d", ref, id, got, reply, status)
		}
	}
	land("mine", "late", 422)
	land("mine", "late", 422)
	land("mine", "other", 409) // the id is another change's, though that was refused
	repo.branch("late")
	repo.branch("other")
	land("mine", "late", 201)
	land("mine", "late", 201) // as it was answered
	land("mine", "other", 409)
	land("again", "late", 200)
	land("again", "other", 409) // the first was unchanged
	want := []string{"no_such_ref", "no_such_ref", "admitted"}
	if got := answersTo(t, log, "mine"); !slices.Equal(got, want) {
		t.Errorf("answered %v, want %v", got, want)
	}
	if status, reply := r.call("POST", "/v1/queues/main/changes", landBody(object{"commit": strings.ToUpper(repo.branch("upper"))})); status != 201 {
		t.Errorf("a commit in capitals: %d %v", status, reply)
	}
	r.stop()
	before := len(all(t, log, events.TopicChanges))
	r = startGateway(t, log, repo, "g2")
	land("mine", "late", 201)
	land("mine", "other", 409)
	if got := len(all(t, log, events.TopicChanges)); got != before {
		t.Errorf("another gateway wrote %d records", got-before)
	}
}

// TestARecordThatIsReadAgainIsNotARequestThatIsAskedAgain: what was refused long ago is not decided by the next start.
func TestARecordThatIsReadAgainIsNotARequestThatIsAskedAgain(t *testing.T) {
	repo, log := newRepository(t), newLog(1)
	// Two clients, or one twice, before anybody reads: each has its answer.
	ask(t, log, "twice", "late")
	ask(t, log, "twice", "late")
	// A gateway of an earlier version refused this one, for good.
	ask(t, log, "old", "aged")
	_, err := log.Append(t.Context(), events.TopicChanges, 0, events.Envelope{
		ID: events.DeriveID(log.ID(), "answer", "old", "3"), Source: events.ServiceGateway, Instance: "g0", Queue: testQueue, Term: -1, Time: time.Now(),
		Message: &eventsv1.RequestRefused{RequestId: "old", Change: "aged", Code: "no_such_ref", Message: "No."},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"no_such_ref", "no_such_ref"}
	for round := range 3 {
		r := startGateway(t, log, repo, fmt.Sprint("g", round))
		r.eventually("both are answered", func() bool { return len(answersTo(t, log, "twice")) >= len(want) })
		repo.branch("behind") // read behind all of them
		r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "behind"}))
		if got := answersTo(t, log, "twice"); !slices.Equal(got, want) {
			t.Errorf("start %d: answered %v, want %v", round, got, want)
		}
		if got := answersTo(t, log, "old"); len(got) != 1 {
			t.Errorf("start %d: what an earlier version refused is answered %v", round, got)
		}
		if round == 0 {
			repo.branch("late")
			repo.branch("aged")
		}
		if round == 1 {
			ask(t, log, "twice", "late")
			want = append(want, "admitted")
			r.eventually("who asks again is admitted", func() bool { return r.summary("late").Revision == 1 })
		}
		r.stop()
	}
}

// TestByKafkaAUsedIDIsRefusedAndARepeatGetsItsAnswer, each record once, however often it is read.
func TestByKafkaAUsedIDIsRefusedAndARepeatGetsItsAnswer(t *testing.T) {
	repo, log := newRepository(t), newLog(1)
	repo.branch("mine")
	repo.branch("other")
	ask(t, log, "one", "mine")
	ask(t, log, "one", "other")
	ask(t, log, "one", "mine")
	ask(t, log, "bad", "main")
	ask(t, log, "bad", "main")
	ask(t, log, "late", "ghost")
	ask(t, log, "late", "other")
	want := map[string][]string{
		"one":  {"admitted", "request_id_taken", "unchanged"},
		"bad":  {"already_in", "already_in"},
		"late": {"no_such_ref", "request_id_taken"},
	}
	check := func(r *running) {
		t.Helper()
		for id, codes := range want {
			r.eventually("all of "+id+" are answered", func() bool { return len(answersTo(t, log, id)) >= len(codes) })
			got := answersTo(t, log, id)
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(codes))) {
				t.Errorf("%s is answered %v, want %v", id, got, codes)
			}
		}
	}
	for round := range 3 {
		r := startGateway(t, log, repo, fmt.Sprint("g", round))
		repo.branch("behind") // read behind all of them
		r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "behind"}))
		check(r)
		if round == 1 {
			r.call("POST", "/v1/queues/main/changes/mine/cancel", object{})
			ask(t, log, "one", "mine")
			want["one"] = append(want["one"], "unchanged")
			check(r)
			status, reply := r.call("POST", "/v1/queues/main/changes", object{"request_id": "one", "entries": []object{{"ref": "mine"}}})
			if status != 201 || reply["state"] != "cancelled" {
				t.Errorf("by HTTP, as it was answered: %d %v", status, reply)
			}
			status, reply = r.call("POST", "/v1/queues/main/changes", object{"request_id": "one", "entries": []object{{"ref": "other"}}})
			detail, _ := reply["error"].(object)
			if text := fmt.Sprint(detail["message"], detail["advice"]); status != 409 || detail["code"] != "request_id_taken" || strings.Count(strings.ToLower(text), "give each request its own id") != 1 {
				t.Errorf("by HTTP, for another change: %d %v", status, reply)
			}
		}
		r.stop()
	}
	var states []string
	for _, e := range all(t, log, events.TopicChanges) {
		if m, is := e.Message.(*eventsv1.RequestRefused); is && m.RequestId == "one" && m.Code == "unchanged" {
			states = append(states, m.State)
			if m.Change != "mine" || m.Revision != 1 {
				t.Errorf("%v", m)
			}
		}
	}
	if !slices.Equal(states, []string{"pending", "cancelled"}) {
		t.Errorf("the repeats say %v", states)
	}
}
