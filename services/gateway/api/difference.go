package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/services/gateway/view"
)

var (
	// ErrUnreachable is returned by a Differ where the repository does not answer.
	ErrUnreachable = errors.New("the repository cannot be reached")
	// ErrCommitsGone is returned by a Differ where the repository does not give out a revision's commits any more.
	ErrCommitsGone = errors.New("the commits are gone")
	// ErrFetching is returned by a Differ where git takes long to fetch a revision's commits, or too long.
	ErrFetching = errors.New("git takes long to fetch the commits")
)

// Differ compares revisions. Its methods are safe for concurrent use.
type Differ interface {
	// Differ returns what a queue's change differs in between two of its revisions, in at most maxBytes. Its errors are ErrUnknownQueue,
	// ErrUnanswered, ErrUnreachable, ErrCommitsGone and ErrFetching.
	Differ(ctx context.Context, queue string, from, to view.Revision, maxBytes int) (Patch, error)
}

// Patch is the difference of two revisions as git shows it.
type Patch struct {
	Text []byte
	// Cut reports whether there is more.
	Cut bool
	// WithMainline reports whether what the mainline changed between their bases is in it: the older revision does not merge with the
	// base of the newer one.
	WithMainline bool
}

// Bounds of a difference.
const (
	maxDifference  = 256 << 10
	differenceWait = 30 * time.Second
)

// Difference is what a change differs in between two of its revisions.
type Difference struct {
	Queue  string        `json:"queue"`
	Change string        `json:"change"`
	From   view.Revision `json:"from"`
	To     view.Revision `json:"to"`
	// Text is a patch as git writes it, at most 256 KiB; "" if the two are the same. Of files that are no text it has the names alone.
	Text string `json:"text"`
	// Cut reports whether the patch goes on.
	Cut bool `json:"cut,omitempty"`
	// WithMainline reports whether what the mainline changed between their bases is in it: the older revision does not merge with the
	// base of the newer one. Else the older revision was put on that base first.
	WithMainline bool `json:"with_mainline,omitempty"`
}

func (h *handler) serveDifference(w http.ResponseWriter, r *http.Request) {
	queue, change := r.PathValue("queue"), r.PathValue("change")
	var list []view.Revision
	err := h.read(r, func(q *view.Queue) { list = q.Revisions(change) })
	if err == nil && len(list) == 0 {
		err = unknownChange(queue, change)
	}
	var from, to view.Revision
	if err == nil {
		to = list[len(list)-1]
		from = list[max(0, len(list)-2)]
		if err = chooseRevision(r, "to", list, &to); err == nil {
			if at := slices.IndexFunc(list, func(v view.Revision) bool { return v.Revision == to.Revision }); at >= 0 {
				from = list[max(0, at-1)]
			}
			err = chooseRevision(r, "from", list, &from)
		}
	}
	if err == nil && h.Differ == nil {
		err = fail(http.StatusNotFound, codeNotFound, "This gateway has no repository.", "Ask the one of the deployment.")
	}
	var patch Patch
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), differenceWait)
		defer cancel()
		patch, err = h.Differ.Differ(ctx, queue, from, to, maxDifference)
		switch {
		case errors.Is(err, ErrCommitsGone):
			err = fail(http.StatusNotFound, string(admission.NoSuchCommit), fmt.Sprintf("The repository does not give out the commits of the revisions %d and %d any more.", from.Revision, to.Revision),
				"Compare them in a clone that has them: git range-diff.")
		case errors.Is(err, ErrFetching):
			err = fail(http.StatusServiceUnavailable, string(admission.RepositoryUnreachable), fmt.Sprintf("Git takes long to fetch the commits of the revisions %d and %d.", from.Revision, to.Revision),
				"Ask again in some minutes, or compare them in a clone that has them: git range-diff.")
		case errors.Is(err, ErrUnreachable), ctx.Err() != nil && r.Context().Err() == nil:
			h.Log.Warn("revisions could not be compared", "queue", queue, "change", change, "error", err)
			err = fail(http.StatusServiceUnavailable, string(admission.RepositoryUnreachable), "The repository did not answer in time.", "Ask again.")
		}
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	text := patch.Text
	if patch.Cut { // whole lines alone
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	writeJSON(w, http.StatusOK, Difference{
		Queue: queue, Change: change, From: from, To: to, Text: strings.ToValidUTF8(string(text), "\uFFFD"), Cut: patch.Cut, WithMainline: patch.WithMainline,
	})
}

// chooseRevision sets a revision to that which a parameter names, if it is given.
func chooseRevision(r *http.Request, name string, list []view.Revision, to *view.Revision) error {
	text := r.URL.Query().Get(name)
	if text == "" {
		return nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	at := slices.IndexFunc(list, func(v view.Revision) bool { return v.Revision == number })
	if err != nil || at < 0 {
		return fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%s=%q is no revision that is kept of the change.", name, clipText(text, 20)),
			fmt.Sprintf("These are: %d to %d.", list[0].Revision, list[len(list)-1].Revision))
	}
	*to = list[at]
	return nil
}
