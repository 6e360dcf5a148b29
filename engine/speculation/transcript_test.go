package speculation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays testdata/*.txt. A version is written TARGET@HASH; the hash is written as the changes that are in the
// target. The commands are:
//
//	settings [hubs=(TARGET, …)]            the queue's settings
//	admit CHANGE [requires=(CHANGE, …)]    a change enters the queue
//	analyze CHANGE [unmergeable]           its analysis on the present head, one line each: TARGET@HASH, "deletes TARGET",
//	                                       "edge into NODE", "changes NODE", "does not merge with CHANGE", "touches a path of CHANGE"
//	prepare CHANGE [on=(CHANGE, …)] [unmergeable]
//	                                       a build of it is prepared, with these versions
//	steps                                  steps end, one a line: TARGET@HASH passed, failed, timed-out or could-not-run
//	land CHANGE | reject CHANGE | cancel CHANGE
//	push COMMIT                            a commit comes past the queue; "analyze-push" follows with what it did
//	analyze-push
//	graph                                  the whole graph, as those who read the deltas have it
//
// The answer is the delta: who left, which builds are prepared and over, and the nodes that are told. A node names what its
// change has ahead, and for each class of its targets what is known with which of these landed.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{Queue: New(), reader: graph.New()}
		s.fact(t, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "first", Steps: &eventsv1.StepPolicy{}}}})
		s.take(t, &eventsv1.MainlineMoved{To: "m0", Initial: true})
		s.decide()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "graph" {
				return s.graph()
			}
			s.play(t, d)
			return s.decide()
		})
	})
}

// story is a queue that a transcript tells of, and a reader of its deltas.
type story struct {
	*Queue
	reader *graph.Graph
	offset int64
	builds int
}

func (s *story) fact(t *testing.T, f *eventsv1.Fact) {
	s.offset++
	s.Apply(f, s.offset)
}

func (s *story) take(t *testing.T, m proto.Message) {
	f, ok := FactOf(m)
	if !ok {
		t.Fatalf("%T is no fact", m)
	}
	s.fact(t, f)
}

func (s *story) refs(ids []string) (list []*eventsv1.ChangeRef) {
	for _, id := range ids {
		list = append(list, s.Lineup.Pending(id).Ref())
	}
	return list
}

func (s *story) play(t *testing.T, d *datadriven.TestData) {
	var of string
	var ref *eventsv1.ChangeRef
	if len(d.CmdArgs) > 0 {
		of = d.CmdArgs[0].Key
		if c := s.Lineup.Pending(of); c != nil {
			ref = c.Ref()
		}
	}
	switch d.Cmd {
	case "settings":
		hubs, _ := d.Arg("hubs")
		s.fact(t, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{
			Hash: fmt.Sprint("settings", s.offset), Steps: &eventsv1.StepPolicy{}, Hubs: hubs.Vals}}})
	case "admit":
		requires, _ := d.Arg("requires")
		s.take(t, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Change: of, Revision: 1, Requires: requires.Vals, LandingCommits: []*eventsv1.LandingCommit{{Head: of}}}})
	case "analyze":
		m := &eventsv1.ChangeAnalyzed{Change: ref, Base: s.Lineup.Head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED}
		if d.HasArg("unmergeable") {
			m.Outcome = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE
		}
		m.Affected, m.Textual = s.analysis(d.Input)
		s.take(t, m)
	case "prepare":
		on, _ := d.Arg("on")
		s.builds++
		m := &eventsv1.BuildPrepared{Build: fmt.Sprint("b", s.builds), Change: ref, Base: s.Lineup.Head, Assumed: s.refs(on.Vals),
			Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		if d.HasArg("unmergeable") {
			m.Outcome = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE
		}
		for line := range strings.Lines(d.Input) {
			m.Versions = append(m.Versions, versionNamed(line))
		}
		s.take(t, m)
	case "steps":
		for line := range strings.Lines(d.Input) {
			name, outcome, _ := strings.Cut(strings.TrimSpace(line), " ")
			v := versionNamed(name)
			s.take(t, &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: map[string]eventsv1.StepOutcome{
				"passed": eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "failed": eventsv1.StepOutcome_STEP_OUTCOME_FAILED,
				"timed-out": eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, "could-not-run": eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN,
			}[outcome]})
		}
	case "land":
		commit := strings.ToLower(of)
		s.take(t, &eventsv1.LandIntended{Change: ref, Commits: []string{commit}})
		s.take(t, &eventsv1.ChangeLanded{Change: ref, Commits: []string{commit}})
	case "reject":
		s.take(t, &eventsv1.ChangeRejected{Change: ref})
	case "cancel":
		s.take(t, &eventsv1.ChangeCancelled{Change: of})
	case "push":
		s.take(t, &eventsv1.MainlineMoved{From: s.Lineup.Head, To: of})
	case "analyze-push":
		commits := s.landed.commits
		m := &eventsv1.MainlineAnalyzed{From: commits[len(commits)-2], To: commits[len(commits)-1]}
		m.Affected, _ = s.analysis(d.Input)
		s.take(t, m)
	default:
		d.Fatalf(t, "no such command")
	}
}

func versionNamed(text string) *eventsv1.TargetVersion {
	target, hash, _ := strings.Cut(strings.TrimSpace(text), "@")
	return &eventsv1.TargetVersion{Target: target, Hash: hash, Part: 1}
}

func (s *story) analysis(input string) (*eventsv1.Affected, []*eventsv1.Textual) {
	set, merges := &eventsv1.Affected{}, []*eventsv1.Textual(nil)
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		last := words[len(words)-1]
		switch {
		case strings.HasPrefix(line, "deletes"):
			set.Deleted = append(set.Deleted, last)
		case strings.HasPrefix(line, "edge into"):
			set.AddedEdges = append(set.AddedEdges, last)
		case strings.HasPrefix(line, "changes"):
			set.Leaves = append(set.Leaves, last)
		case strings.HasPrefix(line, "does not merge with"), strings.HasPrefix(line, "touches a path of"):
			merges = append(merges, &eventsv1.Textual{Other: s.refs([]string{last})[0], MergeConflict: words[0] == "does"})
		default:
			set.Targets = append(set.Targets, versionNamed(line))
		}
	}
	return set, merges
}

// decide prints the delta and folds it.
func (s *story) decide() string {
	d := s.Decide()
	s.Fold(d)
	s.reader.Fold(d)
	var b strings.Builder
	if d == nil {
		return "nothing changes\n"
	}
	if d.Settings != nil {
		fmt.Fprintf(&b, "new settings\n")
	}
	if m := d.Mainline; m != nil {
		fmt.Fprintf(&b, "the mainline is at %s", m.Head)
		if !m.Analyzed {
			fmt.Fprint(&b, ", which is not analysed")
		}
		fmt.Fprintln(&b)
	}
	for _, g := range d.Gone {
		fmt.Fprintf(&b, "%s: %s\n", g.Change.Change, strings.ToLower(strings.TrimPrefix(g.How.String(), "GONE_HOW_")))
	}
	for _, p := range d.Builds {
		fmt.Fprintf(&b, "build %s of %s is %s\n", p.Build, nameOf(p.Change), strings.ToLower(strings.TrimPrefix(p.State.String(), "BUILD_STATE_")))
	}
	for _, n := range d.Nodes {
		write(&b, n)
	}
	return b.String()
}

// graph prints all nodes as the reader has them.
func (s *story) graph() string {
	var b strings.Builder
	if s.reader.Check != nil {
		write(&b, s.reader.Check.Node)
	}
	for _, n := range s.reader.Order() {
		write(&b, n.Node)
	}
	return b.String()
}

func nameOf(r *eventsv1.ChangeRef) string {
	if r.GetChange() == "" {
		return "the mainline"
	}
	return r.Change
}

func write(b *strings.Builder, n *eventsv1.Node) {
	fmt.Fprint(b, nameOf(n.Change))
	for i, a := range n.Ahead {
		why := strings.Join(a.Targets, " ")
		switch {
		case a.MergeConflict:
			why = "does not merge"
		case !a.Conflicts:
			why = "required"
		case why == "":
			why = "no common target"
		}
		fmt.Fprintf(b, "%s %s (%s)", map[bool]string{true: " behind", false: ","}[i == 0], a.Change.Change, why)
	}
	if n.MissingRequirement != "" {
		fmt.Fprintf(b, ", which requires %s in vain", n.MissingRequirement)
	}
	if !n.Analyzed {
		fmt.Fprint(b, ": not analysed")
	}
	if n.Mainline && len(n.Classes) == 0 {
		fmt.Fprint(b, ": nothing to verify")
	}
	fmt.Fprintln(b)
	for _, o := range n.Paths {
		fmt.Fprintf(b, "  %s: %s, %s\n", pathOf(n, nil, o), stateOf(o), strings.ToLower(strings.TrimPrefix(o.Class.String(), "REASON_CLASS_")))
	}
	for _, k := range n.Classes {
		var names, known []string
		for _, v := range k.Targets {
			if !slices.Contains(names, v.Target) {
				names = append(names, v.Target)
			}
		}
		for _, o := range k.Outcomes {
			known = append(known, pathOf(n, k, o)+" "+stateOf(o))
		}
		if names == nil {
			names = []string{"its targets are not known"}
		}
		if known == nil {
			known = []string{"unknown"}
		}
		fmt.Fprintf(b, "  %s", strings.Join(names, " "))
		if len(k.Members) > 0 {
			var members []string
			for i, m := range k.Members {
				name := n.Ahead[m].Change.Change
				if slices.Contains(k.Through, uint32(i)) {
					name = "only on top of " + name
				}
				members = append(members, name)
			}
			fmt.Fprintf(b, " [%s]", strings.Join(members, " "))
		}
		fmt.Fprintf(b, ": %s\n", strings.Join(known, ", "))
	}
}

// pathOf names a path of a class, or of the whole node, by what lands: the members that it holds, and the change.
func pathOf(n *eventsv1.Node, k *eventsv1.Class, o *eventsv1.Outcome) string {
	var names []string
	for i, a := range n.Ahead {
		at := i
		if k != nil {
			at = slices.Index(k.Members, uint32(i))
		}
		if at >= 0 && memberset.Over(o.Members).Has(at) {
			names = append(names, a.Change.Change)
		}
	}
	return strings.Join(append(names, nameOf(n.Change)), "+")
}

func stateOf(o *eventsv1.Outcome) string {
	return strings.ToLower(strings.TrimPrefix(o.State.String(), "OUTCOME_STATE_"))
}
