package analyzer

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"landfall.build/engine/agenda"
	"landfall.build/engine/lineup"
	"landfall.build/engine/pathkind"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
	"landfall.build/services/analyzer/churn"
)

const wholeRepository = targets.Repository

const (
	// maxPairMerges bounds how many neighbours a change is merged with, the nearest in the queue first.
	// A conflict with any other one shows when it is built.
	maxPairMerges = 256
	// Bounds of counting lines: the files of one change, and the bytes of one file.
	maxCountedFiles = 300
	maxCountedBytes = 256 << 10
)

// peer is a pending change as it was when a task began.
type peer struct {
	ref       *eventsv1.ChangeRef
	admission *eventsv1.Admission
}

// peersOf returns the queue in its order.
func peersOf(q *lineup.Queue) []peer {
	peers := make([]peer, 0, len(q.Order()))
	for _, c := range q.Order() {
		peers = append(peers, peer{c.Ref(), c.Admission})
	}
	return peers
}

func (p peer) key() agenda.Key { return agenda.KeyOf(p.ref) }

// extras is what an analysis holds besides the targets.
type extras struct {
	textual               []*eventsv1.Textual
	files, added, deleted uint32
	difference            *eventsv1.Difference
}

func (x *examination) extras(ctx context.Context, task agenda.Task, peers []peer, outcome eventsv1.AnalysisOutcome) (*extras, error) {
	e := &extras{}
	own, changed, err := touchedBy(ctx, x.repo, landing.PicksOf(task.Change.Admission.LandingCommits))
	if err != nil {
		return nil, err
	}
	x.paths.put(agenda.KeyOf(task.Change.Ref()), own)
	if changed != nil || !own.everything { // else it is too large to be compared, or cannot be
		if err := x.countLines(ctx, changed, e); err != nil {
			return nil, err
		}
	}
	e.files = uint32(own.count)
	e.textual, err = x.textual(ctx, task, peers, own, outcome)
	return e, err
}

// neighbour is a pending change that touches what this one touches.
type neighbour struct {
	peer
	place  int // in queue order
	shared []string
}

// textual lists the neighbours in queue order, with the result of git's merge of each pair (M5).
func (x *examination) textual(ctx context.Context, task agenda.Task, peers []peer, own touched, outcome eventsv1.AnalysisOutcome) ([]*eventsv1.Textual, error) {
	place := slices.IndexFunc(peers, func(p peer) bool { return p.ref.Change == task.Change.ID() })
	neighbours, err := x.neighbours(ctx, peers, place, own, outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID)
	if err != nil {
		return nil, err
	}
	facts := make([]*eventsv1.Textual, len(neighbours))
	byDistance := make([]int, len(neighbours))
	for i, n := range neighbours {
		facts[i] = &eventsv1.Textual{Other: n.ref, Paths: shownPaths(n.shared)}
		byDistance[i] = i
	}
	if outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE {
		// Two changes conflict with each other only if each merges alone.
		return facts, nil
	}
	slices.SortStableFunc(byDistance, func(a, b int) int {
		return cmp.Compare(distance(neighbours[a].place, place), distance(neighbours[b].place, place))
	})
	base, err := x.repo.TreeOf(ctx, task.Base)
	if err != nil {
		return nil, err
	}
	for _, i := range byDistance[:min(len(byDistance), maxPairMerges)] {
		if ctx.Err() != nil {
			break // who the neighbours are is worth more than whether the last ones merge
		}
		ahead, behind := neighbours[i].peer, peers[place]
		if neighbours[i].place > place {
			ahead, behind = behind, ahead
		}
		paths, conflict, err := x.pairConflict(ctx, base, landing.PicksOf(ahead.admission.LandingCommits), landing.PicksOf(behind.admission.LandingCommits))
		if errors.Is(err, gitrepo.ErrBadObject) || errors.Is(err, gitrepo.ErrTooLarge) {
			continue // the trees of one cannot be merged with anything
		}
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		facts[i].MergeConflict = conflict
		if conflict && len(facts[i].Paths) == 0 {
			facts[i].Paths = paths
		}
	}
	return facts, nil
}

func distance(a, b int) int { return max(a-b, b-a) }

// neighbours finds the pending changes that share a path with the one at a place; with manifests also those
// that touch any manifest.
func (x *examination) neighbours(ctx context.Context, peers []peer, place int, own touched, manifests bool) ([]neighbour, error) {
	if err := x.fetchPeers(ctx, peers); err != nil {
		return nil, err
	}
	var found []neighbour
	for i, p := range peers {
		if i == place {
			continue
		}
		t, err := x.touchedByPeer(ctx, p)
		if isOthersFault(ctx, err) {
			continue // its own analysis conflicts with everything
		}
		if err != nil {
			return nil, err
		}
		shared, any := own.shared(t)
		if any || manifests && t.definesTargets() {
			found = append(found, neighbour{peer: p, place: i, shared: shared})
		}
	}
	return found, nil
}

// fetchPeers fetches what is missing of all of them at once, if the repository serves all of it.
func (x *examination) fetchPeers(ctx context.Context, peers []peer) error {
	var commits []string
	for _, p := range peers {
		if _, ok := x.paths.get(p.key()); !ok {
			commits = append(commits, commitsOf(landing.PicksOf(p.admission.LandingCommits))...)
		}
	}
	if len(commits) == 0 {
		return nil
	}
	if err := x.fetch(ctx, "", commits...); err != nil && !isOthersFault(ctx, err) {
		return err
	}
	return nil // touchedByPeer finds out whose commits cannot be fetched
}

// isOthersFault reports whether an error about commits of another change is that change's fault: they, or objects of theirs,
// cannot be had. A repository that does not answer is nobody's.
func isOthersFault(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, gitrepo.ErrUnreachable)
}

func (x *examination) touchedByPeer(ctx context.Context, p peer) (touched, error) {
	if t, ok := x.paths.get(p.key()); ok {
		return t, nil
	}
	picks := landing.PicksOf(p.admission.LandingCommits)
	if err := x.fetch(ctx, "", commitsOf(picks)...); err != nil {
		return touched{}, err
	}
	t, _, err := touchedBy(ctx, x.repo, picks)
	if err != nil {
		return touched{}, err
	}
	x.paths.put(p.key(), t)
	return t, nil
}

// pairConflict reports whether two changes do not merge to one tree, and where. That one of them does not merge alone is in
// its own analysis.
func (x *examination) pairConflict(ctx context.Context, base string, ahead, behind []landing.Pick) (paths []string, conflict bool, err error) {
	pair, err := landing.ApplyBoth(ctx, x.repo, base, ahead, behind)
	switch {
	case err != nil || pair == nil:
		return nil, false, err
	case pair.Conflict != nil:
		return conflictingPaths(pair.Conflict), true, nil
	}
	changed, err := x.repo.DiffTrees(ctx, pair.Trees[0], pair.Trees[1])
	if err != nil && !errors.Is(err, gitrepo.ErrTooLarge) {
		return nil, false, err
	}
	for _, c := range changed[:min(len(changed), maxPaths)] {
		paths = append(paths, c.Path)
	}
	return shownPaths(paths), true, nil
}

// countLines counts what a difference is made of: the lines of the first files, as far as they are not too large.
func (x *examination) countLines(ctx context.Context, changed []gitrepo.Changed, e *extras) error {
	e.difference = &eventsv1.Difference{}
	countFiles(changed, e.difference)
	for _, c := range changed[:min(len(changed), maxCountedFiles)] {
		old, err := x.content(ctx, c.Old)
		if err != nil {
			return err
		}
		new, err := x.content(ctx, c.New)
		if err != nil {
			return err
		}
		if old == nil || new == nil {
			continue
		}
		if churn.Binary(old) || churn.Binary(new) {
			e.difference.BinaryFiles++
			continue
		}
		plus, minus := churn.Lines(old, new)
		e.added, e.deleted = e.added+uint32(plus), e.deleted+uint32(minus)
		addLines(e.difference, c.Path, uint32(plus+minus))
	}
	return nil
}

// countFiles counts files that were added, deleted, or renamed without an edit.
func countFiles(changed []gitrepo.Changed, d *eventsv1.Difference) {
	gone := map[string]uint32{}
	for _, c := range changed {
		if c.New.Kind == gitrepo.NoEntry {
			gone[c.Old.Object]++
			d.FilesDeleted++
		}
	}
	for _, c := range changed {
		switch {
		case c.Old.Kind != gitrepo.NoEntry:
		case gone[c.New.Object] > 0:
			gone[c.New.Object]--
			d.FilesDeleted--
			d.FilesRenamed++
		default:
			d.FilesAdded++
		}
	}
}

func addLines(d *eventsv1.Difference, path string, lines uint32) {
	d.LargestFileLines = max(d.LargestFileLines, lines)
	switch pathkind.Of(path) {
	case pathkind.Source:
		d.SourceLines += lines
	case pathkind.Test:
		d.TestLines += lines
	case pathkind.Doc:
		d.DocLines += lines
	case pathkind.Configuration, pathkind.Build, pathkind.CI, pathkind.Lock:
		d.ConfigurationLines += lines
	}
}

// content is empty where there is no file, and nil where its lines are not counted.
func (x *examination) content(ctx context.Context, e gitrepo.Entry) ([]byte, error) {
	switch e.Kind {
	case gitrepo.NoEntry:
		return []byte{}, nil
	case gitrepo.File, gitrepo.Executable:
		content, err := x.repo.Blob(ctx, e.Object, maxCountedBytes)
		if errors.Is(err, gitrepo.ErrTooLarge) {
			return nil, nil
		}
		if err == nil && content == nil {
			content = []byte{}
		}
		return content, err
	}
	return nil, nil
}
