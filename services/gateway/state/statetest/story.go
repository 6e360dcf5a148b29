// Package statetest draws records that the state of a queue is folded from, for tests.
package statetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Story draws records that a queue is folded from: changes are admitted, revised, held, moved, built, landed, rejected and
// cancelled, and now and then a record of one topic comes before the one of another topic that it speaks of. What is pending and what
// runs is bounded, however long the story gets, as it is in a queue.
type Story struct {
	random  *rand.Rand
	offsets map[string]int64
	now     int64
	changes int
	pending []*drawn
	// left are the last that left the queue, oldest first.
	left []*drawn
	// early is a change whose builds are told of before its admission, nil if there is none; late is one that is prepared, and scheduled then.
	early *drawn
	late  string
	// pushing is the change that is being pushed, by which intention; nil if none is. Only one is at a time.
	pushing   *drawn
	intention *eventsv1.LandIntended
	// head is the mainline's.
	head string
	// most is how many changes are pending at the same time.
	most     int
	position int64
	ranking  int
}

// drawn is a change of a story.
type drawn struct {
	id       string
	revision uint64
	position int64
	ahead    []*drawn
	node     *eventsv1.Node
	builds   []*drawnBuild
}

type drawnBuild struct {
	id       string
	versions []*eventsv1.TargetVersion
	attempts int
}

// New returns a story of the queue main with at most so many changes pending at a time.
func New(random *rand.Rand, most int) *Story {
	s := &Story{random: random, offsets: map[string]int64{}, now: 1_700_000_000_000_000, most: most}
	s.head = s.commit()
	return s
}

func (s *Story) entry(topic string, m proto.Message) journal.Entry {
	e := journal.Entry{Topic: topic, Offset: s.offsets[topic]}
	e.ID, e.Message, e.Queue, e.Term = fmt.Sprint(topic, s.offsets[topic]), m, "main", 3
	s.offsets[topic]++
	return e
}

func (s *Story) hash() string { return fmt.Sprintf("%016x%016x", s.random.Uint64(), s.random.Uint64()) }

func (s *Story) commit() string { return s.hash() + fmt.Sprintf("%08x", s.random.Uint32()) }

func (d *drawn) ref() *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: d.id, Revision: d.revision}
}

func (s *Story) admission(d *drawn) *eventsv1.Admission {
	commit := s.commit()
	return &eventsv1.Admission{
		Queue: "main", Change: d.id, Revision: d.revision, RequestId: s.hash(), ReceivedUs: s.now, Mainline: s.commit(), Author: "Ada Lovelace <ada@example.org>",
		Title: "Make " + d.id + " a little faster", Description: strings.Repeat("It was slow. ", s.random.IntN(40)), Team: "engines", Benefit: 1,
		Entries: []*eventsv1.Entry{{Ref: "feature/" + d.id, Commit: commit}}, LandingCommits: []*eventsv1.LandingCommit{{Head: commit, Base: s.commit()}},
		Place: &eventsv1.RequestPlace{Partition: int32(s.random.IntN(3)), Offset: s.now},
	}
}

// keptLeft bounds Story.left.
const keptLeft = 60

// change draws the next change.
func (s *Story) change() *drawn {
	s.changes++
	return &drawn{id: fmt.Sprintf("team-%d/change-%06d", s.random.IntN(20), s.changes), revision: 1, position: int64(s.changes) << 20}
}

// Now returns the time of the last step, a second after the one before.
func (s *Story) Now() time.Time { return time.UnixMicro(s.now).UTC() }

// Next draws the records of one step of the story.
func (s *Story) Next() (out []journal.Entry) {
	put := func(topic string, m proto.Message) { out = append(out, s.entry(topic, m)) }
	s.now += 1_000_000
	r := s.random
	if len(s.pending) < s.most && r.IntN(2) == 0 || len(s.pending) == 0 {
		d, late := s.early, s.late
		if s.early, s.late = nil, ""; d == nil {
			d = s.change()
		}
		for _, x := range s.pending {
			if len(d.ahead) < 8 && r.IntN(len(s.pending)) < 8 {
				d.ahead = append(d.ahead, x)
			}
		}
		put(events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: s.admission(d)})
		s.pending = append(s.pending, d)
		if out = append(out, s.analyzed(d)...); late != "" {
			out = append(out, s.scheduled(d, late)...)
		}
		return out
	}
	d := s.pending[r.IntN(len(s.pending))]
	if s.pushing != nil && (s.pushing == d || r.IntN(8) == 0) {
		return s.pushed()
	}
	switch kind := r.IntN(41); {
	case (kind == 3 || kind == 4) && r.IntN(20) > 0, kind == 9 && r.IntN(5) > 0: // what concerns the whole queue is rare
	case kind == 0:
		times := 1
		if r.IntN(100) == 0 {
			times = 250 // more than a timeline has
		}
		for i := range times {
			put(events.TopicChanges, &eventsv1.ChangeHeld{Change: d.id, Hold: "manual", Who: "bob", Why: fmt.Sprint("wait for the docs ", i), StampUs: s.now, Actor: &eventsv1.Actor{Issuer: "https://id.example.com", Subject: d.id, Role: "operator"}})
		}
	case kind == 1:
		put(events.TopicChanges, &eventsv1.ChangeReleased{Change: d.id, Hold: "manual", Who: "bob", StampUs: s.now})
	case kind == 2:
		put(events.TopicChanges, &eventsv1.ChangeMoved{Change: d.id, Who: "ada", Why: "hotfix", StampUs: s.now})
	case kind == 3:
		put(events.TopicChanges, &eventsv1.QueuePaused{Who: "sre", Why: "incident", StampUs: s.now})
		put(events.TopicChanges, &eventsv1.MainlineUnreachable{Trouble: eventsv1.MainlineTrouble_MAINLINE_TROUBLE_BRANCH_MISSING, Message: "gone", SinceUs: s.now, StampUs: s.now})
		put(events.TopicChanges, &eventsv1.LandingsPaused{Message: "frozen", SinceUs: s.now, StampUs: s.now})
	case kind == 40:
		f := &eventsv1.TargetQuarantined{Target: fmt.Sprint("//t", r.IntN(5)), UntilUs: s.now, Source: eventsv1.QuarantineSource(r.IntN(4)), Who: "sre", Why: "a race", StampUs: s.now}
		if put(events.TopicChanges, f); r.IntN(3) == 0 {
			put(events.TopicChanges, &eventsv1.QuarantineEnded{Target: f.Target, StampUs: s.now})
		}
	case kind == 4:
		put(events.TopicChanges, &eventsv1.QueueResumed{Who: "sre", Why: "it is over", StampUs: s.now})
		put(events.TopicChanges, &eventsv1.MainlineReachable{StampUs: s.now})
		put(events.TopicChanges, &eventsv1.LandingsResumed{StampUs: s.now})
	case kind == 5:
		put(events.TopicChanges, &eventsv1.RequestRefused{RequestId: s.hash(), Change: d.id, Code: []string{"no_such_ref", "conflict"}[r.IntN(2)], Message: "The repository has no such branch; push it first."})
	case kind == 6:
		d.revision++
		put(events.TopicChanges, &eventsv1.ChangeRevised{Admission: s.admission(d)})
		gone := &eventsv1.ChangeRef{Change: d.id, Revision: d.revision - 1}
		put(events.TopicProfiles, s.profile(&eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: gone, How: eventsv1.GoneHow_GONE_HOW_REVISED}}}))
		if len(d.builds) > 0 {
			obsolete := &eventsv1.Decision{Position: s.position, StampUs: s.now}
			for _, b := range d.builds {
				obsolete.Items = append(obsolete.Items, abortion(b, "its change was revised"))
			}
			put(events.TopicDecisions, obsolete)
		}
		d.builds = nil
		out = append(out, s.analyzed(d)...)
	case kind == 7:
		if s.pushing == nil {
			commit, decision := s.commit(), "p"+s.hash()
			put(events.TopicChanges, &eventsv1.LandIntended{Change: d.ref(), Decision: decision, Base: s.commit(), Commits: []string{commit}, StampUs: s.now})
			put(events.TopicChanges, &eventsv1.LandVoid{Change: d.ref(), Decision: decision, Commit: commit, Refused: true, Reason: "main is frozen", StampUs: s.now})
		}
		if r.IntN(2) == 0 {
			break
		}
		refused := &eventsv1.Refused{Change: d.ref(), Decision: "d" + d.id, Base: s.commit(), Message: "A version is not proven.", Missing: []*eventsv1.TargetVersion{{Target: "//missing"}}, StampUs: s.now}
		for _, v := range s.someVersions(d) {
			refused.BaseOutdated = append(refused.BaseOutdated, &eventsv1.Proof{Version: v, Attempt: 1 + r.Uint32N(3)})
		}
		put(events.TopicChanges, refused)
	case kind == 8:
		put(events.TopicBuilds, &eventsv1.EvidenceForgotten{Versions: s.someVersions(d)})
	case kind == 9:
		if s.pushing != nil {
			out = s.void() // it is of another mainline now
		}
		moved := &eventsv1.MainlineMoved{From: s.head, To: s.commit(), Forced: true, StampUs: s.now, Author: "Ada <ada@example.com>", Title: "past the queue"}
		for _, l := range s.left {
			if r.IntN(3) == 0 && len(moved.Dropped) < 20 {
				moved.Dropped = append(moved.Dropped, l.ref())
			}
		}
		s.head = moved.To
		put(events.TopicChanges, moved)
		if r.IntN(2) == 0 {
			put(events.TopicChanges, &eventsv1.MainlineSurveyed{Commit: moved.To, Reading: "another", Again: true})
		}
		if r.IntN(2) == 0 {
			put(events.TopicChanges, &eventsv1.MainlineAnalyzed{From: moved.From, To: moved.To, Affected: &eventsv1.Affected{All: r.IntN(2) == 0, Targets: s.someVersions(d)}})
		}
	case kind == 10:
		// Of a change and a build that nobody has told of yet.
		if s.early != nil {
			break
		}
		s.early, s.late = s.change(), s.hash()
		out = append(out, s.scheduled(s.early, "early-"+s.hash())...)
		put(events.TopicBuilds, &eventsv1.BuildPrepared{Build: s.late, Change: s.early.ref(), Base: s.commit(), Assumed: []*eventsv1.ChangeRef{d.ref()}, StartedUs: s.now, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE, Message: "no merge", FinishedUs: s.now})
	case kind <= 14:
		out = append(out, s.settled(d)...)
	case kind <= 17:
		p := &eventsv1.Priority{Position: s.position, StampUs: s.now, Ranking: &eventsv1.Ranking{}, Estimates: &eventsv1.Estimates{Moved: []*eventsv1.Estimate{{Change: d.ref(), P50Us: s.now, Lands: 0.9}}}}
		for _, x := range s.pending {
			if r.IntN(2) == 0 {
				p.Ranking.Best = append(p.Ranking.Best, &eventsv1.RankedBuild{Change: x.ref(), Needed: r.Float64(), Value: r.Float64()})
			}
		}
		if s.ranking++; s.ranking%20 > 0 {
			p.Ranking = nil
		}
		if len(d.builds) > 0 {
			p.Worthless = []*eventsv1.WorthlessBuild{{Build: d.builds[0].id}}
		}
		if r.IntN(10) == 0 {
			p.Models = []*eventsv1.ModelUse{{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS, Version: "success-1", StampUs: s.now}}
		}
		put(events.TopicPriorities, p)
	default:
		out = append(out, s.building(d)...)
	}
	return out
}

func (s *Story) profile(d *eventsv1.GraphDelta) *eventsv1.Profile {
	s.position++
	return &eventsv1.Profile{Position: s.position, StampUs: s.now, Delta: d}
}

// analyzed tells what a change affects, its node, and what is predicted of it.
func (s *Story) analyzed(d *drawn) (out []journal.Entry) {
	a := &eventsv1.ChangeAnalyzed{Change: d.ref(), Base: s.commit(), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, FinishedUs: s.now, FilesChanged: 3, LinesAdded: 10, LinesDeleted: 2, Affected: &eventsv1.Affected{All: s.random.IntN(50) == 0}}
	if s.random.IntN(50) == 0 {
		a.Outcome, a.Message, a.ConflictingPaths = eventsv1.AnalysisOutcome(2), "It does not merge.", []string{"main.go"}
	}
	for range 1 + s.random.IntN(20) {
		a.Affected.Targets = append(a.Affected.Targets, &eventsv1.TargetVersion{Target: s.target(), Part: 1, Trivial: s.random.IntN(20) == 0})
	}
	if s.random.IntN(4) == 0 {
		a.Affected.AddedEdges = []string{s.target(), s.target()}
		a.Affected.Created, a.Affected.Leaves = []uint32{0}, []string{"file:" + d.id}
		a.Affected.Deleted = []string{s.target()}
	}
	if s.random.IntN(4) == 0 {
		a.Affected.Uncovered = &eventsv1.Uncovered{Files: []string{"run.sh"}, FilesTotal: 1, Policy: "warn", Ignored: []string{"README.md", "docs/a.md"}, IgnoredTotal: 120}
	}
	d.node = &eventsv1.Node{Change: d.ref(), Position: d.position, Analyzed: true, Benefit: 1, AdmittedUs: s.now}
	class := &eventsv1.Class{Targets: a.Affected.Targets}
	p := s.profile(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{d.node}})
	if s.random.IntN(50) == 0 {
		p.Delta.Settings = &eventsv1.QueueSettings{Repository: "repo", Branch: "main", Workers: 100, Threshold: 0.5}
		p.Delta.Mainline = &eventsv1.Mainline{Head: s.commit(), Analyzed: true}
		p.Delta.Survey = &eventsv1.Survey{Unproven: s.random.Uint32N(100)}
		p.Delta.Nodes = append(p.Delta.Nodes, &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: "mainline"}, Mainline: true, Analyzed: true,
			Classes: []*eventsv1.Class{{Outcomes: []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Version: &eventsv1.TargetVersion{Target: "//red"}}}}}})
	}
	for i, x := range d.ahead {
		d.node.Ahead = append(d.node.Ahead, &eventsv1.Ahead{Change: x.ref(), Conflicts: true, Targets: []string{s.target(), s.target()}})
		class.Members = append(class.Members, uint32(i))
		p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: d.ref(), Ahead: x.ref(), Conflict: s.random.Float64(), Source: "conflict-1"})
	}
	d.node.Classes = []*eventsv1.Class{class}
	p.Predictions = []*eventsv1.Prediction{{Change: d.ref(), Success: s.random.Float64(), SuccessSource: "success-1", DurationMeanUs: 60e6, DurationStdUs: 10e6, DurationSource: "duration-1", Features: make([]float32, 40)}}
	return append(out, s.entry(events.TopicChanges, a), s.entry(events.TopicProfiles, p))
}

func (s *Story) target() string {
	return fmt.Sprintf("//services/area-%d/package-%d:test", s.random.IntN(20), s.random.IntN(200))
}

func (s *Story) scheduled(d *drawn, build string) []journal.Entry {
	f := &eventsv1.BuildScheduled{Build: build, Base: s.commit(), Needed: s.random.Float64(), Value: s.random.Float64(), Why: "its value is the highest", Change: &eventsv1.AssumedChange{Change: d.ref()}}
	for _, x := range d.ahead {
		if s.random.IntN(2) == 0 {
			f.Assumed = append(f.Assumed, &eventsv1.AssumedChange{Change: x.ref()})
		}
	}
	items := []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: "of nobody"}}}, {Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: f}}}
	return []journal.Entry{s.entry(events.TopicDecisions, &eventsv1.Decision{Position: s.position, StampUs: s.now, Items: items[s.random.IntN(2):]})}
}

// building goes on with a build of a change, or schedules one.
func (s *Story) building(d *drawn) (out []journal.Entry) {
	r := s.random
	if len(d.builds) == 0 || len(d.builds) < 4 && r.IntN(6) == 0 {
		b := &drawnBuild{id: s.hash()}
		d.builds = append(d.builds, b)
		out = s.scheduled(d, b.id)
		p := &eventsv1.BuildPrepared{Build: b.id, Change: d.ref(), Base: s.commit(), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Worker: "worker-1", StartedUs: s.now, FinishedUs: s.now}
		for range 1 + r.IntN([]int{2, 20}[r.IntN(2)]) {
			b.versions = append(b.versions, &eventsv1.TargetVersion{Target: s.target(), Hash: s.hash(), Part: 1})
		}
		p.Versions = b.versions
		if r.IntN(2) == 0 {
			p.Owned = []*eventsv1.OwnedVersions{{Owners: []string{"@ada", "@" + s.hash()[:4]}, Versions: []uint32{uint32(r.IntN(len(b.versions))), 0}}}
		}
		out = append(out, s.entry(events.TopicBuilds, p))
		if r.IntN(2) == 0 {
			out[0], out[1] = out[1], out[0]
		}
		return append(out, s.entry(events.TopicProfiles, s.profile(&eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{Build: b.id, Change: d.ref(), State: eventsv1.BuildState_BUILD_STATE_PREPARED, Assumed: []*eventsv1.ChangeRef{}}}})))
	}
	b := d.builds[r.IntN(len(d.builds))]
	for range 4 {
		v := b.versions[r.IntN(len(b.versions))]
		b.attempts++
		f := &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: uint32(b.attempts), Build: b.id, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, Worker: "worker-1", Log: "logs/" + b.id,
			OutputBytes: 1000, StartedUs: s.now, FinishedUs: s.now + 1000}
		if r.IntN(3) == 0 {
			if r.IntN(4) == 0 { // the worker that had it was lost
				out = append(out, s.entry(events.TopicBuilds, &eventsv1.StepLeased{Target: v.Target, Hash: v.Hash, Attempt: f.Attempt, Lease: "lapsed", Build: b.id, Worker: "worker-2", StampUs: s.now - 900, UntilUs: s.now - 600}))
			}
			out = append(out, s.entry(events.TopicBuilds, &eventsv1.StepLeased{Target: v.Target, Hash: v.Hash, Attempt: f.Attempt, Build: b.id, Worker: "worker-1", StampUs: s.now - 500, UntilUs: s.now + 60_000_000}))
		}
		if r.IntN(8) == 0 {
			f.Outcome, f.FailedCommand, f.Reason = eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "test", "test exited with 1"
			f.OutputTail = []byte(strings.Repeat("--- FAIL: TestIt\n", 10))
			f.Decisive = []string{"a_test.go:3: TestIt: got 1", "a_test.go:9: TestIt: got 2"}
		}
		if r.IntN(10) > 0 {
			out = append(out, s.entry(events.TopicBuilds, f))
		}
	}
	switch r.IntN(12) {
	case 0:
		out = append(out, s.entry(events.TopicDecisions, &eventsv1.Decision{Position: s.position, StampUs: s.now, Items: []*eventsv1.DecisionItem{abortion(b, "another build is worth more")}}))
		d.builds = slices.DeleteFunc(d.builds, func(x *drawnBuild) bool { return x == b })
	case 1:
		out = append(out, s.entry(events.TopicProfiles, s.profile(&eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{Build: b.id, Change: d.ref(), State: eventsv1.BuildState_BUILD_STATE_FINISHED}}})))
	}
	return out
}

func abortion(b *drawnBuild, why string) *eventsv1.DecisionItem {
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: b.id, Why: why}}}
}

func (s *Story) someVersions(d *drawn) (out []*eventsv1.TargetVersion) {
	for _, b := range d.builds {
		out = append(out, b.versions[:1]...)
	}
	return out
}

// settled decides a change, and mostly takes it out of the queue.
func (s *Story) settled(d *drawn) (out []journal.Entry) {
	decision := "decision-" + s.hash()
	item := &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: d.ref(), Decision: decision, Why: "all steps passed"}}}
	reason := &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: "A step failed."}
	var proof []*eventsv1.Proof
	for _, b := range d.builds {
		for _, v := range b.versions {
			proof = append(proof, &eventsv1.Proof{Build: b.id, Attempt: 1, Version: v})
		}
	}
	decided := func() journal.Entry {
		return s.entry(events.TopicDecisions, &eventsv1.Decision{Position: s.position, StampUs: s.now, Items: []*eventsv1.DecisionItem{item}})
	}
	kind := s.random.IntN(7)
	if s.pushing != nil && kind > 2 {
		kind = 2
	}
	switch kind {
	case 0:
		item.Item = &eventsv1.DecisionItem_RejectDecided{RejectDecided: &eventsv1.RejectDecided{Change: d.ref(), Decision: decision, Reason: reason}}
		reason.Failed = proof
		rejected := &eventsv1.ChangeRejected{Change: d.ref(), Decision: decision, Reason: reason, Base: s.commit(), StampUs: s.now}
		return append(out, decided(), s.entry(events.TopicChanges, rejected), s.gone(d, eventsv1.GoneHow_GONE_HOW_REJECTED, decision))
	case 1:
		cancelled := &eventsv1.ChangeCancelled{Change: d.id, Who: "ada", Why: "not needed", StampUs: s.now}
		return append(out, decided(), s.entry(events.TopicChanges, cancelled), s.gone(d, eventsv1.GoneHow_GONE_HOW_CANCELLED, decision))
	case 2:
		// Nothing comes of it yet.
		return append(out, decided())
	}
	s.pushing, s.intention = d, &eventsv1.LandIntended{Change: d.ref(), Decision: decision, Base: s.head, Commits: []string{s.commit()}, Proof: proof, StampUs: s.now}
	if out = append(out, decided(), s.entry(events.TopicChanges, s.intention)); kind > 3 {
		out = append(out, s.landed()...)
	}
	return out
}

// pushed ends a push: it has landed, or it did not happen.
func (s *Story) pushed() []journal.Entry {
	if s.random.IntN(2) == 0 {
		return s.landed()
	}
	return s.void()
}

// void ends a push that did not happen.
func (s *Story) void() []journal.Entry {
	of := s.intention
	s.pushing, s.intention = nil, nil
	return []journal.Entry{s.entry(events.TopicChanges, &eventsv1.LandVoid{Change: of.Change, Decision: of.Decision, Commit: of.Commits[0], Reason: "the mainline has moved", StampUs: s.now})}
}

// landed ends a push that has landed.
func (s *Story) landed() []journal.Entry {
	d, of := s.pushing, s.intention
	s.pushing, s.intention, s.head = nil, nil, of.Commits[0]
	landed := &eventsv1.ChangeLanded{Change: of.Change, Decision: of.Decision, Base: of.Base, Commits: of.Commits, Tree: s.commit(), Proof: of.Proof, StampUs: s.now}
	return []journal.Entry{s.entry(events.TopicChanges, landed), s.gone(d, eventsv1.GoneHow_GONE_HOW_LANDED, of.Decision)}
}

// gone takes a change out of the queue.
func (s *Story) gone(d *drawn, how eventsv1.GoneHow, decision string) journal.Entry {
	s.pending = slices.DeleteFunc(s.pending, func(x *drawn) bool { return x == d })
	s.left = append(s.left, d)
	s.left = s.left[max(0, len(s.left)-keptLeft):]
	for _, x := range s.pending {
		x.ahead = slices.DeleteFunc(x.ahead, func(a *drawn) bool { return a == d })
	}
	return s.entry(events.TopicProfiles, s.profile(&eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: d.ref(), How: how}}, Answered: []*eventsv1.Answered{{Change: d.ref(), Decision: decision}}}))
}
