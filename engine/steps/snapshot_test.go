package steps

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// restored returns a queue that went into a snapshot and came out of it.
func restored(t testing.TB, q *Queue) *Queue {
	t.Helper()
	bytes, err := proto.Marshal(q.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	m := &snapshotv1.Steps{}
	if err := proto.Unmarshal(bytes, m); err != nil {
		t.Fatal(err)
	}
	again, err := Restore(m)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// shown is everything that a queue answers at a time.
func shown(q *Queue, now int64) string {
	lapse, lapses := q.NextLapse(now)
	var preparations, next []string
	for _, p := range q.Preparations(now) {
		preparations = append(preparations, fmt.Sprint(p.Build, p.Origin))
	}
	for _, s := range q.Next(now, 1000, nil, nil) {
		next = append(next, fmt.Sprint(describe(s.Version, s.Attempt, s.Part, s.Build.Build), s.Origin, s.Quotas))
		for _, c := range q.Companions(s, now, nil) {
			next = append(next, "with "+describe(c.Version, c.Attempt, c.Part, c.Build.Build))
		}
	}
	return fmt.Sprintf("preparations %v\nnext %v\nleases %v\nlapse %d %v\nearly %d, idle %v\nforgettable %v of %d\n",
		preparations, next, q.Leases(), lapse, lapses, q.Early(), q.Idle(), q.Forgettable(0), q.Remembered())
}

// TestAQueueGoesOnFromItsSnapshot: at any point of a random history the restored queue is the same, and answers the same from
// there on.
func TestAQueueGoesOnFromItsSnapshot(t *testing.T) {
	seed, fields := seedtest.Of(t), snapshottest.New(t)
	for run := range uint64(300) {
		h := &history{r: rand.New(rand.NewPCG(seed, run)), clock: 1000, treesOf: run%2 == 0}
		q := New()
		h.setQuotas()
		q.SetQuotas(h.quotas)
		for _, m := range []proto.Message{
			&eventsv1.ChangeAdmitted{Admission: h.admission("held", 1)}, &eventsv1.ChangeHeld{Change: "held", Hold: "freeze", Who: "Ada", Why: "later"},
			&eventsv1.QueuePaused{Who: "Ada", Why: "later", StampUs: 7}, &eventsv1.LandingsPaused{Message: "frozen"}, &eventsv1.MainlineMoved{To: "m"},
		} {
			q.Apply(m, Origin{})
		}
		if run == 0 {
			q.Apply(&eventsv1.LandIntended{Change: &eventsv1.ChangeRef{Change: "held", Revision: 1}, Commits: []string{"m"}}, Origin{Offset: 7})
		}
		q.ledger.MarkTrivial(Version{Target: "//trivial", Hash: "h"})
		var others []*Queue
		for step := range int64(100) {
			m := h.next()
			for _, o := range append([]*Queue{q}, others...) {
				if m == nil {
					o.ForgetEarly()
				} else {
					o.Apply(m, Origin{step, fmt.Sprint("trace", step)})
				}
			}
			want := shown(q, h.clock)
			for _, o := range others {
				if got := shown(o, h.clock); got != want {
					t.Fatalf("run %d, step %d (%v): a restored queue shows\n%s\nwant\n%s", run, step, m, got, want)
				}
			}
			revived := slices.ContainsFunc(q.order, func(b *build) bool { return b.revived }) // seldom
			if h.r.IntN(30) == 0 || revived && h.r.IntN(3) == 0 {
				other := restored(t, q)
				other.SetQuotas(h.quotas)
				fields.Same(q, other)
				others = append(others, other)
			}
		}
	}
	fields.Done()
}

func TestASnapshotThatMakesNoSenseIsAnError(t *testing.T) {
	scheduled := &eventsv1.BuildScheduled{Build: "b"}
	version := func(m *snapshotv1.Steps) *snapshotv1.Steps {
		m.Targets, m.VersionTargets, m.VersionHashes, m.VersionMentions = []string{"t"}, []uint32{0}, []string{"h"}, []uint64{1}
		return m
	}
	for name, m := range map[string]*snapshotv1.Steps{
		"a version of no target":              {VersionTargets: []uint32{0}, VersionHashes: []string{"h"}, VersionMentions: []uint64{1}},
		"versions without hashes":             {Targets: []string{"t"}, VersionTargets: []uint32{0}, VersionMentions: []uint64{1}},
		"versions without mentions":           {Targets: []string{"t"}, VersionTargets: []uint32{0}, VersionHashes: []string{"h"}},
		"a build without a schedule":          {Live: []*snapshotv1.StepsBuild{{}}},
		"a build of no version":               {Live: []*snapshotv1.StepsBuild{{Scheduled: scheduled, Started: 1, Asked: []uint32{0}, AskedParts: []uint32{1}}}},
		"asked versions without parts":        version(&snapshotv1.Steps{Closed: []*snapshotv1.StepsBuild{{Scheduled: scheduled, Started: 1, Asked: []uint32{0}}}}),
		"a tree of no version":                version(&snapshotv1.Steps{Trees: []*snapshotv1.StepsTrees{{Versions: []uint32{1}}}}),
		"a mainline of no version":            version(&snapshotv1.Steps{Mainline: []uint32{1}}),
		"a lease of no version":               version(&snapshotv1.Steps{Leases: []*snapshotv1.StepsLease{{Version: 1}}}),
		"a wanted version of none":            {Wanted: []uint32{0}, WantedUs: []int64{1}, WantedRisks: []float64{0}},
		"wanted without durations":            version(&snapshotv1.Steps{Wanted: []uint32{0}, WantedRisks: []float64{0}}),
		"wanted without risks":                version(&snapshotv1.Steps{Wanted: []uint32{0}, WantedUs: []int64{1}}),
		"builds that are over, without worth": {GoneEndsUs: []float64{1}},
		"needs of no version": version(&snapshotv1.Steps{Closed: []*snapshotv1.StepsBuild{{Scheduled: scheduled, Started: 1, Asked: []uint32{0},
			AskedParts: []uint32{1}, Needs: []*eventsv1.VersionNeeds{{Versions: []uint32{1}}}}}}),
		"a lineup that makes no sense": {Lineup: &snapshotv1.Lineup{Changes: []*snapshotv1.LineupChange{{}}}},
	} {
		if _, err := Restore(m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if q, err := Restore(nil); err != nil || !q.Idle() {
		t.Errorf("no message: %v, %v", q, err)
	}
}

// largeQueue has 1,000 pending changes with ten versions each, 30,000 versions with results, and 200 live builds of a hundred
// versions, half of which are done.
func largeQueue() *Queue {
	q := New()
	name := func(i int) string { return fmt.Sprintf("//services/area%d/package%d:target%d", i%100, i%700, i%5000) }
	hash := func(i int) string { return fmt.Sprintf("%064x", uint64(i)*0x9e3779b97f4a7c15) }
	for i := range 1000 {
		id := fmt.Sprintf("change-%04d", i)
		q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: "main", Change: id, Revision: 1, RequestId: hash(i)[:32], Author: "Ada <ada@example.com>",
			Title: "Make the thing do the other thing", Entries: []*eventsv1.Entry{{Ref: "refs/heads/" + id, Commit: hash(i)[:40]}},
			LandingCommits: []*eventsv1.LandingCommit{{Head: hash(i)[:40], Base: hash(0)[:40]}}}}, Origin{int64(i), hash(i)[:32]})
	}
	done := func(i int, build string) {
		q.Apply(&eventsv1.StepFinished{Target: name(i), Hash: hash(i), Attempt: 1, Outcome: passed, Worker: "builder-1/4", Build: build,
			Log: "main/" + hash(i)[:32] + ".log", StartedUs: int64(i) * 1e6, FinishedUs: int64(i)*1e6 + 3e7,
			Commands: []*eventsv1.CommandFinished{{Name: "test", DurationUs: 3e7, Outcome: passed}}}, Origin{int64(i), hash(i)[:32]})
	}
	for i := range 30_000 {
		done(i, hash(i / 100)[:32])
	}
	for b := range 200 {
		id, change := hash(b)[:32], fmt.Sprintf("change-%04d", b)
		s := &eventsv1.BuildScheduled{Build: id, Value: float64(b), Base: hash(0)[:40], Steps: &eventsv1.StepPolicy{}, Repository: "shop", Branch: "main",
			Change: &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: change, Revision: 1}, LandingCommits: []*eventsv1.LandingCommit{{Head: hash(b)[:40], Base: hash(0)[:40]}}}}
		p := &eventsv1.BuildPrepared{Build: id, Change: s.Change.Change, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for i := range 100 {
			n := 25_000 + 50*b + i
			s.Targets = append(s.Targets, &eventsv1.TargetVersion{Target: name(n), Part: 1})
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: name(n), Hash: hash(n), Part: 1})
		}
		q.Apply(&eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: s}}}}, Origin{int64(b), hash(b)[:32]})
		q.Apply(p, Origin{int64(b), hash(b)[:32]})
	}
	return q
}

func BenchmarkSnapshot(b *testing.B) {
	q := largeQueue()
	bytes, _ := proto.Marshal(q.Snapshot())
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			proto.Marshal(q.Snapshot())
		}
		b.ReportMetric(float64(len(bytes)), "bytes")
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			m := &snapshotv1.Steps{}
			if err := proto.Unmarshal(bytes, m); err != nil {
				b.Fatal(err)
			}
			if _, err := Restore(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
