package gateway

import (
	"context"
	"fmt"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/gitrepo/gitrepotest"
	"landfall.build/platform/journal"
)

// TestRequestsWaitForTheRemoteAndHoldUpNoOther: what needs no remote is answered meanwhile, and what waits is answered when the
// remote is back, in order.
func TestRequestsWaitForTheRemoteAndHoldUpNoOther(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprintf("hangs=%v", hangs), func(t *testing.T) {
			repo, log := newRepository(t), newLog(1)
			known := repo.branch("known")
			repo.branch("late")
			repo.wire, repo.patience = gitrepotest.New(t, repo.remote, 0), "1h"
			if hangs {
				repo.patience = "3s"
			}
			set := repo.wire.SetAway
			if hangs {
				set = repo.wire.SetHangs
			}
			r := startGateway(t, log, repo, "g1")
			mirror, err := r.gateway.Mirrors(context.Background(), "repo")
			if err != nil {
				t.Fatal(err)
			}
			if err := mirror.Fetch(t.Context(), gitrepo.Wanted{}); err != nil {
				t.Fatal(err)
			}
			set(true)
			connections := repo.wire.Connections()
			status, reply := r.call("POST", "/v1/queues/main/changes?wait=0s", object{"request_id": "first", "change": "late", "entries": []object{{"ref": "late"}}})
			if status != 202 {
				t.Fatalf("%d %v", status, reply)
			}
			r.eventually("the remote was asked", func() bool { return repo.wire.Connections() > connections })
			status, reply = r.call("POST", "/v1/queues/main/changes?wait=20s", object{"change": "known", "entries": []object{{"commit": known}}})
			if status != 201 {
				t.Errorf("what needs no remote: %d %v", status, reply)
			}
			if answers := answersTo(t, log, "first"); len(answers) > 0 && !hangs {
				t.Errorf("what needs it is answered %v", answers)
			}
			if hangs {
				r.eventually("it is given up", func() bool { return len(answersTo(t, log, "first")) == 1 })
				if got := answersTo(t, log, "first"); got[0] != "repository_unreachable" {
					t.Errorf("answered %v", got)
				}
				return
			}
			// Of the same change, and needs no remote: it comes behind.
			status, reply = r.call("POST", "/v1/queues/main/changes?wait=0s", object{"request_id": "second", "change": "late", "entries": []object{{"commit": known}}})
			if status != 202 {
				t.Fatalf("%d %v", status, reply)
			}
			set(false)
			r.eventually("both are answered", func() bool { return r.summary("late").Revision == 2 })
			if first, second := answersTo(t, log, "first"), answersTo(t, log, "second"); fmt.Sprint(first, second) != "[admitted] [revised]" {
				t.Errorf("answered %v and %v", first, second)
			}
		})
	}
}

// TestPatienceIsConfigured: all that wait for the remote are refused after it, in one go.
func TestPatienceIsConfigured(t *testing.T) {
	repo, log := newRepository(t), newLog(1)
	repo.wire, repo.patience = gitrepotest.New(t, repo.remote, 0), "1s"
	repo.wire.SetAway(true)
	r := startGateway(t, log, repo, "g1")
	const many = 2000
	records := make([]journal.Record, many)
	for i := range records {
		records[i] = journal.Record{Topic: events.TopicLandRequests, Value: fmt.Appendf(nil, `{"queue":%q,"request_id":"r%d","entries":[{"ref":"b%d"}]}`, testQueue, i, i)}
	}
	begin := time.Now()
	if err := log.Write(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	room := r.gateway.queues[testQueue].room
	r.eventually("they are read", func() bool { return len(room) > 0 })
	r.eventually("all are answered", func() bool { return len(room) == 0 && len(all(t, log, events.TopicChanges)) >= many })
	if time.Since(begin) < time.Second {
		t.Error("none has waited")
	}
	for i := range many {
		if i%100 == 0 {
			if got := answersTo(t, log, fmt.Sprint("r", i)); len(got) != 1 || got[0] != "repository_unreachable" {
				t.Errorf("r%d is answered %v", i, got)
			}
		}
	}
	if n := repo.wire.Connections(); n > 20 {
		t.Errorf("%d connections", n)
	}
	repo.wire.SetAway(false)
	repo.branch("back")
	if status, reply := r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "back"})); status != 201 {
		t.Errorf("with the remote back: %d %v", status, reply)
	}
}
