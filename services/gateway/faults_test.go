package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
)

// Appends that fail before or after they are written, or come in late, and a gateway that stops in the
// middle: every request is answered, and each took at most one place in the queue.
func TestFailedAppendsAndRestartsAnswerEveryRequestOnce(t *testing.T) {
	random := seedtest.Random(t)
	repo := newRepository(t)
	commits := repo.manyBranches(8)
	var mu sync.Mutex
	failing, failures := true, 0
	log := memory.New(memory.Options{Partitions: 2, Fault: func(topic string, _ int32, _ events.Envelope) memory.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if topic != events.TopicChanges || !failing || random.IntN(8) > 0 {
			return memory.Deliver
		}
		failures++
		return []memory.Verdict{memory.FailBefore, memory.FailAfter, memory.Late}[random.IntN(3)]
	}})
	// Some ask again under the id of an earlier request; some are refused for the moment, for want of a requirement.
	const requests, deliveries = 60, 90
	for i := range deliveries {
		id, requires := i, `"c4"`
		if i >= requests {
			id = random.IntN(requests)
		}
		if random.IntN(3) > 0 || id%5 == 4 {
			requires = ""
		}
		value := fmt.Sprintf(`{"queue":%q,"change":"c%d","request_id":"r%d","entries":[{"commit":%q}],"requires":[%s]}`, testQueue, id%5, id, commits[random.IntN(len(commits))], requires)
		if err := log.Write(context.Background(), journal.Record{Topic: events.TopicLandRequests, Partition: int32(i % 2), Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	partition := events.PartitionOf(testQueue, 2)
	for round := range 3 {
		r := startGateway(t, log, repo, fmt.Sprint("g", round))
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			late := random.IntN(3)
			mu.Unlock()
			for range late {
				log.DeliverLate(events.TopicChanges, partition)
			}
		}
		if round < 2 {
			r.stop()
			continue
		}
		// A loaded machine may not have come to any append yet.
		r.eventually("an append failed", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return failures > 0
		})
		mu.Lock()
		failing = false
		mu.Unlock()
		r.eventually("every request is answered", func() bool { return len(answersIn(t, log)) == requests })
	}
	for log.DeliverLate(events.TopicChanges, partition) {
	}
	for id, times := range answersIn(t, log) {
		if times != 1 {
			t.Errorf("%s took %d places in the queue", id, times)
		}
	}
	if failures == 0 {
		t.Error("no append failed")
	}
}

// TestARequestThatTheLogDoesNotTakeIsNotSaidToBeInIt, and one that it took without saying so is admitted once.
func TestARequestThatTheLogDoesNotTakeIsNotSaidToBeInIt(t *testing.T) {
	repo := newRepository(t)
	repo.branch("lost")
	var mu sync.Mutex
	verdict := memory.FailBefore
	log := memory.New(memory.Options{Partitions: 1, Fault: func(topic string, _ int32, e events.Envelope) memory.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if _, steers := e.Message.(*eventsv1.QueuePaused); steers || topic == events.TopicLandRequests {
			return verdict
		}
		return memory.Deliver
	}})
	r := startGateway(t, log, repo, "g1")
	body := object{"entries": []object{{"ref": "lost"}}, "request_id": "mine"}
	refused := func(path string, body object) {
		t.Helper()
		status, reply := r.call("POST", path, body)
		detail, _ := reply["error"].(object)
		if status != 504 || detail["code"] != "unanswered" || strings.Contains(fmt.Sprint(detail["message"]), "in the log") {
			t.Errorf("%s: %d %v", path, status, reply)
		}
	}
	refused("/v1/queues/main/changes?wait=0s", body)
	refused("/v1/queues/main/pause", object{})
	mu.Lock()
	verdict = memory.FailAfter
	mu.Unlock()
	if status, reply := r.call("POST", "/v1/queues/main/changes", body); status != 504 && status != 201 {
		t.Errorf("taken without a word: %d %v", status, reply)
	}
	r.eventually("what was taken is admitted", func() bool { return r.summary("lost").Revision == 1 })
	mu.Lock()
	verdict = memory.Deliver
	mu.Unlock()
	if status, reply := r.call("POST", "/v1/queues/main/changes", body); status != 201 || reply["revision"] != 1.0 {
		t.Errorf("asked again: %d %v", status, reply)
	}
}

// answersIn folds the log as every reader does, and counts the places that each answered request took;
// a refusal stands for one where there is no place.
func answersIn(t *testing.T, log journal.Log) map[string]int {
	t.Helper()
	places, refused := map[string]int{}, map[string]bool{}
	q := lineup.New()
	for _, e := range all(t, log, events.TopicChanges) {
		if effect := q.Apply(e.Message, e.Offset); effect.Entered != nil {
			places[effect.Entered.Admission.RequestId]++
		}
		if f, is := e.Message.(*eventsv1.RequestRefused); is {
			refused[f.RequestId] = true
		}
	}
	for id := range refused {
		if places[id] == 0 {
			places[id] = 1
		}
	}
	return places
}
