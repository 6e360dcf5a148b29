package stack_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo/gitrepotest"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/api"
	"landfall.build/tools/client/clienttest"
)

// TestAFloodOfRequestsForWhatIsNotThereHoldsUpNobody, with a remote that takes its time: good requests that come behind it are
// admitted, and land, ahead of most of its answers.
func TestAFloodOfRequestsForWhatIsNotThereHoldsUpNobody(t *testing.T) {
	// The gateway asks git about 512 requests at once, and each of the good ones waits for one such batch or two. There are enough of
	// them that a busy machine is not through with most before the test has asked.
	const flood, good = 12_000, 3
	r := newRepository(t)
	wire := gitrepotest.New(t, r.bare, 200*time.Millisecond)
	// Git of every service finds it as ssh.
	t.Setenv("PATH", wire.Dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for i := range good {
		r.branch(fmt.Sprint("good", i), fmt.Sprintf("f%d/b.txt", i), "b\n")
	}
	settings := configured(t, r, t.TempDir())
	repo := settings.Repositories["sample"]
	repo.URL = wire.URL
	settings.Repositories["sample"] = repo
	patient := settings.Queues[queue]
	patient.Admission.Patience = time.Minute // Git looks thousands of branches up, which takes a busy machine a while.
	settings.Queues[queue] = patient
	s, c := start(t, settings)
	t.Cleanup(func() { s.Close() })
	records := make([]journal.Record, flood)
	for i := range records {
		records[i] = journal.Record{Topic: events.TopicLandRequests, Partition: events.PartitionOf(queue, s.Log().Partitions()),
			Value: fmt.Appendf(nil, `{"queue":%q,"entries":[{"ref":"ghost/%d"}],"author":"bot"}`, queue, i)}
	}
	if err := s.Log().Write(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		name := fmt.Sprint("good", i)
		if reply, err := clienttest.Land(t.Context(), c, queue, api.LandBody{Change: name, Entries: []api.LandEntry{{Ref: name}}}); err != nil || reply.Outcome != api.OutcomeAdmitted {
			t.Fatalf("%s: %v %v", name, reply, err)
		}
	}
	for i := range good {
		expect(t, c, fmt.Sprint("good", i), "landed")
	}
	refused, ahead := 0, 0
	cursor, err := s.Log().Follow(t.Context(), events.TopicChanges, events.PartitionOf(queue, s.Log().Partitions()), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	for refused < flood {
		e, err := cursor.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch m := e.Message.(type) {
		case *eventsv1.RequestRefused:
			if refused++; m.Code != "no_such_ref" {
				t.Fatalf("%v", m)
			}
		case *eventsv1.ChangeAdmitted:
			ahead = refused
		}
	}
	if ahead > flood*4/5 {
		t.Errorf("the last good request was admitted behind %d of %d", ahead, flood)
	}
}
