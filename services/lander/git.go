package lander

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/guard"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// maxForeign bounds the commits past the queue that get a MainlineMoved each. More of them become one MainlineMoved of a
// rewritten mainline, which affects everything.
const maxForeign = 1000

// Branch is a mainline in git.
type Branch struct {
	Queue  string
	Name   string
	Repo   *gitrepo.Repo
	Graphs *buildgraph.Loader
	// Timeout bounds the making of T. It is that of an analysis.
	Timeout time.Duration
	// Mainlines are branches that queues land on. No review moves one.
	Mainlines []string
	// HeadPatience is how long the host is waited for until it shows the head of a review where it was moved; 0 for ten seconds.
	HeadPatience time.Duration

	// late: the host did not show a review's head in time when it was waited for last.
	late atomic.Bool
}

// Head asks the remote itself, and fetches its head if the mirror lacks it.
func (b *Branch) Head(ctx context.Context) (string, error) {
	head, err := b.Repo.RemoteHead(ctx, b.Name)
	if errors.Is(err, gitrepo.ErrNoBranch) {
		return "", fmt.Errorf("%w (%v)", ErrNoBranch, err)
	}
	if err != nil {
		return "", err
	}
	if _, err := b.Repo.CommitInfo(ctx, head); err == nil {
		return head, nil
	}
	return head, b.Repo.Fetch(ctx, gitrepo.Wanted{Branches: []string{b.Name}, Commits: []string{head}})
}

// Between lists what came past the queue, by first parents.
func (b *Branch) Between(ctx context.Context, from, to string) ([]Move, bool, error) {
	ids, err := b.Repo.FirstParents(ctx, from, to, maxForeign)
	if errors.Is(err, gitrepo.ErrNotFirstParent) || errors.Is(err, gitrepo.ErrTooLarge) || errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	commits, err := b.Repo.CommitInfos(ctx, ids)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	moves := make([]Move, 0, len(commits))
	for _, c := range commits {
		title, _, _ := strings.Cut(c.Message, "\n")
		moves = append(moves, Move{Commit: c.ID, Author: printable(fmt.Sprintf("%s <%s>", c.AuthorName, c.AuthorEmail)), Title: printable(title)})
	}
	return moves, false, nil
}

// maxPrintable bounds what a commit that came past the queue says of itself, in bytes. Nobody has checked it before.
const maxPrintable = 300

// printable returns a text of a commit as one line that can be printed anywhere.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "�"))
	if text = strings.Join(strings.Fields(text), " "); len(text) > maxPrintable {
		text = strings.ToValidUTF8(text[:maxPrintable-len("…")], "") + "…"
	}
	return text
}

// Contains reports whether commit is head or an ancestor of it. Head has seen to it that the mirror has all of head.
func (b *Branch) Contains(ctx context.Context, head, commit string) (bool, error) {
	if _, err := b.Repo.CommitInfo(ctx, commit); errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return false, nil
	}
	return b.Repo.IsAncestor(ctx, commit, head)
}

// Push implements Mainline: the compare-and-swap of M22.
func (b *Branch) Push(ctx context.Context, base, commit string) error {
	if _, err := b.Repo.CommitInfo(ctx, commit); errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return fmt.Errorf("%w: %v", ErrUnknownCommit, err)
	}
	err := b.Repo.Push(ctx, b.Name, base, commit)
	if errors.Is(err, gitrepo.ErrMoved) {
		return fmt.Errorf("%w: %v", ErrMoved, err)
	}
	if refused, is := errors.AsType[*gitrepo.RefusedError](err); is {
		return &PushRefusal{Sentence: refused.Sentence, Everybody: refused.Everybody, Err: err}
	}
	return err
}

// PushNothing implements Mainline.
func (b *Branch) PushNothing(ctx context.Context, base string, stampUS int64) error {
	commit, err := landing.Nothing(ctx, b.Repo, base, dateOf(stampUS), nothingText)
	if err != nil {
		return err
	}
	return b.Push(ctx, base, commit)
}

// nothingText is the message of a commit that PushNothing makes.
const nothingText = "Change nothing\n\nThe remote refuses a change of which an earlier push got no answer. Behind this commit\nthat push cannot arrive any more."

// maxVersionBytes bounds what T makes of the targets, so that the records that name it once or twice can be written. A T of
// more is verified as a whole (M4).
const maxVersionBytes = 12 << 20

// Make makes T, each landing commit, and δ(M, T) from T itself.
func (b *Branch) Make(ctx context.Context, base string, a *eventsv1.Admission, stampUS int64, quarantined []string) (*Landing, error) {
	picks := landing.PicksOf(a.LandingCommits)
	if err := b.fetch(ctx, picks); errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return nil, fmt.Errorf("%w (%v)", ErrGone, err)
	} else if err != nil {
		return nil, err
	}
	made, err := buildgraph.Contain(ctx, b.Timeout, func(ctx context.Context) (*Landing, error) {
		return b.makeOf(ctx, base, picks, a, stampUS, quarantined)
	})
	if err != nil && ctx.Err() == nil && !gitrepo.DiskFull(err) && b.makesCommits(ctx, base) {
		err = fmt.Errorf("%w: %w", ErrUnmakeable, err)
	}
	return made, err
}

// makesCommits reports whether commits can be made on base here at all. If they can, what fails concerns the change alone.
func (b *Branch) makesCommits(ctx context.Context, base string) bool {
	_, err := buildgraph.Contain(ctx, b.Timeout, func(ctx context.Context) (string, error) {
		tree, err := b.Repo.TreeOf(ctx, base)
		if err != nil {
			return "", err
		}
		if _, _, err := b.Graphs.Part(ctx, b.Repo, tree); err != nil {
			return "", err
		}
		if _, err := b.Repo.Commits(ctx, base, base); err != nil { // git itself can be run
			return "", err
		}
		return landing.Nothing(ctx, b.Repo, base, "0 +0000", "try")
	})
	return err == nil
}

// makeOf is Make once the mirror has the change.
func (b *Branch) makeOf(ctx context.Context, base string, picks []landing.Pick, a *eventsv1.Admission, stampUS int64, quarantined []string) (*Landing, error) {
	studied, err := buildgraph.Analyze(ctx, b.Graphs, b.Repo, base, picks)
	if err != nil {
		return nil, err
	}
	switch {
	case studied.Conflict != nil:
		return obstacle(b.conflictReason(ctx, base, picks, studied.Conflict)), nil
	case studied.Invalid != nil:
		return obstacle(&eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_INVALID, Message: studied.Invalid.Error()}), nil
	}
	versions, deleted := bounded(studied)
	tolerated := among(quarantined, versions)
	landed, conflict, err := landing.Commits(ctx, b.Repo, base, picks, landing.Meta{
		Change: a.Change, Revision: int64(a.Revision), Queue: b.Queue, Date: dateOf(stampUS), Title: a.Title, Body: a.Description,
		Quarantined: tolerated,
	})
	if err != nil {
		return nil, err
	}
	if conflict != nil {
		return nil, fmt.Errorf("the same picks merged a moment ago: %v", conflict.Paths)
	}
	return &Landing{
		Commits: landed.Commits, Tree: landed.Trees[len(landed.Trees)-1], Deleted: deleted, Quarantined: tolerated,
		Candidate: guard.Candidate{Versions: versions, Base: studied.BaseVersions(versions)},
	}, nil
}

// among returns the targets of δ with one of the names, sorted.
func among(names []string, versions []*eventsv1.TargetVersion) []string {
	if len(names) == 0 {
		return nil
	}
	patterns := targets.NewNamePatterns(names)
	var list []string
	for _, v := range versions {
		if patterns.Has(v.Target) {
			list = append(list, v.Target)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// bounded returns δ and the deleted targets, or the whole repository if they are too many to be written.
func bounded(studied *buildgraph.Result) (versions []*eventsv1.TargetVersion, deleted []string) {
	if proto.Size(&eventsv1.Affected{Targets: studied.Targets, Deleted: studied.Deleted}) > maxVersionBytes {
		return studied.WholeVersions(), nil
	}
	return studied.Targets, studied.Deleted
}

// dateOf is a stamp as git writes it.
func dateOf(stampUS int64) string { return fmt.Sprintf("%d +0000", time.UnixMicro(stampUS).Unix()) }

func obstacle(r *eventsv1.Reason) *Landing {
	return &Landing{Candidate: guard.Candidate{Obstacle: r}}
}

// fetch brings what the mirror lacks of a change.
func (b *Branch) fetch(ctx context.Context, picks []landing.Pick) error {
	var missing []string
	for _, p := range picks {
		for _, id := range []string{p.Head, p.Base} {
			if _, err := b.Repo.CommitInfo(ctx, id); err != nil {
				missing = append(missing, id)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return b.Repo.Fetch(ctx, gitrepo.Wanted{Commits: missing, Change: true})
}
