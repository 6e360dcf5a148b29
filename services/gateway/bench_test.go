package gateway

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

// manyBranches writes n branches of one commit each on main, and returns their commits.
func (r *repository) manyBranches(n int) []string {
	r.t.Helper()
	main := r.git("rev-parse", "main")
	var in bytes.Buffer
	for i := range n {
		text := fmt.Sprintf("content %d\n", i)
		fmt.Fprintf(&in, "commit refs/heads/many/%d\nmark :%d\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 7\nChange\n\nfrom %s\nM 100644 inline many%d\ndata %d\n%s\n", i, i+1, main, i, len(text), text)
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = r.remote, &in
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("fast-import: %v\n%s", err, out)
	}
	return strings.Fields(r.run(r.remote, "for-each-ref", "--format=%(objectname)", "refs/heads/many/"))
}

// BenchmarkLandRequestsAccepted is how fast a burst of land events becomes admissions, each of another
// commit, pinned in a real mirror that has them (the remote's webhook or a poll fetched them before).
func BenchmarkLandRequestsAccepted(b *testing.B) {
	const burst = 2000
	repo := newRepository(b)
	commits := repo.manyBranches(burst)
	for b.Loop() {
		b.StopTimer()
		log := newLog(1)
		r := startGateway(b, log, repo, "g1")
		r.gateway.queues[testQueue].settings.Limits.Pending = burst
		warm, err := r.gateway.Mirrors(context.Background(), "repo")
		if err != nil {
			b.Fatal(err)
		}
		if err := warm.Fetch(context.Background(), gitrepo.Wanted{}); err != nil {
			b.Fatal(err)
		}
		records := make([]journal.Record, burst)
		for i, commit := range commits {
			value, _ := proto.Marshal(&eventsv1.LandRequest{Queue: testQueue, Change: fmt.Sprint("c", i), Entries: []*eventsv1.Entry{{Commit: commit}}})
			records[i] = journal.Record{Topic: events.TopicLandRequests, Value: value, Headers: []events.Header{{Key: "content-type", Value: []byte("application/protobuf")}}}
		}
		b.StartTimer()
		if err := log.Write(context.Background(), records...); err != nil {
			b.Fatal(err)
		}
		r.eventually("all are admitted", func() bool {
			pending := 0
			r.gateway.Read(testQueue, func(q *view.Queue) { pending = len(q.Lineup().Order()) })
			return pending == burst
		})
		b.StopTimer()
		r.stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(burst)*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkLandRequestsFetched is the same when every commit has to be fetched from the remote first.
func BenchmarkLandRequestsFetched(b *testing.B) {
	const burst = 300
	repo := newRepository(b)
	commits := repo.manyBranches(burst)
	for b.Loop() {
		b.StopTimer()
		log := newLog(1)
		r := startGateway(b, log, repo, "g1")
		records := make([]journal.Record, burst)
		for i := range commits {
			records[i] = journal.Record{Topic: events.TopicLandRequests, Value: fmt.Appendf(nil, `{"queue":%q,"entries":[{"ref":"many/%d"}]}`, testQueue, i)}
		}
		b.StartTimer()
		if err := log.Write(context.Background(), records...); err != nil {
			b.Fatal(err)
		}
		r.eventually("all are admitted", func() bool {
			pending := 0
			r.gateway.Read(testQueue, func(q *view.Queue) { pending = len(q.Lineup().Order()) })
			return pending == burst
		})
		b.StopTimer()
		r.stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(burst)*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkGoodRequestsInAFlood is how long good requests by HTTP take while 10,000 for branches that are not there wait
// before them, on a real remote.
func BenchmarkGoodRequestsInAFlood(b *testing.B) {
	const flood, good = 10_000, 20
	repo := newRepository(b)
	repo.manyBranches(good)
	for b.Loop() {
		log := newLog(1)
		r := startGateway(b, log, repo, "g1")
		records := make([]journal.Record, flood)
		for i := range records {
			records[i] = journal.Record{Topic: events.TopicLandRequests, Value: fmt.Appendf(nil, `{"queue":%q,"entries":[{"ref":"ghost/%d"}],"author":"bot"}`, testQueue, i)}
		}
		if err := log.Write(context.Background(), records...); err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for i := range good {
			begin := time.Now()
			if status, reply := r.call("POST", "/v1/queues/main/changes?wait=25s", object{"entries": []object{{"ref": fmt.Sprint("many/", i)}}}); status != 201 {
				b.Fatalf("%d %v", status, reply)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		b.ReportMetric(took[good/2].Seconds(), "p50-s")
		b.ReportMetric(took[good-1].Seconds(), "most-s")
		r.stop()
	}
}
