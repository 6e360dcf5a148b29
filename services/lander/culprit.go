package lander

import (
	"context"
	"fmt"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// maxCulprits bounds how far back the other side of a merge conflict is looked for, and maxCulpritMerges how many merges are tried for it.
const (
	maxCulprits      = 200
	maxCulpritMerges = 20
)

// conflictReason names the files that do not merge, and the change on the mainline that they do not merge with, so that the
// author need not search for it. Not finding that change is no error.
func (b *Branch) conflictReason(ctx context.Context, base string, picks []landing.Pick, conflict *landing.Conflict) *eventsv1.Reason {
	paths := conflict.Paths
	places := slices.Clone(paths[:min(len(paths), 5)])
	for i, line := range conflict.Lines[:min(len(conflict.Lines), len(places))] {
		if line > 0 {
			places[i] += fmt.Sprintf(":%d", line)
		}
	}
	shown := strings.Join(places, ", ")
	if len(paths) > 5 {
		shown += fmt.Sprintf(" and %d more", len(paths)-5)
	}
	r := &eventsv1.Reason{
		Class:   eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT,
		Message: fmt.Sprintf("it does not merge with the mainline as it is: %s", strings.ToValidUTF8(shown, "�")),
	}
	if len(paths) == 0 { // git cannot merge it whatever it meets
		r.Message = oneLine("it does not merge: " + conflict.String())
		return r
	}
	if commit, change := b.culprit(ctx, base, picks, paths); commit != "" {
		r.Other = change
		if change == "" {
			r.Message += fmt.Sprintf(" was changed by %.12s, which came past the queue", commit)
		} else {
			r.Message += fmt.Sprintf(" was changed by %s, landed as %.12s", change, commit)
		}
	}
	return r
}

// culprit returns the commit of the mainline with which a change ceased to merge in some paths, and the change that it lands, by its
// trailer. The name is for people: nothing is decided by a trailer.
func (b *Branch) culprit(ctx context.Context, head string, picks []landing.Pick, paths []string) (commit, change string) {
	ids, err := b.Repo.FirstParents(ctx, picks[0].Base, head, maxCulprits)
	if err != nil {
		if ids, err = b.Repo.FirstParents(ctx, "", head, maxCulprits); err != nil {
			return "", ""
		}
	}
	commits, err := b.Repo.CommitInfos(ctx, ids)
	if err != nil {
		return "", ""
	}
	tried := 0
	for _, c := range slices.Backward(commits) {
		if len(c.Parents) == 0 {
			continue
		}
		changed, err := b.Repo.DiffTrees(ctx, c.Parents[0], c.ID)
		if err != nil {
			return "", ""
		}
		if !slices.ContainsFunc(changed, func(x gitrepo.Changed) bool { return slices.Contains(paths, x.Path) }) {
			continue
		}
		commit, change = c.ID, trailer(c.Message, "Landfall-Change: ")
		if tried++; tried == maxCulpritMerges || b.mergesOn(ctx, c.Parents[0], picks, paths) {
			break
		}
	}
	return commit, change
}

// mergesOn reports whether a change merges in some paths on a commit, as far as that is known.
func (b *Branch) mergesOn(ctx context.Context, commit string, picks []landing.Pick, paths []string) bool {
	tree, err := b.Repo.TreeOf(ctx, commit)
	if err != nil {
		return false
	}
	_, conflict, err := landing.ApplyTree(ctx, b.Repo, tree, picks)
	return err == nil && (conflict == nil || !slices.ContainsFunc(conflict.Paths, func(path string) bool { return slices.Contains(paths, path) }))
}

func trailer(message, key string) string {
	for line := range strings.Lines(message) {
		if v, ok := strings.CutPrefix(line, key); ok {
			return strings.ToValidUTF8(strings.TrimSpace(v), "�")
		}
	}
	return ""
}
