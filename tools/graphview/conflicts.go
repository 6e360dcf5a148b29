package graphview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"landfall.build/engine/affected"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/landing"
)

// maxChanges limits one comparison: every pair of changes is compared.
const maxChanges = 1000

// Matrix is what `landfall conflicts --json` prints. Every two changes are in one of its lists, but for
// those with a change that is refused.
type Matrix struct {
	Conflicts []Pair `json:"conflicts"`
	// Independent are pairs that may land without a build of both.
	Independent [][]string `json:"independent"`
	// Hubs are the pairs among the independent ones that would be in conflict if the queue had no hubs; absent
	// if there are none.
	Hubs []HubPair `json:"hubs,omitempty"`
	// Refused are changes that cannot land on the base, whatever else does; absent if there are none.
	Refused []Refusal `json:"refused,omitempty"`
}

// Pair is two changes whose order or joint presence can matter.
type Pair struct {
	// A and B are as they were named, A the one given first.
	A string `json:"a"`
	B string `json:"b"`
	// Targets are those that both add, alter or delete.
	Targets []string `json:"targets"`
	// Why is the same in words, or which edge of one leads to what the other touches.
	Why string `json:"why"`
}

// HubPair is two changes that meet in hubs and in nothing else.
type HubPair struct {
	A string `json:"a"`
	B string `json:"b"`
	// Targets are the hubs that both add, alter or delete.
	Targets []string `json:"targets"`
}

// Refusal is a change that a queue would refuse.
type Refusal struct {
	Change string `json:"change"`
	Why    string `json:"why"`
}

// proposal is one change on the base.
type proposal struct {
	name      string
	picks     []landing.Pick
	study     *buildgraph.Result
	footprint targets.Footprint
	set       *targets.Set
	touched   pathSet
	refused   string
}

// compare studies changes on a base and tests every two of them.
func (v *view) compare(ctx context.Context, base string, names []string) (*Matrix, error) {
	if len(names) > maxChanges {
		return nil, fmt.Errorf("%d changes, at most %d can be compared at once", len(names), maxChanges)
	}
	proposals := make([]*proposal, len(names))
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("change %s is given twice", name)
		}
		head, err := v.commit(ctx, name)
		if err != nil {
			return nil, err
		}
		proposals[i] = &proposal{name: name}
		proposals[i].picks, err = landing.Expand(ctx, v.Repo, cmp.Or(v.settings.Strategy, landing.Squash), base, []string{head})
		if proposals[i].refused = whyNot(err); err != nil && proposals[i].refused == "" {
			return nil, v.hinted(ctx, fmt.Errorf("change %s: %w", name, err))
		}
	}
	onto, err := v.TreeOf(ctx, base)
	if err != nil {
		return nil, err
	}
	if err := v.studyAll(ctx, onto, proposals); err != nil {
		return nil, err
	}
	hubs := targets.NewHubs(v.settings.Analysis.Hubs)
	numbers := targets.NewNames(hubs)
	for _, p := range proposals {
		p.set = numbers.Prepare(p.footprint)
	}
	return v.pairUp(ctx, onto, proposals, hubs)
}

// whyNot returns why a change cannot land; "" if the error is of something else.
func whyNot(err error) string {
	for _, known := range []struct {
		cause  error
		advice string
	}{
		{landing.ErrAlreadyIn, "there is nothing to land"},
		{landing.ErrEmpty, "there is nothing to land"},
		{landing.ErrNoCommonBase, "start it from the mainline"},
		{landing.ErrMergeCommit, "rebase it, so that it is one line of commits"},
		{landing.ErrTooMany, "land it in several changes"},
	} {
		if errors.Is(err, known.cause) {
			return known.cause.Error() + "; " + known.advice
		}
	}
	return ""
}

// studyAll analyses the changes, several at a time.
func (v *view) studyAll(ctx context.Context, onto string, proposals []*proposal) error {
	v.progress.Begin("changes analysed", len(proposals)) // those that are refused at once among them
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *proposal)
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(proposals)) {
		all.Go(func() {
			for p := range next {
				if err := v.study(ctx, onto, p); err != nil {
					cancel(fmt.Errorf("change %s: %w", p.name, err))
				}
				v.progress.Step()
			}
		})
	}
	for _, p := range proposals {
		if ctx.Err() != nil {
			break
		}
		if p.refused == "" {
			next <- p
		}
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

func (v *view) study(ctx context.Context, onto string, p *proposal) error {
	study, err := buildgraph.Analyze(ctx, v.loader, v.Repo, onto, p.picks)
	if err != nil {
		return err
	}
	p.study = study
	switch {
	case study.Conflict != nil:
		p.refused = "it does not merge with the base: " + study.Conflict.String()
	case study.Invalid != nil:
		p.refused = "it makes target definitions that are not valid: " + study.Invalid.Message
	default:
		p.footprint = affected.Footprint(study.Affected())
		p.touched, err = v.pathsOf(ctx, p.picks)
	}
	return err
}

// pairUp tests every two changes.
func (v *view) pairUp(ctx context.Context, onto string, proposals []*proposal, hubs *targets.Hubs) (*Matrix, error) {
	m := &Matrix{Conflicts: []Pair{}, Independent: [][]string{}}
	var sound []*proposal
	for _, p := range proposals {
		if p.refused != "" {
			m.Refused = append(m.Refused, Refusal{p.name, p.refused})
		} else {
			sound = append(sound, p)
		}
	}
	v.progress.Begin("pairs compared", len(sound)*(len(sound)-1)/2)
	for i, a := range sound {
		for _, b := range sound[i+1:] {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			pair, met, err := v.pair(ctx, onto, a, b, hubs)
			switch {
			case err != nil:
				return nil, fmt.Errorf("changes %s and %s: %w", a.name, b.name, err)
			case pair != nil:
				m.Conflicts = append(m.Conflicts, *pair)
			default:
				m.Independent = append(m.Independent, []string{a.name, b.name})
				if len(met) > 0 {
					m.Hubs = append(m.Hubs, HubPair{a.name, b.name, met})
				}
			}
			v.progress.Step()
		}
	}
	return m, nil
}

// mergeBoth returns why git does not make one tree of two changes, whichever lands first; "" if it does.
func (v *view) mergeBoth(ctx context.Context, onto string, a, b *proposal) (string, error) {
	clash, err := landing.ApplyBoth(ctx, v.Repo, onto, a.picks, b.picks)
	switch {
	case err != nil || clash == nil:
		return "", err
	case clash.Conflict == nil:
		return fmt.Sprintf("%s after %s gives another tree than %s after %s", b.name, a.name, a.name, b.name), nil
	case clash.Behind == 0:
		a, b = b, a
	}
	return fmt.Sprintf("%s does not merge after %s: %s", b.name, a.name, clash.Conflict), nil
}

// pair tests two changes; nil if they are independent, with the hubs in which they meet all the same.
func (v *view) pair(ctx context.Context, onto string, a, b *proposal, hubs *targets.Hubs) (*Pair, []string, error) {
	var reasons []string
	pair := &Pair{A: a.name, B: b.name, Targets: []string{}}
	if a.set.Conflicts(b.set) {
		why := a.footprint.Meets(b.footprint, hubs)
		if !why.All {
			pair.Targets = append(pair.Targets, why.Targets...)
		}
		reasons = append(reasons, reasonsOf(a, b, why)...)
	}
	if a.touched.meets(b.touched) {
		reason, err := v.mergeBoth(ctx, onto, a, b)
		if err != nil {
			return nil, nil, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		why := a.footprint.Meets(b.footprint, hubs)
		if why.Conflict() {
			return nil, nil, errors.New("the prepared sets say independent, the definition conflicting; this is a fault of the program")
		}
		return nil, why.Hubs, nil
	}
	pair.Why = strings.Join(reasons, "; ")
	return pair, nil, nil
}
