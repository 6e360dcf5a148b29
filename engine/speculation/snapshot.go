package speculation

import (
	"maps"
	"slices"

	"landfall.build/engine/evidence"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Flags of SpeculationNode.ahead_flags.
const (
	aheadConflicts = 1 << iota
	aheadDoesNotMerge
	aheadIsRequired
	aheadHasTargetsOfEdge
)

// Snapshot returns the queue as a message. It shares the messages of the log, which nobody changes.
func (q *Queue) Snapshot() *snapshotv1.Speculation {
	w := &snapshotWriter{numbers: map[revision]uint32{}, treeNumbers: map[*revision]uint32{}}
	m := &snapshotv1.Speculation{
		Lineup: q.Lineup.Snapshot(), Settings: q.settings, Ledger: q.known.ledger.Snapshot(), Pushes: q.pushes.Snapshot(),
		Edges: w.edges(q.conflicts.edges), Landed: w.landed(q.landed), Marks: w.marks(&q.known.marks), Landings: w.landings(q.landings),
		LastPush: q.lastPush, FailedHead: q.proving.failed.head, FailedTimes: q.proving.failed.times,
		Survey: q.proving.survey.Snapshot(), Checks: q.builds.checks, Published: w.published(q), Delta: q.delta.message(),
	}
	for _, a := range q.analyses.pending {
		m.Analyses = append(m.Analyses, w.analysis(a))
	}
	for _, r := range q.analyses.departedOrder {
		m.Departed = append(m.Departed, w.analysis(q.analyses.departed[r]))
	}
	for _, list := range q.known.observed {
		for _, o := range list {
			m.Observations = append(m.Observations, w.observation(o, q.known.labels[o.label] != o))
		}
	}
	for id, b := range q.builds.byID {
		build := &snapshotv1.SpeculationBuild{Id: id, Revision: w.revision(b.of), Assumed: b.assumed}
		build.Targets, build.Hashes = w.versions(b.versions)
		m.Builds = append(m.Builds, build)
	}
	for id, st := range q.changes {
		m.Changes = append(m.Changes, w.change(id, st))
	}
	m.Texts, m.Revisions, m.Trees = w.texts.List, w.revisions, w.trees
	return m
}

// snapshotWriter collects the texts, revisions and trees of a snapshot.
type snapshotWriter struct {
	texts     snapshotv1.Texts
	revisions []*snapshotv1.SpeculationRevision
	numbers   map[revision]uint32
	trees     []*snapshotv1.SpeculationTree
	// treeNumbers finds a tree by the first revision that it held: the observations of one tree share the list.
	treeNumbers map[*revision]uint32
}

func (w *snapshotWriter) revision(r revision) uint32 {
	n, written := w.numbers[r]
	if !written {
		n = uint32(len(w.revisions))
		w.numbers[r] = n
		w.revisions = append(w.revisions, &snapshotv1.SpeculationRevision{Kind: uint32(r.kind), Change: r.change, Number: r.number})
	}
	return n
}

func (w *snapshotWriter) revisionsOf(list []revision) (numbers []uint32) {
	for _, r := range list {
		numbers = append(numbers, w.revision(r))
	}
	return numbers
}

func (w *snapshotWriter) tree(held []revision) uint32 {
	n, written := w.treeNumbers[&held[0]]
	if !written {
		n = uint32(len(w.trees))
		w.treeNumbers[&held[0]] = n
		w.trees = append(w.trees, &snapshotv1.SpeculationTree{Held: w.revisionsOf(held)})
	}
	return n
}

func (w *snapshotWriter) versions(list []evidence.Version) (targets, hashes []uint32) {
	for _, v := range list {
		targets, hashes = append(targets, w.texts.Number(v.Target)), append(hashes, w.texts.Number(v.Hash))
	}
	return targets, hashes
}

func (w *snapshotWriter) set(texts map[string]bool) (numbers []uint32) {
	for text := range texts {
		numbers = append(numbers, w.texts.Number(text))
	}
	return numbers
}

func (w *snapshotWriter) analysis(a *analysis) *snapshotv1.SpeculationAnalysis {
	m := &snapshotv1.SpeculationAnalysis{
		Revision: w.revision(a.revision), Parts: uint32(len(a.parts())), Base: w.texts.Number(a.base), Outcome: a.outcome,
		Touched: w.texts.Numbers(a.footprint.Touched), Leaves: w.texts.Numbers(a.footprint.Leaves), Added: w.texts.Numbers(a.footprint.Added),
		All: a.all, Message: a.message, Outdated: a.outdated, Structural: w.set(a.structural),
	}
	for i, t := range a.footprint.Touched {
		for _, part := range a.targets[t] {
			m.TargetTouched, m.TargetParts = append(m.TargetTouched, uint32(i)), append(m.TargetParts, part)
		}
		if a.deleted[t] {
			m.Deleted = append(m.Deleted, uint32(i))
		}
	}
	for other, merge := range a.textual {
		m.Textual = append(m.Textual, w.texts.Number(other))
		m.TextualRevisions = append(m.TextualRevisions, merge.revision)
		m.TextualConflicts = append(m.TextualConflicts, merge.mergeConflict)
	}
	return m
}

func (w *snapshotWriter) edges(edges map[string]map[string]*relation) *snapshotv1.SpeculationEdges {
	m := &snapshotv1.SpeculationEdges{}
	for a, others := range edges {
		for b, r := range others {
			if a > b {
				continue // it is written from its other end
			}
			m.Ends = append(m.Ends, w.texts.Number(a), w.texts.Number(b))
			m.Structural, m.Merge = append(m.Structural, r.structural), append(m.Merge, r.merge)
			m.SharedCounts = append(m.SharedCounts, uint32(len(r.shared)))
			for _, t := range r.shared {
				m.Shared = append(m.Shared, w.texts.Number(t))
			}
		}
	}
	return m
}

func (w *snapshotWriter) observation(o *observation, replaced bool) *snapshotv1.SpeculationObservation {
	m := &snapshotv1.SpeculationObservation{
		Target: w.texts.Number(o.label.target), Hash: w.texts.Number(o.hash), SumLow: o.label.held[0], SumHigh: o.label.held[1],
		Sequence: o.sequence, Tree: w.tree(o.held), Replaced: replaced, Summed: make([]uint32, len(o.summed)),
	}
	for i, r := range o.summed {
		m.Summed[i] = uint32(slices.Index(o.held, r))
	}
	return m
}

func (w *snapshotWriter) marks(of *marks) *snapshotv1.SpeculationMarks {
	m := &snapshotv1.SpeculationMarks{Limit: uint32(of.limit)}
	m.Targets, m.Hashes = w.versions(of.order)
	return m
}

func (w *snapshotWriter) landed(l *landed) *snapshotv1.SpeculationLanded {
	m := &snapshotv1.SpeculationLanded{
		Everything: l.everything.message(), Repository: l.repository.message(), Commits: l.commits, Sequence: l.sequence, Swept: l.swept,
	}
	for t, s := range l.targets {
		of := s.message()
		of.Target = w.texts.Number(t)
		m.Targets = append(m.Targets, of)
	}
	for _, commit := range l.commits {
		m.CommitSequences = append(m.CommitSequences, l.sequences[commit])
	}
	return m
}

func (l *sums) message() *snapshotv1.SpeculationSums {
	m := &snapshotv1.SpeculationSums{At: slices.Clone(l.at)}
	for _, s := range l.sum {
		m.Low, m.High = append(m.Low, s[0]), append(m.High, s[1])
	}
	return m
}

func (w *snapshotWriter) landings(list []landing) (out []*snapshotv1.SpeculationLanding) {
	for _, l := range list {
		out = append(out, &snapshotv1.SpeculationLanding{Sequence: l.sequence, Revision: w.revision(l.revision)})
	}
	return out
}

func (w *snapshotWriter) change(id string, st *changeState) *snapshotv1.SpeculationChange {
	m := &snapshotv1.SpeculationChange{Change: id, Epoch: st.epoch, Guard: st.guard, Landings: w.landings(st.landings), Overtaken: uint32(st.overtaken), Unmade: st.unmade}
	for _, tree := range st.failedTrees {
		m.FailedTrees = append(m.FailedTrees, &snapshotv1.SpeculationFailedTree{
			Assumed: w.revisionsOf(tree.assumed), Sequence: tree.sequence, Outcome: tree.outcome, Message: tree.message,
		})
	}
	return m
}

func (w *snapshotWriter) published(q *Queue) *snapshotv1.SpeculationPublished {
	m := &snapshotv1.SpeculationPublished{Check: q.published.check, Mainline: q.published.mainline, Settings: q.published.settings, Survey: q.published.survey}
	for id, n := range q.published.nodes {
		m.Nodes = append(m.Nodes, w.node(n, q.conflicts.edges[id]))
	}
	return m
}

func (w *snapshotWriter) node(n *eventsv1.Node, edges map[string]*relation) *snapshotv1.SpeculationNode {
	m := &snapshotv1.SpeculationNode{Node: &eventsv1.Node{
		Change: n.Change, Position: n.Position, Analyzed: n.Analyzed, Paths: n.Paths, Holds: n.Holds, Guard: n.Guard,
		Benefit: n.Benefit, AdmittedUs: n.AdmittedUs, LandingCommits: n.LandingCommits,
		MissingRequirement: n.MissingRequirement, Epoch: n.Epoch, Intended: n.Intended, Mainline: n.Mainline, Urgent: n.Urgent, Author: n.Author,
	}}
	for _, a := range n.Ahead {
		m.Ahead = append(m.Ahead, w.revision(revisionOf(a.Change)))
		flags := flag(a.Conflicts, aheadConflicts) | flag(a.MergeConflict, aheadDoesNotMerge) | flag(a.Required, aheadIsRequired)
		if r := edges[a.Change.Change]; r != nil && slices.Equal(r.shared, a.Targets) {
			flags |= aheadHasTargetsOfEdge
		} else {
			m.AheadTargetCounts = append(m.AheadTargetCounts, uint32(len(a.Targets)))
			m.AheadTargets = append(m.AheadTargets, w.texts.Numbers(a.Targets)...)
		}
		m.AheadFlags = append(m.AheadFlags, flags)
	}
	for _, k := range n.Classes {
		class := &snapshotv1.SpeculationClass{Members: k.Members, Through: k.Through, Outcomes: k.Outcomes}
		for _, t := range k.Targets {
			class.Targets, class.Parts = append(class.Targets, w.texts.Number(t.Target)), append(class.Parts, t.Part)
		}
		m.Classes = append(m.Classes, class)
	}
	return m
}

func flag(is bool, flag uint32) uint32 {
	if is {
		return flag
	}
	return 0
}

func (d *delta) message() *snapshotv1.SpeculationDelta {
	m := &snapshotv1.SpeculationDelta{Check: d.check, AllDirty: d.allDirty, Tick: d.tick, Told: &eventsv1.GraphDelta{
		Gone: d.gone, Builds: d.builds, Answered: d.answered, Durations: d.durations,
	}}
	for id := range d.dirty {
		m.Dirty = append(m.Dirty, id)
	}
	for id, targets := range d.known {
		m.Known = append(m.Known, &snapshotv1.SpeculationKnown{Change: id, Targets: slices.Sorted(maps.Keys(targets))})
	}
	return m
}
