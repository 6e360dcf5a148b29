package landing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"landfall.build/platform/gitrepo"
)

// Committer is who every landing commit says committed it, unless Meta names another.
var Committer = gitrepo.Identity{Name: "Landfall", Email: "landfall@localhost"}

// Meta is what landing commits say beyond their content. All of it enters their ids.
type Meta struct {
	Change   string // the change's id: one line, not empty
	Revision int64
	Queue    string // "" leaves the trailer out
	Date     string // of the committer: "unix-seconds +0000", the decision's stamp
	// Title and Body, where not empty, replace the subject and the rest of the authors'
	// messages, of the last landing commit if there are several: the others are entries of
	// a stack with messages of their own.
	Title, Body string
	// Quarantined are the targets that the change affects and that need not have passed, each one line.
	Quarantined []string
	// Committer replaces the package's where its name is not empty; its date is ignored.
	Committer gitrepo.Identity
}

// Landed is the mainline that a change makes: one commit, tree and flag for each pick.
type Landed struct {
	Commits []string // T1 … Tn, each the next one's first parent
	Trees   []string
	// Empty marks commits that change nothing on this mainline, which held their content
	// already. They are made nevertheless: what was decided to land is then seen to have
	// landed, by an id like any other's.
	Empty []bool
}

// Commits writes the landing commits of picks on top of the commit onto, or says which
// pick does not merge there; nothing is written in that case.
//
// The author is that of the pick's head. The message is the authors' (Message says how
// that of several commits is made), without any line that looks like one of our trailers,
// followed by Landfall's own: Landfall-Change, -Revision, -Queue and -Part.
func Commits(ctx context.Context, repo Repository, onto string, picks []Pick, meta Meta) (*Landed, *Conflict, error) {
	if err := meta.check(); err != nil {
		return nil, nil, err
	}
	if len(picks) == 0 || len(picks) > MaxPicks {
		return nil, nil, fmt.Errorf("%w: %d landing commits (1 to %d)", ErrInvalid, len(picks), MaxPicks)
	}
	current, err := repo.TreeOf(ctx, onto)
	if err != nil {
		return nil, nil, err
	}
	trees, conflict, err := ApplyTree(ctx, repo, current, picks)
	if err != nil || conflict != nil {
		return nil, conflict, err
	}
	landed := &Landed{Trees: trees}
	parent := onto
	for i, pick := range picks {
		spec, err := describe(ctx, repo, pick, meta, i, len(picks))
		if err != nil {
			return nil, nil, fmt.Errorf("landing commit %d of %d: %w", i+1, len(picks), err)
		}
		spec.Tree, spec.Parents = trees[i], []string{parent}
		if pick.Merge {
			spec.Parents = append(spec.Parents, pick.Head)
		}
		if parent, err = repo.WriteCommit(ctx, spec); err != nil {
			return nil, nil, fmt.Errorf("landing commit %d of %d: %w", i+1, len(picks), err)
		}
		landed.Commits = append(landed.Commits, parent)
		landed.Empty = append(landed.Empty, trees[i] == current)
		current = trees[i]
	}
	return landed, nil, nil
}

// Nothing writes a commit that changes no file on top of the commit onto. Pushed, it takes the mainline past onto, so that no
// other push from there can arrive any more. why is its message.
func Nothing(ctx context.Context, repo Repository, onto, date, why string) (string, error) {
	tree, err := repo.TreeOf(ctx, onto)
	if err != nil {
		return "", err
	}
	who := Committer
	who.Date = date
	return repo.WriteCommit(ctx, gitrepo.CommitSpec{Tree: tree, Parents: []string{onto}, Author: who, Committer: who, Message: why + "\n"})
}

func (m Meta) check() error {
	for what, text := range map[string]string{"change id": m.Change, "queue": m.Queue} {
		if strings.ContainsFunc(text, unicode.IsControl) || len(text) > 1000 || strings.TrimSpace(text) != text {
			return fmt.Errorf("%w: %s %.200q cannot stand in a trailer", ErrInvalid, what, text)
		}
	}
	if m.Change == "" {
		return fmt.Errorf("%w: no change id", ErrInvalid)
	}
	if !strings.HasSuffix(m.Date, " +0000") {
		return fmt.Errorf("%w: date %.50q is not \"unix-seconds +0000\"", ErrInvalid, m.Date)
	}
	return nil
}

// describe makes everything of a landing commit but its tree and parents.
func describe(ctx context.Context, repo Repository, pick Pick, meta Meta, i, n int) (gitrepo.CommitSpec, error) {
	sources, err := sourcesOf(ctx, repo, pick)
	if err != nil {
		return gitrepo.CommitSpec{}, err
	}
	head := sources[len(sources)-1]
	committer := Committer
	if meta.Committer.Name != "" {
		committer = meta.Committer
	}
	committer.Date = meta.Date
	var title, body string
	if i == n-1 {
		title, body = meta.Title, meta.Body
	}
	trailers := []string{"Landfall-Change: " + meta.Change, fmt.Sprintf("Landfall-Revision: %d", meta.Revision)}
	if meta.Queue != "" {
		trailers = append(trailers, "Landfall-Queue: "+meta.Queue)
	}
	trailers = append(trailers, fmt.Sprintf("Landfall-Part: %d/%d", i+1, n))
	for _, target := range meta.Quarantined {
		trailers = append(trailers, "Landfall-Quarantined: "+target)
	}
	return gitrepo.CommitSpec{
		Author:    gitrepo.Identity{Name: cleanName(head.AuthorName), Email: cleanName(head.AuthorEmail), Date: head.AuthorDate},
		Committer: committer,
		Encoding:  encodingOf(sources),
		Message:   Message(sources, pick.Merge, title, body, trailers),
	}, nil
}

// sourcesOf reads the commits that a pick squashes, oldest first; of a merge and of a
// rebased commit it is the head alone.
func sourcesOf(ctx context.Context, repo Repository, pick Pick) ([]gitrepo.Commit, error) {
	head, err := repo.CommitInfos(ctx, []string{pick.Head})
	if err != nil {
		return nil, err
	}
	if pick.Merge || len(head[0].Parents) == 1 && head[0].Parents[0] == pick.Base {
		return head, nil
	}
	ids, err := repo.Commits(ctx, pick.Base, pick.Head)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return head, nil // a whole history that was merged in: its messages are not listed, and it lands all the same
	}
	if err != nil {
		return nil, err
	}
	if len(ids) > maxSources { // the oldest says what it is about, the newest who finished it
		ids = append(ids[:maxSources-1:maxSources-1], pick.Head)
	}
	infos, err := repo.CommitInfos(ctx, ids)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return head, nil
	}
	if err != nil {
		return nil, err
	}
	var sources []gitrepo.Commit
	for _, info := range infos { // a merge from the mainline is nobody's contribution
		if len(info.Parents) < 2 || info.ID == pick.Head {
			sources = append(sources, info)
		}
	}
	if len(sources) == 0 {
		return head, nil
	}
	return sources, nil
}

// encodingOf returns the encoding that all sources have in common; mixed ones, and what is no
// name of an encoding, are left to be read as UTF-8.
func encodingOf(sources []gitrepo.Commit) string {
	for _, source := range sources {
		if source.Encoding != sources[0].Encoding || !gitrepo.IsEncoding(source.Encoding) {
			return ""
		}
	}
	return sources[0].Encoding
}

// cleanName takes out what WriteCommit refuses and old tools let into names. It goes by
// bytes, since a name need not be UTF-8.
func cleanName(name string) string {
	kept := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= ' ' && c != 0x7f && c != '<' && c != '>' {
			kept = append(kept, c)
		}
	}
	return strings.TrimSpace(string(kept))
}
