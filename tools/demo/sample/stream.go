package sample

import (
	"bytes"
	"fmt"
)

// epoch is when the first commit was made, in Unix seconds; each one is a minute after the one before it in
// the stream.
const epoch = 1767600000

// stream is the input of git fast-import, which makes all commits in one process.
type stream struct {
	text bytes.Buffer
	// ids has, for each mark from 1 on, where the commit's id goes.
	ids []*string
}

// point is a commit in the stream.
type point struct {
	mark int
	tree tree
}

// commit adds a commit to a ref, and notes where its id is stored.
func (s *stream) commit(ref string, from point, author Person, title string, edits []Edit, id *string) (point, error) {
	next, paths, err := from.tree.apply(edits)
	if err != nil {
		return point{}, fmt.Errorf("%q: %w", title, err)
	}
	s.ids = append(s.ids, id)
	at := point{mark: len(s.ids), tree: next}
	who := fmt.Sprintf("%s <%s> %d +0000", author.Name, author.Email, epoch+60*at.mark)
	fmt.Fprintf(&s.text, "commit %s\nmark :%d\nauthor %s\ncommitter %s\n", ref, at.mark, who, who)
	s.data(title + "\n")
	if from.mark > 0 {
		fmt.Fprintf(&s.text, "from :%d\n", from.mark)
	}
	for _, path := range paths {
		fmt.Fprintf(&s.text, "M 100644 inline %s\n", path)
		s.data(next[path])
	}
	s.text.WriteByte('\n')
	return at, nil
}

func (s *stream) data(text string) { fmt.Fprintf(&s.text, "data %d\n%s\n", len(text), text) }

// mainline adds the history, and notes where the last id is stored.
func (s *stream) mainline(head *string) (point, error) {
	commits, authors, err := history()
	if err != nil {
		return point{}, err
	}
	at := point{tree: tree{}}
	for i, c := range commits {
		id := new(string)
		if i == len(commits)-1 {
			id = head
		}
		if at, err = s.commit("refs/heads/"+Branch, at, authors[i], c.Title, c.Edits, id); err != nil {
			return point{}, err
		}
	}
	return at, nil
}

// branch adds the commits of a change.
func (s *stream) branch(ref string, at point, author Person, commits []Commit) error {
	for i := range commits {
		var err error
		if at, err = s.commit(ref, at, author, commits[i].Title, commits[i].Edits, &commits[i].ID); err != nil {
			return err
		}
	}
	return nil
}
