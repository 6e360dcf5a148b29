package decision

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays testdata/*.txt. Each "input" is one record of priorities; its lines are:
//
//	settings workers=N [failed=N]    what the queue is configured to: slots, retries of failed steps
//	mainline HEAD [paused] [unanalyzed]
//	change ID [ahead=A,B] [merge-conflict=A] [requires=A] [held] [intended] [unanalyzed] [missing=A] [epoch=N]
//	    TARGETS [members=A] [{A}=STATE ...]
//	                                 a pending change as it is now, in queue order of the first mention, and its classes: the
//	                                 targets of each, the members that affect them as well, and what is known by members
//	check [TARGETS]                  what direct pushes left to be verified on the mainline itself
//	gone ID HOW                      it left the queue: landed, rejected, ejected, cancelled
//	rank ID{A} ID{} ...              the ranking: paths by the members that land on them, best first
//	finished BUILD                   its steps have ended
//	answered ID                      the lander refused the decision on it
//	worthless BUILD NEEDED, recovered BUILD
//
// The output is the decision, and what runs behind it.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &script{t: t, changes: map[string]*eventsv1.Node{}, names: map[string]string{}, decisions: map[string]string{}}
		w.selection = New("main", w.name)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.at = d.Pos
			if d.Cmd != "input" {
				w.fail("no such command: %s", d.Cmd)
			}
			return w.input(d.Input)
		})
	})
}

// script makes priorities of lines.
type script struct {
	t         *testing.T
	at        string
	selection *Selection
	changes   map[string]*eventsv1.Node
	position  int64
	// names are short ids of builds and decisions, decisions the last of each change.
	names, decisions map[string]string
}

func (w *script) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(w.at+": "+format, args...)
}

// name is b1, b2, … for builds, and d1, d2, … for decisions.
func (w *script) name(parts ...string) string {
	key := strings.Join(parts, "/")
	if w.names[key] == "" {
		letter := "d"
		if parts[0] == "build" {
			letter = "b"
		}
		n := 1
		for _, name := range w.names {
			if strings.HasPrefix(name, letter) {
				n++
			}
		}
		w.names[key] = letter + strconv.Itoa(n)
	}
	return w.names[key]
}

func (w *script) input(lines string) string {
	w.position++
	p := &eventsv1.Priority{Position: w.position, Delta: &eventsv1.GraphDelta{}}
	var change *eventsv1.Node
	for _, line := range strings.Split(lines, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case line[0] == ' ':
			change.Classes = append(change.Classes, w.class(change, words))
		case words[0] == "change":
			change = w.change(words[1], words[2:])
			p.Delta.Nodes = append(p.Delta.Nodes, change)
		default:
			w.fact(p, words)
		}
	}
	w.selection.Apply(p)
	d := w.selection.Decide()
	w.selection.Fold(d)
	return w.shown(d)
}

func (w *script) fact(p *eventsv1.Priority, words []string) {
	d, args := p.Delta, words[1:]
	switch words[0] {
	case "settings":
		d.Settings = &eventsv1.QueueSettings{Hash: "s", Workers: uint32(w.number(args, "workers")), Steps: &eventsv1.StepPolicy{FailedRetries: uint32(w.number(args, "failed"))}}
	case "mainline":
		d.Mainline = &eventsv1.Mainline{Head: args[0], Paused: slices.Contains(args, "paused"), Analyzed: !slices.Contains(args, "unanalyzed")}
	case "check":
		n := &eventsv1.Node{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: true}
		if len(args) > 0 {
			n.Classes = []*eventsv1.Class{{Targets: targetsOf(args[0])}}
		}
		d.Nodes = append(d.Nodes, n)
	case "gone":
		how, known := eventsv1.GoneHow_value["GONE_HOW_"+strings.ToUpper(args[1])]
		if !known {
			w.fail("nothing goes %s", args[1])
		}
		d.Gone = append(d.Gone, &eventsv1.NodeGone{Change: w.changes[args[0]].Change, How: eventsv1.GoneHow(how)})
	case "rank":
		p.Ranking = &eventsv1.Ranking{Exact: true}
		for _, path := range args {
			id, members, _ := strings.Cut(path, "{")
			b := &eventsv1.RankedBuild{Change: &eventsv1.ChangeRef{}, Needed: 1, Value: 1}
			if id != "mainline" {
				b.Change = w.changes[id].Change
			}
			for _, m := range list(strings.Trim(members, "}")) {
				b.Assumed = append(b.Assumed, w.changes[m].Change)
			}
			p.Ranking.Best = append(p.Ranking.Best, b)
		}
	case "finished":
		d.Builds = append(d.Builds, &eventsv1.BuildProgress{Build: args[0], State: eventsv1.BuildState_BUILD_STATE_FINISHED})
	case "answered":
		d.Answered = append(d.Answered, &eventsv1.Answered{Change: w.changes[args[0]].Change, Decision: w.decisions[args[0]]})
	case "worthless":
		needed, _ := strconv.ParseFloat(args[1], 64)
		p.Worthless = append(p.Worthless, &eventsv1.WorthlessBuild{Build: args[0], Needed: needed})
	case "recovered":
		p.Recovered = append(p.Recovered, args[0])
	default:
		w.fail("no such line: %s", words[0])
	}
}

func (w *script) change(id string, args []string) *eventsv1.Node {
	position := int64(len(w.changes) + 1)
	if old := w.changes[id]; old != nil {
		position = old.Position
	}
	n := &eventsv1.Node{
		Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Position: position, Analyzed: !slices.Contains(args, "unanalyzed"),
		Intended: slices.Contains(args, "intended"), MissingRequirement: option(args, "missing"), Epoch: uint64(w.number(args, "epoch")),
	}
	if slices.Contains(args, "held") {
		n.Holds = []*eventsv1.Hold{{Name: "hold"}}
	}
	for _, m := range list(option(args, "ahead")) {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: w.changes[m].Change, Conflicts: true,
			MergeConflict: slices.Contains(list(option(args, "merge-conflict")), m), Required: slices.Contains(list(option(args, "requires")), m)})
	}
	w.changes[id] = n
	return n
}

func (w *script) class(n *eventsv1.Node, words []string) *eventsv1.Class {
	k := &eventsv1.Class{Targets: targetsOf(words[0])}
	members := list(option(words[1:], "members"))
	for _, m := range members {
		k.Members = append(k.Members, uint32(slices.IndexFunc(n.Ahead, func(a *eventsv1.Ahead) bool { return a.Change.Change == m })))
	}
	for _, word := range words[1:] {
		set, state, known := strings.Cut(word, "=")
		if !known || set[0] != '{' {
			continue
		}
		o := &eventsv1.Outcome{State: eventsv1.OutcomeState(eventsv1.OutcomeState_value["OUTCOME_STATE_"+strings.ToUpper(state)]), Version: k.Targets[0], Message: k.Targets[0].Target + " is " + state}
		if o.State == 0 {
			w.fail("no version is %s", state)
		}
		s := memberset.New(len(members))
		for _, m := range list(strings.Trim(set, "{}")) {
			s.Add(slices.Index(members, m))
		}
		o.Members = s.Bytes()
		k.Outcomes = append(k.Outcomes, o)
	}
	return k
}

func targetsOf(names string) (out []*eventsv1.TargetVersion) {
	for _, name := range list(names) {
		out = append(out, &eventsv1.TargetVersion{Target: name, Part: 1})
	}
	return out
}

func list(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

func option(args []string, name string) string {
	for _, a := range args {
		if key, value, _ := strings.Cut(a, "="); key == name {
			return value
		}
	}
	return ""
}

func (w *script) number(args []string, name string) (n int) {
	if text := option(args, name); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			w.fail("%v", err)
		}
	}
	return n
}

func (w *script) shown(d *eventsv1.Decision) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	if d == nil {
		line("nothing to do")
	}
	for _, i := range d.GetItems() {
		if change, decision := decisionOn(i); change != "" {
			w.decisions[change] = decision
		}
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			b := x.BuildScheduled
			var assumed, targets []string
			for _, a := range b.Assumed {
				assumed = append(assumed, a.Change.Change)
			}
			for _, t := range b.Targets {
				targets = append(targets, t.Target)
			}
			line("schedule %-3s %s on %s for %s: %s", b.Build, pathName(b.Change.Change.Change, assumed), b.Base, strings.Join(targets, ","), b.Why)
		case *eventsv1.DecisionItem_BuildAborted:
			then := ""
			if by := x.BuildAborted.SupersededBy; by != "" {
				then = ", and " + by + " takes over"
			}
			line("abort    %-3s %s%s", x.BuildAborted.Build, x.BuildAborted.Why, then)
		case *eventsv1.DecisionItem_LandDecided:
			past := ""
			for _, c := range x.LandDecided.Bypasses {
				past += ", past " + c.Change
			}
			line("land     %s%s", x.LandDecided.Change.Change, past)
		case *eventsv1.DecisionItem_RejectDecided:
			line("reject   %s: %s", x.RejectDecided.Change.Change, x.RejectDecided.Reason.GetMessage())
		case *eventsv1.DecisionItem_EjectDecided:
			line("eject    %s: %s", x.EjectDecided.Change.Change, x.EjectDecided.Reason.GetMessage())
		}
	}
	var running []string
	for _, r := range w.selection.running {
		running = append(running, r.id+" "+pathName(r.change.Change, slices.Sorted(maps.Keys(r.assumed))))
	}
	line("  running: %s", strings.Join(running, ", "))
	return out.String()
}

func pathName(change string, assumed []string) string {
	if change == "" {
		return "mainline"
	}
	return change + "{" + strings.Join(assumed, ",") + "}"
}
