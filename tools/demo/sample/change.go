package sample

import (
	"fmt"
	"strings"
)

// Person writes changes.
type Person struct{ Name, Email string }

// The people of the bookshop.
var (
	Ada    = Person{"Ada Brandt", "ada@bookshop.example"}
	Bo     = Person{"Bo Lindqvist", "bo@bookshop.example"}
	Chen   = Person{"Chen Wei", "chen@bookshop.example"}
	Dora   = Person{"Dora Novak", "dora@bookshop.example"}
	Emil   = Person{"Emil Hansen", "emil@bookshop.example"}
	Fatima = Person{"Fatima Saidi", "fatima@bookshop.example"}
	Goran  = Person{"Goran Petrov", "goran@bookshop.example"}
	Hana   = Person{"Hana Sato", "hana@bookshop.example"}
)

// Edit changes one file: the one place where it has Old gets New. With Old empty, New goes to the end of
// the file, which is made if it is not there.
type Edit struct{ Path, Old, New string }

// Commit is one commit of a change's branch.
type Commit struct {
	Title string
	Edits []Edit
	// ID is set once the repository is made.
	ID string
}

// Ending is how a change leaves the queue, in the words of the gateway's view.
type Ending struct {
	// State is landed, rejected, ejected or cancelled.
	State string
	// Class is that of its rejection or ejection.
	Class string
}

// Endings that changes of the sample have.
var (
	Landed      = Ending{State: "landed"}
	Cancelled   = Ending{State: "cancelled"}
	StepFailed  = Ending{"rejected", "step_failed"}
	NoMerge     = Ending{"rejected", "merge_conflict"}
	Invalid     = Ending{"rejected", "invalid"}
	Requirement = Ending{"rejected", "requirement"}
	TimedOut    = Ending{"ejected", "timed_out"}
)

// String returns "rejected (step_failed)".
func (e Ending) String() string {
	if e.Class == "" {
		return e.State
	}
	return e.State + " (" + e.Class + ")"
}

// Change is one that somebody asks to land.
type Change struct {
	// Name is the change's id, and part of its branch's name.
	Name   string
	Author Person
	// Commits on top of the first head of the mainline; each is an entry of its own.
	Commits []Commit
	// Better replaces Commits after the first attempt was rejected.
	Better []Commit
	// Requires names changes that must have landed before.
	Requires []string
	// Want is how it ends. Of changes with the same Rivals exactly one lands, whichever comes first, and
	// the others end as wanted.
	Want   Ending
	Rivals string
	// Group is the heading under which people read about it.
	Group string
}

// Branch is where its commits are pushed.
func (c *Change) Branch() string {
	first, _, _ := strings.Cut(strings.ToLower(c.Author.Name), " ")
	return first + "/" + c.Name
}

// Title is that of its last commit.
func (c *Change) Title() string { return c.Commits[len(c.Commits)-1].Title }

// tree is the content of a repository by path.
type tree map[string]string

// apply returns the tree with the edits made, and the paths that differ.
func (t tree) apply(edits []Edit) (tree, []string, error) {
	out := make(tree, len(t)+len(edits))
	for path, content := range t {
		out[path] = content
	}
	var paths []string
	for _, e := range edits {
		before := out[e.Path]
		switch {
		case e.Old != "" && strings.Count(before, e.Old) != 1:
			return nil, nil, fmt.Errorf("%s has %q %d times, not once", e.Path, e.Old, strings.Count(before, e.Old))
		case e.Old == "":
			out[e.Path] = before + e.New
		default:
			out[e.Path] = strings.Replace(before, e.Old, e.New, 1)
		}
		paths = append(paths, e.Path)
	}
	return out, paths, nil
}

// one is a change of a single commit.
func one(name string, author Person, title string, edits ...Edit) Change {
	return Change{Name: name, Author: author, Commits: []Commit{{Title: title, Edits: edits}}, Want: Landed}
}

// in puts changes under a heading.
func in(group string, changes ...Change) []Change {
	for i := range changes {
		changes[i].Group = group
	}
	return changes
}

// ends sets how a change ends.
func (c Change) ends(want Ending) Change {
	c.Want = want
	return c
}

// against makes a change one of several of which exactly one lands; the others end as given.
func (c Change) against(rivals string, loser Ending) Change {
	c.Rivals, c.Want = rivals, loser
	return c
}

// after makes a change require others.
func (c Change) after(names ...string) Change {
	c.Requires = names
	return c
}
