package gateway

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/gitrepo/gitrepotest"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/state/statetest"
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

// BenchmarkGoodRequestsInAFlood is how long good requests by HTTP take, one after the other, while 9,805 that cannot be pinned
// wait before them. The remote answers a connection after 100 ms.
func BenchmarkGoodRequestsInAFlood(b *testing.B) {
	ghost := func(i int) string { return fmt.Sprintf(`{"ref":"ghost/%d"}`, i) }
	commit := func(i int) string { return fmt.Sprintf(`{"commit":"%040x"}`, i+1) }
	// The name of who floods is the author's, since a record by hand has no source.
	for name, flood := range map[string]struct {
		entry  func(i int) string
		author string
	}{
		"missing-refs":               {ghost, "bot"},
		"missing-refs-of-its-own":    {ghost, "ada"},
		"missing-commits":            {commit, "bot"},
		"one-missing-commit":         {func(int) string { return commit(0) }, "bot"},
		"one-missing-ref-of-its-own": {func(int) string { return ghost(0) }, "ada"},
	} {
		b.Run(name, func(b *testing.B) {
			const flooding, good = 9805, 20
			repo := newRepository(b)
			commits := repo.manyBranches(good)
			repo.wire = gitrepotest.New(b, repo.remote, 100*time.Millisecond)
			for b.Loop() {
				log := newLog(1)
				r := startGateway(b, log, repo, "g1")
				records := make([]journal.Record, flooding)
				for i := range records {
					records[i] = journal.Record{Topic: events.TopicLandRequests, Value: fmt.Appendf(nil, `{"queue":%q,"change":"f%d","entries":[%s],"author":%q}`, testQueue, i, flood.entry(i), flood.author)}
				}
				connections := repo.wire.Connections()
				begun := time.Now()
				if err := log.Write(context.Background(), records...); err != nil {
					b.Fatal(err)
				}
				var took []time.Duration
				for i := range good {
					entry := object{"ref": fmt.Sprint("many/", i)}
					if i%2 == 1 {
						entry = object{"commit": commits[i]}
					}
					begin := time.Now()
					if status, reply := r.call("POST", "/v1/queues/main/changes?wait=25s", object{"change": fmt.Sprint("good", i), "entries": []object{entry}}); status != 201 {
						b.Fatalf("%d %v", status, reply)
					}
					took = append(took, time.Since(begin))
				}
				during := time.Since(begun)
				r.eventually("the flood is answered", func() bool { return len(r.gateway.queues[testQueue].room) == 0 })
				slices.Sort(took)
				b.ReportMetric(took[good/2].Seconds(), "p50-s")
				b.ReportMetric(took[good*95/100-1].Seconds(), "p95-s")
				b.ReportMetric(took[good-1].Seconds(), "most-s")
				b.ReportMetric(during.Seconds(), "good-s")
				b.ReportMetric(time.Since(begun).Seconds(), "flood-s")
				b.ReportMetric(float64(repo.wire.Connections()-connections), "connections")
				r.stop()
			}
		})
	}
}

// BenchmarkFoldingWhileCheckpointsAreMade is how long an event takes from its append until people see it, while checkpoints of the past are
// made of an old log of 60,000 records, and while none are due.
func BenchmarkFoldingWhileCheckpointsAreMade(b *testing.B) {
	const old, followed = 60_000, 40_000
	for _, made := range []bool{false, true, false, true} {
		b.Run(fmt.Sprintf("made=%v", made), func(b *testing.B) {
			begin := time.Now()
			if made {
				begin = begin.Add(-24 * time.Hour) // what was written a moment ago gets no checkpoint
			}
			log, story := newLog(1), statetest.New(rand.New(rand.NewPCG(1, 2)), 100)
			written := uint64(0)
			put := func(e journal.Entry) {
				e.Time, e.Source, e.Term, e.Message = begin, "", -1, proto.Clone(e.Message)
				if _, err := log.Append(b.Context(), e.Topic, 0, e.Envelope); err != nil {
					b.Fatal(err)
				}
				written++
			}
			for written < old {
				for _, e := range story.Next() {
					put(e)
				}
			}
			g, _, stop := startWithDisk(b, log, b.TempDir())
			defer stop()
			var took []time.Duration
			for b.Loop() {
				took = took[:0]
				for len(took) < followed {
					for _, e := range story.Next() {
						began := time.Now()
						put(e)
						for seen := uint64(0); seen < written; {
							changed := g.Changed(testQueue)
							if g.Read(testQueue, func(q *view.Queue) { seen = q.Sequence() }); seen < written {
								<-changed
							}
						}
						took = append(took, time.Since(began))
					}
				}
			}
			slices.Sort(took)
			sum := time.Duration(0)
			for _, d := range took {
				sum += d
			}
			b.ReportMetric(float64(sum.Microseconds())/float64(len(took)), "µs/event")
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "median-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
			b.ReportMetric(float64(g.queues[testQueue].past.Checkpoints()), "checkpoints")
		})
	}
}
