// Package pinning asks git what a land request's entries are: exact commits, and the landing commits
// that the queue's strategy makes of them.
//
// A request by commits that the mirror has already, and that begins on a part of the mainline that is
// known, costs no git process and no word to the remote: only reads from a running git cat-file. The remote
// is asked for the refs of many requests at once.
package pinning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"landfall.build/engine/admission"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// Mirror is what a Pinner needs of a git mirror; *gitrepo.Repo is one.
type Mirror interface {
	landing.Repository
	// Fetch brings branches and commits of the remote into the mirror.
	Fetch(ctx context.Context, wanted gitrepo.Wanted) error
	// FetchSome is Fetch of what the remote has, and returns what it lacks, or takes long.
	FetchSome(ctx context.Context, wanted gitrepo.Wanted) (gitrepo.Missing, error)
	// RemoteRefs asks the remote for the commits at refs, by their full names; it leaves out those that it lacks.
	RemoteRefs(ctx context.Context, refs []string) (map[string]string, error)
	// Resolve returns the commit that a name denotes in the mirror.
	Resolve(ctx context.Context, name string) (string, error)
	// DiffTrees lists the paths at which two commits differ; Holds reports whether a commit has these contents at all of them.
	DiffTrees(ctx context.Context, a, b string) ([]gitrepo.Changed, error)
	Holds(ctx context.Context, commit string, changes []gitrepo.Changed) (bool, error)
	// FirstParents lists the mainline after from up to to.
	FirstParents(ctx context.Context, from, to string, limit int) ([]string, error)
}

// ErrUnreachable is returned when the remote does not answer, or git fails for a reason that is not the
// request's. Asking again may help.
var ErrUnreachable = errors.New("the repository cannot be reached")

// Pinner pins the requests of one queue. It may be used by several goroutines.
type Pinner struct {
	mirror   Mirror
	branch   string
	strategy landing.Strategy
	mainline mainline
	costly   costly
}

// New is for a queue that lands on a branch with a strategy.
func New(mirror Mirror, branch string, strategy landing.Strategy) *Pinner {
	return &Pinner{mirror: mirror, branch: branch, strategy: strategy}
}

// Sight is where the remote had refs at one moment, or the error of asking it, and which commits it lacked.
type Sight struct {
	at      map[string]string
	err     error
	missing gitrepo.Missing
	// whose has by names the authors of requests for them.
	whose map[string][]string
}

// Err returns why the remote did not answer; nil if it did.
func (s Sight) Err() error { return s.err }

// By notes by whom entries are, if that is known: who has much that takes git long to fetch is the one to wait.
func (s *Sight) By(author string, entries []*eventsv1.Entry) {
	if author == "" {
		return
	}
	if s.whose == nil {
		s.whose = map[string][]string{}
	}
	for _, e := range entries {
		names := []string{e.Commit}
		if e.Ref != "" {
			names = namesOf(e.Ref)
		}
		for _, name := range names {
			if !slices.Contains(s.whose[name], author) {
				s.whose[name] = append(s.whose[name], author)
			}
		}
	}
}

// Look asks the remote where all refs of some requests' entries are, at once. It asks nothing if there are none.
func (p *Pinner) Look(ctx context.Context, requests ...[]*eventsv1.Entry) Sight {
	wanted := map[string]bool{}
	for _, entries := range requests {
		for _, e := range entries {
			if e.Ref != "" {
				for _, name := range namesOf(e.Ref) {
					wanted[name] = true
				}
			}
		}
	}
	if len(wanted) == 0 {
		return Sight{}
	}
	at, err := p.mirror.RemoteRefs(ctx, slices.Sorted(maps.Keys(wanted)))
	return Sight{at: at, err: err}
}

// Fetch brings the commits of requests that name no ref into the mirror, all at once. The result is the sight with those that
// the remote lacks; an error is ErrUnreachable or the context's. head is as for Pin.
func (p *Pinner) Fetch(ctx context.Context, head string, sight Sight, requests ...[]*eventsv1.Entry) (Sight, error) {
	wanted := gitrepo.Wanted{Change: true, Whose: sight.whose}
	for _, entries := range requests {
		for _, e := range entries {
			if e.Ref == "" && p.costly.of(e.Commit) == nil {
				wanted.Commits = append(wanted.Commits, e.Commit)
			}
		}
	}
	if len(wanted.Commits) == 0 {
		return sight, nil
	}
	_, err := p.mainline.current(ctx, p.mirror, p.branch, head) // What changes bring is fetched on top of it, within bounds.
	if err == nil {
		sight.missing, err = p.mirror.FetchSome(ctx, wanted)
	}
	if err != nil {
		return sight, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return sight, nil
}

// Pin returns the commits of entries that admission.Complete has passed. What is wrong with them is in the
// result's Problem; an error is ErrUnreachable, gitrepo.ErrSlow or the context's. head is the mainline's head as the log
// has it, "" if it has none yet; sight is that of a Look at these entries.
func (p *Pinner) Pin(ctx context.Context, entries []*eventsv1.Entry, head string, sight Sight) (admission.Pinned, error) {
	pinned, err := p.pin(ctx, p.mirror, entries, head, sight)
	var refusal *admission.Refusal
	switch {
	case err == nil:
		return pinned, nil
	case errors.As(err, &refusal):
		return admission.Pinned{Problem: refusal}, nil
	case ctx.Err() != nil:
		return admission.Pinned{}, context.Cause(ctx)
	case errors.Is(err, gitrepo.ErrSlow):
		return admission.Pinned{}, err
	}
	return admission.Pinned{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// PinNear is Pin without a word to the remote; false if there is no answer without it.
func (p *Pinner) PinNear(ctx context.Context, entries []*eventsv1.Entry, head string) (admission.Pinned, bool) {
	if slices.ContainsFunc(entries, func(e *eventsv1.Entry) bool { return e.Ref != "" }) {
		return admission.Pinned{}, false
	}
	pinned, err := p.pin(ctx, near{p.mirror}, entries, head, Sight{})
	if refusal, is := errors.AsType[*admission.Refusal](err); is {
		return admission.Pinned{Problem: refusal}, true
	}
	return pinned, err == nil
}

// near is a mirror whose remote is not asked.
type near struct{ Mirror }

var errFar = errors.New("the remote has to be asked")

// Fetch implements Mirror.
func (n near) Fetch(ctx context.Context, wanted gitrepo.Wanted) error {
	for _, id := range wanted.Commits {
		if _, err := n.Resolve(ctx, id); err != nil {
			return errFar
		}
	}
	if len(wanted.Branches) > 0 {
		return errFar
	}
	return nil
}

// FetchSome implements Mirror.
func (n near) FetchSome(ctx context.Context, wanted gitrepo.Wanted) (gitrepo.Missing, error) {
	return nil, n.Fetch(ctx, wanted)
}

func (p *Pinner) pin(ctx context.Context, mirror Mirror, entries []*eventsv1.Entry, head string, sight Sight) (admission.Pinned, error) {
	pinned := admission.Pinned{}
	infos := &commitReader{mirror: mirror, known: map[string]gitrepo.Commit{}}
	m, err := p.mainline.current(ctx, mirror, p.branch, head)
	if err != nil {
		return pinned, err
	}
	var heads []string
	for _, e := range entries {
		commit, err := p.commitOf(ctx, mirror, e, sight)
		if err != nil {
			if errors.Is(err, gitrepo.ErrTooLarge) {
				err = fmt.Errorf("fetching %s: %w", cmp.Or(e.Ref, e.Commit), err) // another request may have had it fetched, by another name
			}
			return pinned, refusalOf(err, nil)
		}
		// A remote also serves trees and blobs by their ids.
		if _, err := infos.get(ctx, commit); errors.Is(err, gitrepo.ErrNoSuchCommit) {
			return pinned, &admission.Refusal{Code: admission.NoSuchCommit, Message: fmt.Sprintf("%s is an object of the repository and no commit; give a commit or a branch.", commit)}
		} else if err != nil {
			return pinned, err
		}
		pinned.Entries = append(pinned.Entries, &eventsv1.Entry{Ref: e.Ref, Commit: commit, Review: e.Review})
		heads = append(heads, commit)
	}
	pinned.Mainline = m.head
	line := &ancestry{Repository: mirror, window: m, commits: infos}
	picks, err := landing.Expand(ctx, line, p.strategy, m.head, heads)
	if err != nil {
		return pinned, refusalOf(err, pinned.Entries)
	}
	if pinned.Below, err = line.below(ctx, heads[0], picks[0].Base); err != nil {
		return pinned, err
	}
	entry := 0
	for _, pick := range picks {
		pinned.LandingCommits = append(pinned.LandingCommits, &eventsv1.LandingCommit{Head: pick.Head, Base: pick.Base, Merge: pick.Merge, Entry: uint32(entry)})
		if pick.Head == heads[entry] && entry+1 < len(heads) {
			entry++
		}
	}
	if pinned.Held, err = p.held(ctx, m.head, picks[0].Base, heads[len(heads)-1]); err != nil {
		return pinned, err
	}
	info, err := infos.get(ctx, heads[len(heads)-1])
	if err != nil {
		return pinned, err
	}
	pinned.Author = clean(fmt.Sprintf("%s <%s>", info.AuthorName, info.AuthorEmail), 300)
	title, body, _ := strings.Cut(strings.TrimSpace(info.Message), "\n")
	pinned.Title = clean(title, 1000)
	pinned.Description = clipped(strings.ToValidUTF8(strings.TrimSpace(strings.ReplaceAll(body, "\x00", "")), "\uFFFD"), 16<<10)
	return pinned, nil
}

// held reports whether the mainline already has everything that differs between base and head: by another
// change's commits, or by these under other ids. A difference that is too large to compare is not held.
func (p *Pinner) held(ctx context.Context, mainline, base, head string) (bool, error) {
	if mainline == base {
		return false, nil // no entry is empty
	}
	changes, err := p.mirror.DiffTrees(ctx, base, head)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	held, err := p.mirror.Holds(ctx, mainline, changes)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return false, nil
	}
	return held, err
}

// commitOf pins an entry. A ref that is given with a commit must be at that commit.
func (p *Pinner) commitOf(ctx context.Context, mirror Mirror, e *eventsv1.Entry, sight Sight) (string, error) {
	if e.Ref == "" {
		err := sight.missing[e.Commit]
		if err == nil {
			err = p.fetchOf(ctx, mirror, gitrepo.Wanted{Commits: []string{e.Commit}, Whose: sight.whose}, e.Commit, e.Commit)
		}
		p.costly.add(e.Commit, err)
		if errors.Is(err, gitrepo.ErrNoSuchCommit) {
			err = &admission.Refusal{Code: admission.NoSuchCommit, Message: fmt.Sprintf("The repository has no commit %s; push it first.", e.Commit)}
		}
		return e.Commit, err
	}
	if sight.err != nil {
		return "", sight.err
	}
	for _, name := range namesOf(e.Ref) {
		switch at := sight.at[name]; {
		case at == "":
		case e.Commit != "" && at != e.Commit:
			return "", &admission.Refusal{Code: admission.RefMoved, Message: fmt.Sprintf("%s is at %s in the repository, and not at %s; land it as it is, or push that commit to it.", e.Ref, events.ShortID(at), events.ShortID(e.Commit))}
		default:
			return p.fetched(ctx, e.Ref, name, at, sight.whose)
		}
	}
	return "", missingRef(e.Ref)
}

// fetchOf fetches one ref or commit of a change, by the name that gitrepo.Missing has; it leads to a commit.
func (p *Pinner) fetchOf(ctx context.Context, mirror Mirror, wanted gitrepo.Wanted, name, commit string) error {
	if err := p.costly.of(commit); err != nil {
		return err
	}
	wanted.Change = true
	missing, err := mirror.FetchSome(ctx, wanted)
	if err != nil {
		return err
	}
	p.costly.add(commit, missing[name])
	return missing[name]
}

// fetched brings the commit at a ref into the mirror, by the ref: some servers give out no commit by its id. By then the ref
// may have moved on; what was seen of it stands.
func (p *Pinner) fetched(ctx context.Context, ref, name, at string, whose map[string][]string) (string, error) {
	if _, err := p.mirror.Resolve(ctx, at); err == nil || !errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return at, err
	}
	err := p.fetchOf(ctx, p.mirror, gitrepo.Wanted{Branches: []string{name}, Whose: whose}, name, at)
	if errors.Is(err, gitrepo.ErrNoBranch) {
		return "", missingRef(ref)
	}
	if err != nil {
		return "", err
	}
	if _, err := p.mirror.Resolve(ctx, at); err == nil || !errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return at, err
	}
	if _, err := p.mirror.Resolve(ctx, name); errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return "", &admission.Refusal{Code: admission.NoSuchRef, Message: fmt.Sprintf("%q does not lead to a commit; give a branch.", ref)}
	}
	return "", &admission.Refusal{Code: admission.RefMoved, Message: fmt.Sprintf("%s was at %s and was pushed over before that could be fetched; land it as it is.", ref, events.ShortID(at))}
}

func missingRef(ref string) *admission.Refusal {
	return &admission.Refusal{Code: admission.NoSuchRef, Message: fmt.Sprintf("The repository has no branch or ref %q; push it first.", ref)}
}

// namesOf returns the full names that a ref may stand for, the first that is there counts.
func namesOf(ref string) []string {
	if strings.HasPrefix(ref, "refs/") {
		return []string{ref}
	}
	return []string{"refs/heads/" + ref, "refs/tags/" + ref}
}

// refusalOf returns a refusal for an error that is the request's fault, with entries named as in the request, and git's own errors
// as they are.
func refusalOf(err error, entries []*eventsv1.Entry) error {
	for _, known := range []struct {
		cause  error
		code   admission.Code
		advice string
	}{
		{landing.ErrAlreadyIn, admission.AlreadyIn, "there is nothing to land"},
		{landing.ErrEmpty, admission.Empty, "there is nothing to land"},
		{landing.ErrNotStacked, admission.NotAStack, "rebase each entry onto the one before it, or land them as separate changes"},
		{landing.ErrMergeCommit, admission.NotAStack, "rebase the branch, so that it is one line of commits"},
		{landing.ErrNoCommonBase, admission.BadRequest, "start the branch from the mainline"},
		{landing.ErrTooMany, admission.BadRequest, "land it in several changes"},
		{landing.ErrInvalid, admission.BadRequest, "correct the request"},
		{gitrepo.ErrTooLarge, admission.BadRequest, "start the branch from a newer mainline, or land it in several changes"},
	} {
		if errors.Is(err, known.cause) {
			text := err.Error()
			for _, e := range entries {
				if e.Ref != "" {
					text = strings.ReplaceAll(text, e.Commit, e.Ref+" ("+events.ShortID(e.Commit)+")")
				}
			}
			return &admission.Refusal{Code: known.code, Message: strings.ToUpper(text[:1]) + text[1:] + "; " + known.advice + "."}
		}
	}
	return err
}

// clean makes one line of printable text.
func clean(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if c == '\t' {
			return ' '
		}
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return clipped(text, most)
}

func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
