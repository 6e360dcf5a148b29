// Package decision is the selector's core: when a change may be decided (M19, M19a), and which builds hold the slots
// (M26). The prioritizer's ranking chooses builds only; no landing, rejection or ejection reads a probability.
package decision

import (
	"strconv"

	"landfall.build/engine/graph"
	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
)

// Selection is the state of one queue.
//
// What was concluded of a change and of its builds is kept until an input concerns the change, or one that it has ahead.
// So an input costs as much as it changes.
type Selection struct {
	queue string
	ids   IDs `snapshot:"-"`

	graph   *graph.Graph
	quotas  *quota.Quotas `snapshot:"-"` // of the graph's settings
	ranking *eventsv1.Ranking
	// proposals has one for each build of the ranking, in its order; proposalsOf has the same by subject, in no order.
	proposals   []*proposal
	proposalsOf map[subject][]*proposal `snapshot:"-"` // made by Restore of proposals
	// running holds the builds that hold a slot, in the order in which they were scheduled; runningOf has the same by
	// subject.
	running   []*running
	runningOf map[subject][]*running
	// decided maps each change whose decision has had no effect yet to that decision's id.
	decided map[string]string
	// undecided holds the changes whose verdict is not known to be Wait. It saves computing verdicts again; Restore begins with
	// all pending changes.
	undecided map[string]bool `snapshot:"-"`
	// inPoolFactor has, by change, what its builds are worth to a pool for each unit of their worth by the ranking.
	inPoolFactor map[string]float64 `snapshot:"-"`

	// position is that of the last input. fresh is set by an input and cleared by the decision that answers it.
	position int64
	fresh    bool
}

// IDs derives an id, the same on every run, from what identifies a build or a decision.
type IDs func(parts ...string) string

// subject is a change or the mainline, as the subject of a build. idle is set for the build that proves what the mainline had
// before the queue (M23b).
type subject struct {
	mainline, idle bool
	change         string
}

func subjectOf(c *eventsv1.ChangeRef) subject {
	if c.GetChange() == "" {
		return subject{mainline: true}
	}
	return subject{change: c.Change}
}

// New returns the selection of a queue about which nothing is known.
func New(queue string, ids IDs) *Selection {
	return &Selection{
		graph: graph.New(), proposalsOf: map[subject][]*proposal{}, runningOf: map[subject][]*running{},
		decided: map[string]string{}, undecided: map[string]bool{}, inPoolFactor: map[string]float64{}, queue: queue, ids: ids,
	}
}

// Apply folds one record of priorities.
func (s *Selection) Apply(p *eventsv1.Priority) {
	s.position, s.fresh = p.Position, true
	concerned := subjects{}
	for _, r := range s.running {
		if r.end.over {
			concerned[r.subject] = true
		}
	}
	s.drop(func(r *running) bool { return r.end.over })
	settings, mainline, check, survey := s.graph.Settings, s.graph.Mainline, s.graph.Check, s.graph.Survey
	for _, g := range p.Delta.GetGone() {
		s.changeGone(g, concerned)
	}
	s.forgetFactors(p.Delta)
	reduced := s.graph.Fold(p.Delta)
	if after, err := graph.EditedRanking(s.ranking, p); err == nil {
		s.rank(after)
	}
	for _, a := range p.Delta.GetAnswered() {
		if s.decided[a.Change.Change] == a.Decision {
			delete(s.decided, a.Change.Change)
		}
		concerned.add(a.Change)
	}
	for _, b := range p.Delta.GetBuilds() {
		switch b.State {
		case eventsv1.BuildState_BUILD_STATE_FINISHED:
			s.markOver(b.Build, concerned)
		case eventsv1.BuildState_BUILD_STATE_OUTDATED:
			s.markOutdated(b.Build, concerned)
		}
	}
	for _, w := range p.Worthless {
		s.setWorthless(w.Build, w)
	}
	for _, id := range p.Recovered {
		s.setWorthless(id, nil)
	}
	for _, n := range reduced {
		concerned.add(n.Change)
	}
	if s.graph.Settings != settings {
		s.quotas = quota.New(s.graph.Settings.GetQuotas())
	}
	s.graph.EachBehindAny(reduced, func(n *graph.Node) { concerned.add(n.Change) })
	for _, n := range p.Delta.GetNodes() {
		concerned.addWithBehind(s.graph, n.GetChange())
	}
	now := s.graph.Mainline
	if s.graph.Settings != settings || now.GetPaused() != mainline.GetPaused() || now.GetAnalyzed() != mainline.GetAnalyzed() {
		concerned.addAll(s)
	}
	if s.graph.Check != check {
		concerned[subject{mainline: true}] = true
	}
	if s.graph.Survey != survey {
		concerned[idleSubject] = true
	}
	if now.GetHead() != mainline.GetHead() {
		s.guardBuildsStale(concerned)
	}
	for c := range concerned {
		s.reconsider(c)
	}
}

// Decide returns everything that is to be done now, nil if nothing is. What it concludes on the way is kept; asking again,
// or not at all, makes no difference.
func (s *Selection) Decide() *eventsv1.Decision {
	if !s.fresh || s.graph.Settings == nil {
		return nil
	}
	d := &eventsv1.Decision{}
	verdicts := s.verdicts()
	deciding := make(map[string]bool, len(s.decided)+len(verdicts))
	for id := range s.decided {
		deciding[id] = true
	}
	for _, v := range verdicts {
		change, _ := decisionOn(v)
		deciding[change] = true
	}
	d.Items = append(s.builds(deciding), verdicts...)
	if len(d.Items) == 0 {
		return nil
	}
	if len(verdicts) > 0 {
		d.Steps = s.graph.Settings.Steps
	}
	return d
}

// decisionOn returns the change that an item decides on, and the decision's id; both are empty for an item about a build.
func decisionOn(i *eventsv1.DecisionItem) (change, decision string) {
	switch x := i.Item.(type) {
	case *eventsv1.DecisionItem_LandDecided:
		return x.LandDecided.Change.Change, x.LandDecided.Decision
	case *eventsv1.DecisionItem_RejectDecided:
		return x.RejectDecided.Change.Change, x.RejectDecided.Decision
	case *eventsv1.DecisionItem_EjectDecided:
		return x.EjectDecided.Change.Change, x.EjectDecided.Decision
	}
	return "", ""
}

// Fold takes a decision as published. What comes of it arrives with later inputs.
func (s *Selection) Fold(d *eventsv1.Decision) {
	s.fresh = false
	for _, i := range d.GetItems() {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildAborted:
			s.drop(func(r *running) bool { return r.id == x.BuildAborted.Build })
		case *eventsv1.DecisionItem_BuildScheduled:
			s.add(s.newRunning(x.BuildScheduled))
		case *eventsv1.DecisionItem_BuildRevalued:
			for _, r := range s.running {
				if r.id == x.BuildRevalued.Build {
					r.value = x.BuildRevalued.Value
				}
			}
		default:
			if change, decision := decisionOn(i); change != "" {
				s.decided[change] = decision
			}
		}
	}
}

// decisionID contains the position, so that deciding the same again, after a refusal, is another decision.
func (s *Selection) decisionID(kind string, c *eventsv1.ChangeRef) string {
	return s.ids(kind, s.queue, c.Change, strconv.FormatUint(c.Revision, 10), strconv.FormatInt(s.position, 10))
}
