package directpush

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

var policy = &eventsv1.StepPolicy{}

func moved(from, to string) *eventsv1.MainlineMoved {
	return &eventsv1.MainlineMoved{From: from, To: to}
}

func analyzed(from, to string, versions ...string) *eventsv1.MainlineAnalyzed {
	f := &eventsv1.MainlineAnalyzed{From: from, To: to, Affected: &eventsv1.Affected{}}
	for _, v := range versions {
		target, hash, _ := strings.Cut(v, "@")
		f.Affected.Targets = append(f.Affected.Targets, &eventsv1.TargetVersion{Target: target, Hash: hash, Part: 1})
		f.Affected.All = f.Affected.All || target == targets.Repository
	}
	return f
}

func deleting(from, to, target string) *eventsv1.MainlineAnalyzed {
	return &eventsv1.MainlineAnalyzed{From: from, To: to, Affected: &eventsv1.Affected{Deleted: []string{target}}}
}

func landed(commit string, proven ...string) *eventsv1.ChangeLanded {
	f := &eventsv1.ChangeLanded{Commits: []string{commit}}
	for _, t := range proven {
		f.Proof = append(f.Proof, &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: t}})
	}
	return f
}

func prepared(base string, versions ...string) *eventsv1.BuildPrepared {
	f := &eventsv1.BuildPrepared{Change: &eventsv1.ChangeRef{}, Base: base}
	for _, v := range versions {
		target, hash, _ := strings.Cut(v, "@")
		f.Versions = append(f.Versions, &eventsv1.TargetVersion{Target: target, Hash: hash, Absent: hash == ""})
	}
	return f
}

// surveyed is a survey of the head that has the targets.
func surveyed(reading string, versions ...string) *eventsv1.MainlineSurveyed {
	f := &eventsv1.MainlineSurveyed{Reading: reading, Whole: &eventsv1.TargetVersion{Target: targets.Repository, Hash: "whole"}}
	for _, v := range versions {
		target, hash, _ := strings.Cut(v, "@")
		f.Targets = append(f.Targets, &eventsv1.TargetVersion{Target: target, Hash: hash})
	}
	return f
}

// reader is a mainline with the number of its moves, as the readers' lineup counts them.
type reader struct {
	*Pushes
	moves uint64
}

func (r *reader) fold(m proto.Message) {
	switch f := m.(type) {
	case *eventsv1.MainlineMoved:
		r.moves++
		r.Moved(f, r.moves)
	case *eventsv1.ChangeLanded:
		r.moves++
		r.Landed(f, r.moves)
	case *eventsv1.MainlineAnalyzed:
		r.Analyzed(f)
	case *eventsv1.BuildPrepared:
		r.Prepared(f)
	case *eventsv1.Refused:
		r.Doubted(f.BaseUnproven)
	case *eventsv1.MainlineSurveyed:
		r.Surveyed(f)
	}
}

// doubted is a refusal that asks for versions of the head.
func doubted(versions ...string) *eventsv1.Refused {
	return &eventsv1.Refused{BaseUnproven: analyzed("", "", versions...).Affected.Targets}
}

func folded(facts ...proto.Message) *Pushes {
	r := &reader{Pushes: New()}
	for _, f := range facts {
		r.fold(f)
	}
	return r.Pushes
}

func ledgerOf(results map[evidence.Version]eventsv1.StepOutcome) *evidence.Ledger {
	l := evidence.NewLedger()
	for v, o := range results {
		l.Apply(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: o})
	}
	return l
}

// state prints all that readers ask for.
func state(p *Pushes, l *evidence.Ledger) string {
	var b strings.Builder
	fmt.Fprint(&b, "known ", p.Known())
	for _, v := range p.Unproven(l, policy) {
		fmt.Fprintf(&b, " wants %s@%s", v.Target, v.Hash)
	}
	for _, t := range []string{"a", "b", "c", targets.Repository} {
		if p.Blocks(t, l, policy) {
			fmt.Fprint(&b, " blocks ", t)
		}
	}
	return b.String()
}

func TestClaims(t *testing.T) {
	initial := &eventsv1.MainlineMoved{To: "m0", Initial: true}
	red := ledgerOf(map[evidence.Version]eventsv1.StepOutcome{
		{Target: "a", Hash: "1"}: eventsv1.StepOutcome_STEP_OUTCOME_FAILED, {Target: targets.Repository, Hash: "2"}: eventsv1.StepOutcome_STEP_OUTCOME_FAILED,
	})
	green := ledgerOf(map[evidence.Version]eventsv1.StepOutcome{
		{Target: "a", Hash: "1"}: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, {Target: targets.Repository, Hash: "3"}: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
	})
	repository := targets.Repository
	for _, c := range []struct {
		name   string
		facts  []proto.Message
		ledger *evidence.Ledger
		want   string
	}{
		{"the first head is nobody's push", []proto.Message{initial}, red, "known true"},
		{"a push blocks everything until it is analysed", []proto.Message{initial, moved("m0", "m1")}, red,
			"known false blocks a blocks b blocks c blocks //:repository"},
		{"a push that is not verified blocks its targets", []proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", "a@7")}, red,
			"known true wants a@7 blocks a blocks //:repository"},
		{"a red push blocks its targets and is not built again", []proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", "a@1")}, red,
			"known true blocks a blocks //:repository"},
		{"a green push blocks nothing", []proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", "a@1")}, green, "known true"},
		{"of two pushes the later one counts, whichever was analysed first",
			[]proto.Message{initial, moved("m0", "m1"), moved("m1", "m2"), analyzed("m1", "m2", "a@8"), analyzed("m0", "m1", "a@7", "b@7")}, red,
			"known true wants a@8 wants b@7 blocks a blocks b blocks //:repository"},
		{"what landed over a push is proven, even if the push is analysed after it",
			[]proto.Message{initial, moved("m0", "m1"), landed("m2", "a"), analyzed("m0", "m1", "a@7", "b@7")}, red,
			"known true wants b@7 blocks b blocks //:repository"},
		{"a target that a later push deleted blocks nobody, whichever was analysed first",
			[]proto.Message{initial, moved("m0", "m1"), moved("m1", "m2"), deleting("m1", "m2", "a"), analyzed("m0", "m1", "a@7", "b@7")}, red,
			"known true wants b@7 blocks b blocks //:repository"},
		{"what landed before a push proves nothing of it",
			[]proto.Message{initial, landed("m1", "a"), moved("m1", "m2"), analyzed("m1", "m2", "a@7")}, red, "known true wants a@7 blocks a blocks //:repository"},
		{"a build of the mainline tells what its targets are", []proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", "a@7"), prepared("m1", "a@1")}, green,
			"known true"},
		{"a target that the mainline lacks asks for nothing", []proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", "a@7"), prepared("m1", "a@")}, red,
			"known true"},
		{"a build on an older head says nothing of a newer push",
			[]proto.Message{initial, moved("m0", "m1"), moved("m1", "m2"), analyzed("m0", "m1", "a@7"), analyzed("m1", "m2", "a@8"), prepared("m1", "a@1")}, green,
			"known true wants a@8 blocks a blocks //:repository"},
		{"a build on a head that was not heard of yet waits for it",
			[]proto.Message{initial, prepared("m1", "a@1"), moved("m0", "m1"), analyzed("m0", "m1", "a@7")}, green, "known true"},
		{"a rewritten mainline blocks everything", []proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", repository+"@2")}, ledgerOf(nil),
			"known true wants //:repository@2 blocks a blocks b blocks c blocks //:repository"},
		{"what is found red of a whole mainline is asked for again once it has moved",
			[]proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", repository+"@2"), landed("m2", "a")}, red,
			"known true wants //:repository@ blocks a blocks b blocks c blocks //:repository"},
		{"a whole mainline that is green stays green",
			[]proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", repository+"@2"), landed("m2", "a"), prepared("m2", repository+"@3"), landed("m3", "b")}, green,
			"known true"},
		{"a push before a rewriting is verified with it",
			[]proto.Message{initial, moved("m0", "m1"), moved("m1", "m2"), analyzed("m1", "m2", repository+"@3"), analyzed("m0", "m1", "a@7")}, green, "known true"},
		{"M23a: what the guard doubts of the head blocks its target until it is green", []proto.Message{initial, doubted("a@7")}, red,
			"known true wants a@7 blocks a blocks //:repository"},
		{"M23a: what is doubted and red is not built again", []proto.Message{initial, doubted("a@1")}, red, "known true blocks a blocks //:repository"},
		{"M23a: what is doubted and green blocks nothing", []proto.Message{initial, doubted("a@1")}, green, "known true"},
		{"M23a: what landed over what was doubted is proven", []proto.Message{initial, doubted("a@7"), landed("m1", "a")}, red, "known true"},
		{"M23a: what is doubted of a head that a landing made counts, though a push is still to be analysed",
			[]proto.Message{initial, moved("m0", "m1"), landed("m2", "a"), doubted("a@7"), analyzed("m0", "m1", "b@1")}, green,
			"known true wants a@7 wants b@1 blocks a blocks b blocks //:repository"},
		{"M23a: an older push does not replace what is doubted of the head",
			[]proto.Message{initial, moved("m0", "m1"), landed("m2", "b"), doubted("a@7"), analyzed("m0", "m1", "a@1")}, green,
			"known true wants a@7 blocks a blocks //:repository"},
		{"M23a: what is doubted of the head counts, though a build found another version there with older tools", []proto.Message{initial, prepared("m0", "a@1"), doubted("a@7")}, green,
			"known true wants a@7 blocks a blocks //:repository"},
		{"M23a: the same if the build is read later", []proto.Message{initial, doubted("a@7"), prepared("m0", "a@1")}, green,
			"known true wants a@7 blocks a blocks //:repository"},
		{"M23b: what is red has the versions of a survey that reads trees in another way",
			[]proto.Message{initial, doubted("a@7"), prepared("m0", "a@7"), moved("m0", "m1"), analyzed("m0", "m1", "b@8"), surveyed("new", "a@1", "b@9"), prepared("m1", "b@8")}, green,
			"known true wants b@9 blocks b blocks //:repository"},
		{"M23b: so has the whole repository", []proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", repository+"@2"), surveyed("new", "a@1")}, red,
			"known true wants //:repository@whole blocks a blocks b blocks c blocks //:repository"},
		{"M23b: what the survey lacks is gone", []proto.Message{initial, doubted("a@7"), surveyed("new", "b@9")}, green, "known true"},
		{"M23b: a survey with the same reading, or none, changes nothing",
			[]proto.Message{initial, surveyed("old"), doubted("a@7"), surveyed("old", "a@1"), surveyed("", "a@1")}, green,
			"known true wants a@7 blocks a blocks //:repository"},
		{"M23b: one that found no targets changes nothing", []proto.Message{initial, doubted("a@7"), &eventsv1.MainlineSurveyed{Reading: "new", Message: "a cycle"}}, green,
			"known true wants a@7 blocks a blocks //:repository"},
		{"M23a: a whole mainline that is doubted is asked for on the head that it has moved to", []proto.Message{initial, doubted(repository + "@2"), landed("m1", "a")}, red,
			"known true wants //:repository@ blocks a blocks b blocks c blocks //:repository"},
		{"a landing of the whole repository proves it",
			[]proto.Message{initial, moved("m0", "m1"), analyzed("m0", "m1", "a@7"), moved("m1", "m2"), analyzed("m1", "m2", repository+"@2"), landed("m3", repository)}, red,
			"known true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := state(folded(c.facts...), c.ledger); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// history is a random one of both topics. Analyses come at any time after their push.
func history(r *rand.Rand) (changes, builds []proto.Message) {
	changes = append(changes, &eventsv1.MainlineMoved{To: "m0", Initial: true})
	var open []*eventsv1.MainlineAnalyzed
	names := []string{"a", "b", "c", targets.Repository}
	version := func() string { return fmt.Sprintf("%s@%d", names[r.IntN(len(names))], r.IntN(4)) }
	head := 0
	for range 3 + r.IntN(12) {
		from, to := fmt.Sprintf("m%d", head), fmt.Sprintf("m%d", head+1)
		switch r.IntN(6) {
		case 0, 1:
			changes = append(changes, moved(from, to))
			head++
			f := analyzed(from, to, version())
			if !f.Affected.All && r.IntN(2) == 0 {
				f = analyzed(from, to, "a@"+fmt.Sprint(r.IntN(4)), "b@"+fmt.Sprint(r.IntN(4)))
			}
			open = append(open, f)
		case 2:
			changes = append(changes, landed(to, names[r.IntN(len(names))]))
			head++
			if r.IntN(4) == 0 {
				changes = append(changes, surveyed(fmt.Sprint(r.IntN(4)), "a@"+fmt.Sprint(r.IntN(4)), "b@"+fmt.Sprint(r.IntN(4))))
			}
			if r.IntN(3) == 0 {
				changes = append(changes, doubted(names[r.IntN(len(names)-1)]+"@"+fmt.Sprint(r.IntN(4))))
			}
		case 3:
			if i := r.IntN(len(names)); head > 0 {
				builds = append(builds, prepared(fmt.Sprintf("m%d", r.IntN(head+1)), fmt.Sprintf("%s@%d", names[i], r.IntN(4))))
			}
		default:
			if n := len(open); n > 0 {
				i := r.IntN(n)
				changes = append(changes, open[i])
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	for _, f := range open {
		changes = append(changes, f)
	}
	return changes, builds
}

func hashIn(f *eventsv1.MainlineSurveyed, target string) string {
	for _, v := range append(f.Targets, f.Whole) {
		if v.Target == target {
			return v.Hash
		}
	}
	return ""
}

// naive says what a target's version is, from all facts at once: of those about the latest move, the last.
func naive(changes, builds []proto.Message, target string) (hash string, at, head uint64, open, seen bool) {
	moves := uint64(0)
	sequence := map[string]uint64{}
	var push, land, whole, doubt uint64
	reading := ""
	for i, m := range changes {
		switch f := m.(type) {
		case *eventsv1.MainlineSurveyed:
			otherwise := f.Reading != "" && f.Reading != reading
			if _, _, _, was, _ := naive(changes[:i], nil, target); otherwise && was {
				push, hash, at, doubt = moves, hashIn(f, target), moves, moves
			}
			reading = cmp.Or(f.Reading, reading)
		case *eventsv1.MainlineMoved:
			moves++
			sequence[f.To] = moves
		case *eventsv1.ChangeLanded:
			moves++
			sequence[f.Commits[0]] = moves
			if f.Proof[0].Version.Target == target {
				land = moves
			}
		case *eventsv1.Refused:
			if v := f.BaseUnproven[0]; v.Target == target {
				push, hash, at, land, doubt = moves, v.Hash, moves, 0, moves
			}
		}
	}
	for _, m := range changes {
		f, is := m.(*eventsv1.MainlineAnalyzed)
		if !is {
			continue
		}
		s := sequence[f.To]
		if f.Affected.All {
			whole = max(whole, s)
		}
		for _, v := range f.Affected.Targets {
			if v.Target == target && s > push {
				push, hash, at = s, v.Hash, s
			}
		}
	}
	for _, m := range builds {
		f := m.(*eventsv1.BuildPrepared)
		for _, v := range f.Versions {
			if s := sequence[f.Base]; hash != "" && v.Target == target && s >= at && s >= push && (s > doubt || push > doubt) {
				hash, at, seen = v.Hash, s, true
			} else if v.Target == target && s == at && s == doubt {
				seen = v.Hash == hash
			}
		}
	}
	return hash, at, moves, push > 0 && land < push && whole <= push && hash != "", seen
}

func TestReadersOfAnyInterleavingAgreeWithANaiveTwin(t *testing.T) {
	r := seedtest.Random(t)
	for range 20_000 {
		changes, builds := history(r)
		results := map[evidence.Version]eventsv1.StepOutcome{}
		for _, name := range []string{"a", "b", "c", targets.Repository} {
			for h := range 4 {
				if o := r.IntN(3); o > 0 {
					results[evidence.Version{Target: name, Hash: fmt.Sprint(h)}] = eventsv1.StepOutcome(o)
				}
			}
		}
		ledger := ledgerOf(results)
		var want strings.Builder
		fmt.Fprint(&want, "known true")
		blocked := map[string]bool{}
		for _, name := range []string{targets.Repository, "a", "b", "c"} {
			hash, at, head, open, seen := naive(changes, builds, name)
			if !open {
				continue
			}
			o, known := results[evidence.Version{Target: name, Hash: hash}]
			if known && o == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
				continue
			}
			blocked[name] = true
			switch {
			case name == targets.Repository && at < head && (known || !seen):
				fmt.Fprintf(&want, " wants %s@", name)
			case !known:
				fmt.Fprintf(&want, " wants %s@%s", name, hash)
			}
		}
		for _, name := range []string{"a", "b", "c", targets.Repository} {
			if blocked[name] || blocked[targets.Repository] || name == targets.Repository && len(blocked) > 0 {
				fmt.Fprint(&want, " blocks ", name)
			}
		}
		for range 3 {
			reader := &reader{Pushes: New()}
			i, j := 0, 0
			for i < len(changes) || j < len(builds) {
				if i < len(changes) && (j == len(builds) || r.IntN(2) == 0) {
					reader.fold(changes[i])
					i++
				} else {
					reader.fold(builds[j])
					j++
				}
			}
			if got := state(reader.Pushes, ledger); got != want.String() {
				t.Fatalf("got  %s\nwant %s\nchanges %v\nbuilds %v\nresults %v", got, want.String(), changes, builds, results)
			}
		}
	}
}

// TestM23aProvenGreen: what is known of the head's own versions. A whole repository that was proven on an older head stays so
// while nothing comes past the queue.
func TestM23aProvenGreen(t *testing.T) {
	repository := targets.Repository
	ledger := ledgerOf(map[evidence.Version]eventsv1.StepOutcome{
		{Target: "a", Hash: "1"}: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, {Target: "a", Hash: "2"}: eventsv1.StepOutcome_STEP_OUTCOME_FAILED,
		{Target: repository, Hash: "1"}: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
	})
	initial := &eventsv1.MainlineMoved{To: "m0", Initial: true}
	proven := folded(initial, doubted(repository+"@1"), landed("m1", "a"))
	for _, c := range []struct {
		name    string
		pushes  *Pushes
		version *eventsv1.TargetVersion
		want    bool
	}{
		{"green", New(), &eventsv1.TargetVersion{Target: "a", Hash: "1"}, true},
		{"red", New(), &eventsv1.TargetVersion{Target: "a", Hash: "2"}, false},
		{"unknown", New(), &eventsv1.TargetVersion{Target: "a", Hash: "3"}, false},
		{"no command verifies it", New(), &eventsv1.TargetVersion{Target: "a", Hash: "3", Trivial: true}, true},
		{"an older version of the target is green", folded(initial, doubted("a@1")), &eventsv1.TargetVersion{Target: "a", Hash: "3"}, false},
		{"the whole repository, proven on this head", New(), &eventsv1.TargetVersion{Target: repository, Hash: "1"}, true},
		{"the whole repository, never proven", New(), &eventsv1.TargetVersion{Target: repository, Hash: "2"}, false},
		{"the whole repository, proven before a landing", proven, &eventsv1.TargetVersion{Target: repository, Hash: "2"}, true},
		{"the whole repository, doubted and not proven", folded(initial, doubted(repository+"@3")), &eventsv1.TargetVersion{Target: repository, Hash: "2"}, false},
	} {
		if got := c.pushes.ProvenGreen(c.version, ledger, policy); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
