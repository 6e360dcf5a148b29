package analyzer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/agenda"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// Bounds of the texts in an event.
const (
	maxReasons = 20
	maxReason  = 2000
	maxPaths   = 20
)

// errNoMirror: the repository's mirror cannot be opened; trying again may help.
var errNoMirror = errors.New("the mirror of the repository cannot be opened")

// analyze carries out one task. An error is never about the change; see isFinal for what follows.
func (a *Analyzer) analyze(ctx context.Context, q *queue, task agenda.Task, peers []peer) (_ proto.Message, err error) {
	defer buildgraph.Recovered(&err)
	if task.IsSurvey() && task.First && q.settings.Base.Prove == configuration.ProveWhenNeeded {
		return &eventsv1.MainlineSurveyed{Commit: task.Base, Reading: task.Reading}, nil // nothing is to be proven of it
	}
	repo, err := a.Repo(ctx, q.settings.Repository)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoMirror, err)
	}
	x := &examination{queue: q, repo: repo, started: time.Now(), log: a.Logger.With("queue", q.settings.Name)}
	var fact proto.Message
	switch {
	case task.Push != nil:
		fact, err = x.push(ctx, task.Push)
	case task.IsSurvey():
		fact, err = x.survey(ctx, task)
	default:
		fact, err = x.change(ctx, task, peers)
	}
	if err != nil {
		return nil, err
	}
	if size := proto.Size(fact); size > maxFactBytes {
		return unknown(task, x.started, fmt.Errorf("what it affects takes %d bytes, at most %d can be written", size, maxFactBytes)), nil
	}
	return fact, nil
}

// examination carries out one task in the repository.
type examination struct {
	*queue
	repo    *gitrepo.Repo
	started time.Time
	log     *slog.Logger
}

// fetch brings commits of the mainline into the mirror, then those of changes.
func (x *examination) fetch(ctx context.Context, mainline string, changes ...string) error {
	var err error
	if mainline != "" {
		err = x.repo.Fetch(ctx, gitrepo.Wanted{Commits: []string{mainline}})
	}
	if err == nil && len(changes) > 0 {
		err = x.repo.Fetch(ctx, gitrepo.Wanted{Commits: changes, Change: true})
	}
	if err != nil {
		return fmt.Errorf("fetch the commits to analyse: %w", err)
	}
	return nil
}

// change analyses a change on the head of the mainline.
func (x *examination) change(ctx context.Context, task agenda.Task, peers []peer) (*eventsv1.ChangeAnalyzed, error) {
	picks := landing.PicksOf(task.Change.Admission.LandingCommits)
	if err := x.fetch(ctx, task.Base, commitsOf(picks)...); err != nil {
		return nil, err
	}
	analysis, err := buildgraph.Contain(ctx, x.settings.Analysis.Timeout, func(ctx context.Context) (*buildgraph.Result, error) {
		return buildgraph.Analyze(ctx, x.loader, x.repo, task.Base, picks)
	})
	if err != nil {
		return nil, err
	}
	fact := &eventsv1.ChangeAnalyzed{
		Change: task.Change.Ref(), Base: task.Base, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
	}
	switch {
	case analysis.Conflict != nil:
		fact.Outcome = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE
		fact.Message = clip(fmt.Sprintf("%s does not merge with the mainline at %.12s: %s",
			whichPart(analysis.Conflict.Pick, len(picks)), task.Base, analysis.Conflict), maxReason)
		fact.ConflictingPaths = conflictingPaths(analysis.Conflict)
	case analysis.Invalid != nil:
		fact.Outcome = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID
		fact.Message = clip(fmt.Sprintf("%s makes target definitions that are not valid:\n%s",
			whichPart(analysis.InvalidPart-1, len(picks)), analysis.Invalid), maxReason)
	default:
		fact.Affected = affectedOf(analysis)
		if analysis.All {
			fact.Message = analysis.Affected().Reasons[0]
		}
	}
	// What follows is for people, models and the order of builds. Where it cannot be had in time the
	// analysis stands without it.
	extras, err := buildgraph.Contain(ctx, x.settings.Analysis.Timeout, func(ctx context.Context) (*extras, error) {
		return x.extras(ctx, task, peers, fact.Outcome)
	})
	if err != nil && !errors.Is(err, buildgraph.ErrContained) {
		return nil, err
	}
	if err != nil {
		x.log.Warn("an analysis is written without paths and line counts", "change", task.Change.ID(), "error", err)
	} else {
		fact.Textual = extras.textual
		fact.FilesChanged, fact.LinesAdded, fact.LinesDeleted, fact.Difference = extras.files, extras.added, extras.deleted, extras.difference
	}
	fact.StartedUs, fact.FinishedUs = x.started.UnixMicro(), time.Now().UnixMicro()
	return fact, nil
}

// push analyses one direct push (M23a).
func (x *examination) push(ctx context.Context, push *agenda.Push) (*eventsv1.MainlineAnalyzed, error) {
	fact := &eventsv1.MainlineAnalyzed{From: push.From, To: push.To}
	if err := x.fetch(ctx, push.To); err != nil {
		return nil, err
	}
	tree, err := x.repo.TreeOf(ctx, push.To)
	if err != nil {
		return nil, err
	}
	wholly := func(why string) (*eventsv1.MainlineAnalyzed, error) {
		version, err := buildgraph.Contain(ctx, x.settings.Analysis.Timeout, func(ctx context.Context) (*eventsv1.TargetVersion, error) {
			part, _, err := x.loader.Part(ctx, x.repo, tree)
			if err != nil {
				return nil, err
			}
			return part.Version(wholeRepository, 1), nil
		})
		if err != nil {
			return nil, err
		}
		fact.Affected, fact.Message = everything(why), clip(why, maxReason)
		fact.Affected.Targets = []*eventsv1.TargetVersion{version}
		return fact, nil
	}
	if push.Forced {
		return wholly(fmt.Sprintf("the mainline was rewritten: %.12s is no ancestor of %.12s", push.From, push.To))
	}
	if err := x.fetch(ctx, push.From); err != nil {
		return nil, err
	}
	from, err := x.repo.TreeOf(ctx, push.From)
	if err != nil {
		return nil, err
	}
	analysis, err := buildgraph.Contain(ctx, x.settings.Analysis.Timeout, func(ctx context.Context) (*buildgraph.Result, error) {
		return buildgraph.Compare(ctx, x.loader, x.repo, from, []string{tree})
	})
	switch {
	case err != nil:
		return nil, err
	case analysis.Invalid != nil:
		return wholly("the push makes target definitions that are not valid:\n" + analysis.Invalid.Message)
	}
	fact.Affected = affectedOf(analysis)
	if analysis.All {
		fact.Message = fact.Affected.Reasons[0]
	}
	return fact, nil
}

// survey names the targets of a head (M23b).
func (x *examination) survey(ctx context.Context, task agenda.Task) (*eventsv1.MainlineSurveyed, error) {
	fact := &eventsv1.MainlineSurveyed{Commit: task.Base, Reading: task.Reading, Again: !task.First}
	if err := x.fetch(ctx, task.Base); err != nil {
		return nil, err
	}
	tree, err := x.repo.TreeOf(ctx, task.Base)
	if err != nil {
		return nil, err
	}
	part, err := buildgraph.Contain(ctx, x.settings.Analysis.Timeout, func(ctx context.Context) (buildgraph.Part, error) {
		part, _, err := x.loader.Part(ctx, x.repo, tree)
		return part, err
	})
	if err != nil {
		return nil, err
	}
	if unknown := part.Graph.Unknown(); len(unknown) > 0 {
		fact.Message = clip(unknown[0], maxReason)
		return fact, nil
	}
	fact.Whole = part.Version(targets.Repository, 0)
	for t := range part.Graph.Targets() {
		if !buildgraph.IsTrivial(t) {
			fact.Targets = append(fact.Targets, &eventsv1.TargetVersion{Target: t.Name, Hash: t.Hash.String()})
		}
	}
	return fact, nil
}

// everything returns the affected set of what cannot be analysed (M4).
func everything(reason string) *eventsv1.Affected {
	return &eventsv1.Affected{All: true, Reasons: []string{clip(reason, maxReason)}}
}

// affectedOf returns the affected set of an analysis, with its texts clipped.
func affectedOf(analysis *buildgraph.Result) *eventsv1.Affected {
	affected := analysis.Affected()
	affected.Reasons = nil
	for _, reason := range analysis.Reasons[:min(len(analysis.Reasons), maxReasons)] {
		affected.Reasons = append(affected.Reasons, clip(reason, maxReason))
	}
	return affected
}

func commitsOf(picks []landing.Pick) []string {
	commits := make([]string, 0, 2*len(picks))
	for _, p := range picks {
		commits = append(commits, p.Base, p.Head)
	}
	return commits
}

func whichPart(index, count int) string {
	if count == 1 {
		return "the change"
	}
	return fmt.Sprintf("landing commit %d of %d", index+1, count)
}

// clip bounds a text and makes it valid UTF-8, which Protobuf insists on and paths do not promise.
func clip(text string, bytes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= bytes {
		return text
	}
	cut := bytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
