package ranking_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/datadriven"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	"landfall.build/engine/ranking"
	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays testdata/*.txt. The commands are:
//
//	queue [workers=N] [best=N] [threshold=P] [abort=P] [bypass=P]
//	    an empty queue: how many builds may run, how many are ranked, and the thresholds of M16, M26 and M13
//
//	profile [at=DURATION]
//	    one profile, at a time since the queue was made: what it says, one a line; then what the ranking writes
//	      change C success=P takes=DURATION [meets=A:P,…] [requires=A,…]   C is new at the end of the queue
//	      predicted C success=P takes=DURATION                            a prediction has moved
//	      running BUILD of C [on A,…]                                     a build is prepared
//	      ended BUILD of C
//	      green C [on A,…]                                                what a build has shown; red likewise
//	      asked C TARGET                                                  the land guard needs a target verified
//	      held C, released C
//	      landed C, rejected C
//	      frozen, thawed                                                  the remote refuses every push, and takes some again
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var p *play
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "queue":
				p = newPlay(t, d)
				return ""
			case "profile":
				return p.profile(t, d)
			}
			t.Fatalf("%s: no such command", d.Pos)
			return ""
		})
	})
}

// play is a ranking with the queue that the profiles describe.
type play struct {
	r        *ranking.Ranking
	settings *eventsv1.QueueSettings // of the next profile
	nodes    []*eventsv1.Node        // in queue order
	best     *eventsv1.Ranking
	stamp    int64
}

func newPlay(t *testing.T, d *datadriven.TestData) *play {
	p := &play{r: ranking.New(), settings: &eventsv1.QueueSettings{}}
	p.r.EnableEstimates("main")
	for _, a := range d.CmdArgs {
		x, err := strconv.ParseFloat(a.Vals[0], 64)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		switch a.Key {
		case "workers":
			p.settings.Workers = uint32(x)
		case "best":
			p.settings.Best = uint32(x)
		case "threshold":
			p.settings.Threshold = x
		case "abort":
			p.settings.AbortThreshold = x
		case "bypass":
			p.settings.BypassThreshold = &x
		default:
			t.Fatalf("%s: no such argument: %s", d.Pos, a.Key)
		}
	}
	return p
}

func (p *play) profile(t *testing.T, d *datadriven.TestData) string {
	if d.HasArg("at") {
		var text string
		d.ScanArgs(t, "at", &text)
		p.stamp = duration(t, text).Microseconds()
	}
	m := &eventsv1.Profile{StampUs: p.stamp, Delta: &eventsv1.GraphDelta{Settings: p.settings}}
	p.settings = nil
	for _, line := range strings.Split(d.Input, "\n") {
		if words := strings.Fields(line); len(words) > 0 {
			p.line(t, m, words)
		}
	}
	p.r.Apply(m)
	out := p.r.Decide()
	var err error
	if p.best, err = graph.EditedRanking(p.best, out); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	p.r.Fold(out)
	return p.written(out)
}

// line adds a line of input to a profile.
func (p *play) line(t *testing.T, m *eventsv1.Profile, words []string) {
	t.Helper()
	ref := func(id string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: id, Revision: 1} }
	var list []string // behind "on"
	if at := slices.Index(words, "on"); at > 0 {
		list, words = strings.Split(words[at+1], ","), words[:at]
	}
	switch words[0] {
	case "frozen":
		m.Delta.Mainline = &eventsv1.Mainline{Head: "m", Analyzed: true, RefusedByRemote: "come back later"}
		return
	case "thawed":
		m.Delta.Mainline = &eventsv1.Mainline{Head: "m", Analyzed: true}
		return
	}
	id := words[1]
	if at := slices.Index(words, "of"); at > 0 {
		id = words[at+1]
	}
	at := slices.IndexFunc(p.nodes, func(n *eventsv1.Node) bool { return n.Change.Change == id })
	put := func(n *eventsv1.Node) {
		p.nodes[at] = n
		m.Delta.Nodes = append(slices.DeleteFunc(m.Delta.Nodes, func(o *eventsv1.Node) bool { return o.Change.Change == id }), n)
	}
	var node *eventsv1.Node
	if at >= 0 {
		node = copyOf(p.nodes[at])
	}
	var refs []*eventsv1.ChangeRef
	for _, a := range list {
		refs = append(refs, ref(a))
	}
	switch words[0] {
	case "change":
		at = len(p.nodes)
		p.nodes = append(p.nodes, nil)
		put(p.arriving(t, m, id, words[2:]))
	case "predicted":
		m.Predictions = append(m.Predictions, prediction(t, id, words[2:]))
	case "running":
		m.Delta.Builds = append(m.Delta.Builds, &eventsv1.BuildProgress{Build: words[1], State: eventsv1.BuildState_BUILD_STATE_PREPARED, Change: ref(id), Assumed: refs})
	case "ended":
		m.Delta.Builds = append(m.Delta.Builds, &eventsv1.BuildProgress{Build: words[1], State: eventsv1.BuildState_BUILD_STATE_FINISHED, Change: ref(id)})
	case "green", "red":
		k, state := node.Classes[0], graph.Green
		if words[0] == "red" {
			state = graph.Red
		}
		set := memberset.New(len(k.Members))
		for i, x := range k.Members {
			if slices.Contains(list, node.Ahead[x].Change.Change) {
				set.Add(i)
			}
		}
		node.Classes = []*eventsv1.Class{{Members: k.Members, Targets: k.Targets, Outcomes: append(slices.Clip(k.Outcomes), &eventsv1.Outcome{Members: set.Bytes(), State: state})}}
		put(node)
	case "asked":
		node.Guard = &eventsv1.Guard{Base: "m", Missing: []*eventsv1.TargetVersion{{Target: words[2], Hash: "h"}}}
		put(node)
	case "held":
		node.Holds = []*eventsv1.Hold{{Name: "hold"}}
		put(node)
	case "released":
		node.Holds = nil
		put(node)
	case "landed", "rejected":
		gone := &eventsv1.NodeGone{Change: ref(id), How: eventsv1.GoneHow_GONE_HOW_LANDED}
		if words[0] == "rejected" {
			gone.How = eventsv1.GoneHow_GONE_HOW_REJECTED
		}
		m.Delta.Gone = append(m.Delta.Gone, gone)
		p.nodes = slices.Delete(p.nodes, at, at+1)
		for i, n := range p.nodes {
			p.nodes[i] = graph.Without(n, gone)
		}
	default:
		t.Fatalf("no such line: %s", strings.Join(words, " "))
	}
}

// copyOf returns a node whose fields may be set: the ranking holds the other one.
func copyOf(n *eventsv1.Node) *eventsv1.Node {
	return &eventsv1.Node{Change: n.Change, Position: n.Position, Analyzed: n.Analyzed, Ahead: n.Ahead, Classes: n.Classes, Holds: n.Holds, Guard: n.Guard}
}

// arriving returns the node of a change that comes to the end of the queue, and adds what is predicted of it to the profile.
func (p *play) arriving(t *testing.T, m *eventsv1.Profile, id string, args []string) *eventsv1.Node {
	position := int64(1)
	if n := len(p.nodes); n > 1 {
		position = p.nodes[n-2].Position + 1
	}
	n := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Position: position, Analyzed: true}
	k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "//" + strings.ToLower(id), Part: 1}}}
	m.Predictions = append(m.Predictions, prediction(t, id, args))
	for _, o := range p.nodes[:len(p.nodes)-1] {
		a := &eventsv1.Ahead{Change: o.Change}
		for _, met := range split(args, "meets") {
			if of, conflict, _ := strings.Cut(met, ":"); of == o.Change.Change {
				a.Conflicts = true
				m.Pairs = append(m.Pairs, &eventsv1.PairPrediction{Behind: n.Change, Ahead: o.Change, Conflict: number(t, conflict)})
			}
		}
		a.Required = slices.Contains(split(args, "requires"), o.Change.Change)
		if !a.Conflicts && !a.Required {
			continue
		}
		if a.Conflicts {
			k.Members = append(k.Members, uint32(len(n.Ahead)))
		}
		n.Ahead = append(n.Ahead, a)
	}
	n.Classes = []*eventsv1.Class{k}
	return n
}

func prediction(t *testing.T, id string, args []string) *eventsv1.Prediction {
	takes := duration(t, value(args, "takes"))
	return &eventsv1.Prediction{
		Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Success: number(t, value(args, "success")),
		DurationMeanUs: float64(takes.Microseconds()), DurationStdUs: float64(takes.Microseconds()) / 10, DurationSource: "model",
	}
}

func value(args []string, key string) string {
	for _, a := range args {
		if rest, ok := strings.CutPrefix(a, key+"="); ok {
			return rest
		}
	}
	return ""
}

func split(args []string, key string) []string { return strings.Split(value(args, key), ",") }

func number(t *testing.T, text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func duration(t *testing.T, text string) time.Duration {
	x, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// written returns what the ranking has written, as tables.
func (p *play) written(m *eventsv1.Priority) string {
	var out strings.Builder
	switch {
	case m.Ranking != nil:
		out.WriteString("the ranking is new\n")
	case m.Edit != nil:
		removed, inserted := 0, 0
		for _, s := range m.Edit.Splices {
			removed, inserted = removed+int(s.Removed), inserted+len(s.Inserted)
		}
		fmt.Fprintf(&out, "the ranking is edited: %d removed, %d inserted\n", removed, inserted)
	default:
		out.WriteString("the ranking stays as it is\n")
	}
	if m.Ranking != nil || m.Edit != nil {
		table(&out, p.best.Best, func(i int, b *eventsv1.RankedBuild) string {
			on := "the mainline"
			for _, a := range b.Assumed {
				on += " + " + a.Change
			}
			return fmt.Sprintf("%d\t%s on %s\tneeded %.3g\tvalue %.3g", i+1, b.Change.Change, on, b.Needed, b.Value)
		})
	}
	table(&out, m.Worthless, func(_ int, x *eventsv1.WorthlessBuild) string {
		return fmt.Sprintf("%s is worthless\tneeded %.3g", x.Build, x.Needed)
	})
	table(&out, m.Recovered, func(_ int, build string) string { return build + " is not worthless any more" })
	table(&out, m.GetEstimates().GetMoved(), func(_ int, e *eventsv1.Estimate) string {
		if e.Unknown != "" {
			return fmt.Sprintf("%s\tno estimate: %s", e.Change.Change, e.Unknown)
		}
		minutes := func(us int64) float64 { return float64(us-p.stamp) / 60e6 }
		return fmt.Sprintf("%s\tdecided in %.0f min (%.0f to %.0f)\tlands %.2g", e.Change.Change, minutes(e.P50Us), minutes(e.P5Us), minutes(e.P95Us), e.Lands)
	})
	return out.String()
}

// table writes a line for each element of a list, its columns below each other.
func table[E any](out *strings.Builder, list []E, line func(i int, x E) string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, x := range list {
		fmt.Fprintln(w, line(i, x))
	}
	w.Flush()
}
