package buildgraph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph/gograph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/landing"
)

// Part is the repository after one landing commit of a change.
type Part struct {
	// Tree is its id.
	Tree string
	// Graph is the target graph of that tree; its Unknown is not empty where its targets are not known.
	Graph *targets.Graph

	loader *Loader
	// absent is set if the tree holds nothing that an adapter reads.
	absent *Invalid
}

// Target finds a target of the tree, with the commands that verify it. The whole repository
// (targets.Repository) is a target of every tree.
func (p Part) Target(name string) (targets.Target, bool) {
	if name == targets.Repository {
		return p.loader.whole(p.Tree, p.Graph).Target(name)
	}
	return p.Graph.Target(name)
}

// Version names a target as it is in the tree, as the part-th landing commit (1-based) makes it;
// Absent is set if the tree does not have it.
func (p Part) Version(name string, part uint32) *eventsv1.TargetVersion {
	t, ok := p.Target(name)
	if !ok {
		return &eventsv1.TargetVersion{Target: name, Part: part, Absent: true}
	}
	return versionOf(t, part)
}

func versionOf(t targets.Target, part uint32) *eventsv1.TargetVersion {
	return &eventsv1.TargetVersion{Target: t.Name, Hash: t.Hash.String(), Part: part, Trivial: IsTrivial(t)}
}

// IsTrivial reports whether a target is green by definition: nothing has to be run. The whole repository is
// never trivial: without steps it is unverifiable, which is the opposite.
func IsTrivial(t targets.Target) bool {
	return len(t.Commands) == 0 && t.Name != targets.Repository
}

// Result is what a change of one or several landing commits does to a repository. If Conflict or
// Invalid is set, nothing after it is.
type Result struct {
	// Base is what the change was put on.
	Base Part
	// Conflict: the change does not merge there.
	Conflict *landing.Conflict
	// Invalid: what the change makes of the repository defines no valid targets, while the base's
	// definitions are valid.
	Invalid *Invalid
	// InvalidPart is the landing commit (1-based) that Invalid is about.
	InvalidPart int

	// Parts has one element for each landing commit, in order.
	Parts []Part
	// Targets is δ, sorted by target, then part: each version once, with the first landing commit at
	// which the target has it. With All it has the whole repository, once for each landing commit with
	// another tree, and besides only what is known and verified by other steps than the whole repository's.
	Targets []*eventsv1.TargetVersion
	// Deleted, Leaves and AddedEdges are the union over the prefixes, each against the base.
	Deleted, Leaves, AddedEdges []string
	// Created holds the indices in Targets of the targets that the base does not have.
	Created []uint32
	// All is set if the change conflicts with everything, for Reasons: its targets are not known (M4), or it alters files
	// that no target covers.
	All     bool
	Reasons []string
	// Uncovered is empty if the targets are not known.
	Uncovered Uncovered
	// Adapter names what found the targets.
	Adapter string
}

// Affected returns the result as analyses carry it.
func (r *Result) Affected() *eventsv1.Affected {
	return &eventsv1.Affected{
		Targets: r.Targets, Deleted: r.Deleted, Leaves: r.Leaves, AddedEdges: r.AddedEdges, Created: r.Created,
		All: r.All, Reasons: r.Reasons, Adapter: r.Adapter, Uncovered: r.Uncovered.event(),
	}
}

// BaseVersions returns, by target, the versions that the base has of the targets of a δ. A target that the base lacks is left
// out. If the base's targets are not known, each is the whole repository's.
func (r *Result) BaseVersions(of []*eventsv1.TargetVersion) map[string]*eventsv1.TargetVersion {
	versions := make(map[string]*eventsv1.TargetVersion, len(of))
	unknown := len(r.Base.Graph.Unknown()) > 0
	for _, t := range of {
		switch v := r.Base.Version(t.Target, 0); {
		case unknown:
			versions[t.Target] = r.Base.Version(targets.Repository, 0)
		case !v.Absent:
			versions[t.Target] = v
		}
	}
	return versions
}

// Analyze applies picks to a commit or tree and returns what each landing commit makes of the target graph
// (M23): the union over the prefixes, each against onto. All commits must be in the mirror.
func Analyze(ctx context.Context, loader *Loader, repo Repository, onto string, picks []landing.Pick) (*Result, error) {
	base, err := repo.TreeOf(ctx, onto)
	if err != nil {
		return nil, err
	}
	trees, conflict, err := landing.ApplyTree(ctx, repo, base, picks)
	if invalid, is := errors.AsType[*Invalid](unusable(err)); is {
		return &Result{Base: Part{Tree: base}, Invalid: invalid, InvalidPart: 1}, nil
	} else if err != nil {
		return nil, err
	}
	if conflict != nil {
		return &Result{Base: Part{Tree: base}, Conflict: conflict}, nil
	}
	return Compare(ctx, loader, repo, base, trees)
}

// Compare is Analyze for trees that are there already: what turning base into each of them does.
func Compare(ctx context.Context, loader *Loader, repo Repository, base string, trees []string) (*Result, error) {
	result := &Result{}
	var invalidBase *Invalid
	var err error
	if result.Base, invalidBase, err = loader.Part(ctx, repo, base); err != nil {
		return nil, fmt.Errorf("the base: %w", err)
	}
	for i, tree := range trees {
		part, invalid, err := loader.Part(ctx, repo, tree)
		if err == nil {
			err = unusable(checkLinks(ctx, repo, base, tree))
		}
		if broken, is := errors.AsType[*Invalid](err); is {
			invalid, err = broken, nil
		}
		if err != nil {
			return nil, fmt.Errorf("landing commit %d: %w", i+1, err)
		}
		// On a base that is broken itself an invalid tree says nothing against the change: its targets
		// are not known, no more.
		if invalid != nil && (invalidBase == nil || invalid.Unusable && !invalidBase.Unusable) {
			result.Invalid, result.InvalidPart = invalid, i+1
			return result, nil
		}
		if problems := gograph.Collisions(result.Base.Graph, part.Graph); len(problems) > 0 && invalidBase == nil {
			result.Invalid, result.InvalidPart = &Invalid{Message: strings.Join(problems, "\n")}, i+1
			return result, nil
		}
		if part.absent != nil && result.Base.absent == nil {
			part.Graph = loader.undefined(tree, part.absent) // what removes the last definition has to be verified
		}
		result.Parts = append(result.Parts, part)
	}
	result.unite()
	return result, nil
}

// Part loads a tree. Invalid definitions give, beside the error, a graph about which nothing is known. If the tree holds nothing that
// the adapters read, and the queue has no steps for the whole repository, the graph has its files, which no target covers. What takes
// longer than the queue's analysis.timeout ends in ErrContained.
func (l *Loader) Part(ctx context.Context, repo Repository, tree string) (Part, *Invalid, error) {
	found, err := l.readInTime(ctx, repo, tree)
	part := Part{Tree: tree, Graph: found.graph, loader: l, absent: found.absent}
	if invalid, is := errors.AsType[*Invalid](err); is {
		part.Graph = unknownFor(tree, l.steps, invalid)
		return part, invalid, nil
	} else if err != nil {
		return Part{}, nil, err
	}
	if l.fallback {
		return part, nil, nil
	}
	return part, found.absent, nil
}

// readInTime is read within the limit.
func (l *Loader) readInTime(ctx context.Context, repo Repository, tree string) (definitions, error) {
	if l.limit == 0 {
		return l.read(ctx, repo, tree)
	}
	return Contain(ctx, l.limit, func(ctx context.Context) (definitions, error) { return l.read(ctx, repo, tree) })
}

// unite joins the deltas of the prefixes.
func (r *Result) unite() {
	deltas := make([]targets.Analysis, len(r.Parts))
	type version struct {
		target string
		hash   targets.Hash
	}
	seen := map[version]bool{}
	for i, part := range r.Parts {
		deltas[i] = targets.Delta(r.Base.Graph, part.Graph)
		for _, v := range deltas[i].Affected {
			key := version{v.Name, v.Hash}
			if seen[key] {
				continue
			}
			seen[key] = true
			r.Targets = append(r.Targets, part.Version(v.Name, uint32(i+1)))
		}
	}
	union := targets.Union(deltas...)
	r.Deleted, r.Leaves, r.AddedEdges = union.Deleted, union.Leaves, union.Added
	r.All, r.Reasons = union.All, union.Reasons
	r.setUncovered(union)
	r.Adapter = r.adapter()
	switch {
	case union.All || r.All && len(r.Base.loader.steps) == 0: // or every target's steps verify the whole repository
		r.Targets = r.WholeVersions()
	case r.All:
		trivial := func(v *eventsv1.TargetVersion) bool { return v.Trivial }
		r.Targets = append(r.WholeVersions(), slices.DeleteFunc(r.Targets, trivial)...)
	}
	slices.SortStableFunc(r.Targets, func(a, b *eventsv1.TargetVersion) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Part, b.Part))
	})
	r.findCreated()
}

// findCreated compares the targets with those of the base, if both are known.
func (r *Result) findCreated() {
	if r.All {
		return
	}
	for i, t := range r.Targets {
		if _, had := r.Base.Graph.Target(t.Target); !had {
			r.Created = append(r.Created, uint32(i))
		}
	}
}

// last returns the repository after the last landing commit, nothing if there is none.
func (r *Result) last() Part {
	if n := len(r.Parts); n > 0 {
		return r.Parts[n-1]
	}
	return Part{}
}

// adapter names what found the targets of the last landing commit: an adapter, or several with a plus between them.
func (r *Result) adapter() string {
	if last := r.last(); last.absent != nil || last.Graph != nil && isWhole(last.Graph) {
		return string(configuration.AdapterWholeRepository)
	}
	return cmp.Or(r.Base.loader.named, string(configuration.AdapterWholeRepository))
}

// WholeVersions is δ of a change whose targets are not known, or are too many to be written.
func (r *Result) WholeVersions() []*eventsv1.TargetVersion {
	var versions []*eventsv1.TargetVersion
	seen := map[string]bool{r.Base.Tree: true}
	for i, part := range r.Parts {
		if !seen[part.Tree] {
			seen[part.Tree] = true
			versions = append(versions, part.Version(targets.Repository, uint32(i+1)))
		}
	}
	return versions
}
