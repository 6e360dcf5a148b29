package targets

import "slices"

// Repository is the one target of a repository whose targets are not known.
const Repository = "//:repository"

// Whole is the graph of a repository that is one target: its version is the
// tree's id and the commands that verify it, so any two changes that alter the
// tree conflict.
func Whole(tree string, commands []Command) *Graph { return whole(tree, commands, nil) }

// Unknown is the graph of a tree whose targets could not be computed, with the
// reasons (M4). As the head of a change it makes the change conflict with
// everything, with (repository, tree id) as its one target version, which the
// commands verify; without commands nothing can, and the caller must not take an
// empty list of steps for success. As the base it makes every target of the head one that the
// change creates, so that a broken mainline can be repaired.
func Unknown(tree string, commands []Command, reasons ...string) *Graph {
	if len(reasons) == 0 {
		reasons = []string{"the targets of tree " + tree + " are not known"}
	}
	return whole(tree, commands, reasons)
}

func whole(tree string, commands []Command, reasons []string) *Graph {
	b := NewBuilder("whole", tree)
	b.Edge(b.Target(Repository, "repository", slices.Clone(commands)), b.External("tree", []byte(tree)))
	for _, reason := range reasons {
		b.Incomplete(reason)
	}
	return b.arrange()
}
