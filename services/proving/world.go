// Package proving drives the production cores – enumerator to lander – over a log in memory and a model of
// a repository, in virtual time and in random order, and checks what the product promises: no red commit,
// nothing landed twice, nothing lost, everything decided, nobody rejected who would be green.
package proving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/targets"
	"landfall.build/services/lander"
	"landfall.build/services/lander/guard"
)

// atom is the smallest edit of the model: one landing commit of a change, or one direct push.
type atom struct {
	id string
	// edits are the targets whose source it alters.
	edits []string
	// edges are dependencies that it adds.
	edges [][2]string
}

// bug makes a target red wherever its closure holds all of the atoms.
type bug struct {
	target string
	atoms  []string
}

// world is a model of a repository: what exists, what breaks, what does not merge.
type world struct {
	targets []string
	deps    map[string][]string
	atoms   map[string]*atom
	bugs    []bug
	clashes map[[2]string]bool // atoms that do not merge with each other

	commits map[string]*commit
	graphs  map[string]*targets.Graph
	red     map[string]map[string]bool
	head    string
	landed  []string // commits of the mainline, oldest first
	pushed  map[string]bool
	// loseAnswer makes a push arrive, or not, without an answer.
	loseAnswer func() (arrive, answer bool)
}

type commit struct {
	id, parent string
	atoms      []string
}

func newWorld(r *rand.Rand) *world {
	w := &world{
		deps: map[string][]string{}, atoms: map[string]*atom{}, clashes: map[[2]string]bool{},
		commits: map[string]*commit{}, graphs: map[string]*targets.Graph{}, red: map[string]map[string]bool{}, pushed: map[string]bool{},
		loseAnswer: func() (bool, bool) { return true, true },
	}
	n := 3 + r.IntN(6)
	for i := range n {
		t := fmt.Sprintf("//t%d", i)
		w.targets = append(w.targets, t)
		for j := range i {
			if r.IntN(4) == 0 {
				w.deps[t] = append(w.deps[t], w.targets[j])
			}
		}
	}
	w.head = w.commit("", nil, "root")
	w.landed = []string{w.head}
	return w
}

func (w *world) commit(parent string, atoms []string, salt string) string {
	h := sha256.Sum256([]byte(parent + "\x00" + strings.Join(atoms, "\x00") + "\x00" + salt))
	id := hex.EncodeToString(h[:20])
	w.commits[id] = &commit{id, parent, atoms}
	return id
}

func treeID(atoms []string) string {
	s := slices.Clone(atoms)
	sort.Strings(s)
	h := sha256.Sum256([]byte(strings.Join(s, "\x00")))
	return hex.EncodeToString(h[:20])
}

// merges says whether an atom applies on a tree.
func (w *world) merges(tree []string, a string) (with string, ok bool) {
	for _, x := range tree {
		if w.clashes[[2]string{x, a}] || w.clashes[[2]string{a, x}] {
			return x, false
		}
	}
	return "", true
}

func (w *world) edgesOf(tree []string) map[string][]string {
	deps := map[string][]string{}
	for t, d := range w.deps {
		deps[t] = slices.Clone(d)
	}
	for _, id := range tree {
		for _, e := range w.atoms[id].edges {
			if !slices.Contains(deps[e[0]], e[1]) {
				deps[e[0]] = append(deps[e[0]], e[1])
			}
		}
	}
	return deps
}

// graph is the target graph of a tree, by the production engine.
func (w *world) graph(tree []string) *targets.Graph {
	id := treeID(tree)
	if g := w.graphs[id]; g != nil {
		return g
	}
	b := targets.NewBuilder("model", id)
	deps := w.edgesOf(tree)
	nodes := map[string]targets.Node{}
	for _, t := range w.targets {
		nodes[t] = b.Target(t, "test", []targets.Command{{Name: "test", Argv: []string{"test"}}})
	}
	for _, t := range w.targets {
		var own []string
		for _, a := range tree {
			if slices.Contains(w.atoms[a].edits, t) {
				own = append(own, a)
			}
		}
		sort.Strings(own)
		b.Edge(nodes[t], b.File("src/"+t[2:], 0o100644, treeID(own)))
		for _, d := range deps[t] {
			b.Edge(nodes[t], nodes[d])
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	w.graphs[id] = g
	return g
}

// redTargets are the targets that are red in a tree, by the bugs that their closures hold.
func (w *world) redTargets(tree []string) map[string]bool {
	id := treeID(tree)
	if r := w.red[id]; r != nil {
		return r
	}
	deps := w.edgesOf(tree)
	red := map[string]bool{}
	for _, t := range w.targets {
		closure := map[string]bool{}
		var walk func(string)
		walk = func(x string) {
			if closure[x] {
				return
			}
			closure[x] = true
			for _, d := range deps[x] {
				walk(d)
			}
		}
		walk(t)
		held := map[string]bool{}
		for _, a := range tree {
			for _, e := range w.atoms[a].edits {
				held[a] = held[a] || closure[e]
			}
		}
		for _, b := range w.bugs {
			all := b.target == t || closure[b.target]
			for _, a := range b.atoms {
				all = all && held[a]
			}
			red[t] = red[t] || all
		}
	}
	w.red[id] = red
	return red
}

// delta is δ of several trees in turn, each against the base (MODEL section 1).
func (w *world) delta(base []string, trees [][]string) ([]*eventsv1.TargetVersion, targets.Analysis) {
	g := w.graph(base)
	var all []targets.Analysis
	var out []*eventsv1.TargetVersion
	seen := map[[2]string]bool{}
	for i, t := range trees {
		a := targets.Delta(g, w.graph(t))
		all = append(all, a)
		for _, v := range a.Affected {
			k := [2]string{v.Name, v.Hash.String()}
			if !seen[k] {
				seen[k] = true
				out = append(out, &eventsv1.TargetVersion{Target: v.Name, Hash: v.Hash.String(), Part: uint32(i + 1)})
			}
		}
	}
	return out, targets.Union(all...)
}

// apply gives the trees after each atom, or the atom that one of them does not merge with.
func (w *world) apply(tree []string, atoms []string) (trees [][]string, clash string) {
	cur := slices.Clone(tree)
	for _, a := range atoms {
		if with, ok := w.merges(cur, a); !ok {
			return trees, with
		}
		cur = append(slices.Clone(cur), a)
		trees = append(trees, cur)
	}
	return trees, ""
}

func atomsOf(commits []*eventsv1.LandingCommit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.Head)
	}
	return out
}

// modelMainline is the world's branch as the lander sees it.
type modelMainline struct{ w *world }

var errNoAnswer = errors.New("no answer")

func (m modelMainline) Head(context.Context) (string, error) { return m.w.head, nil }

func (m modelMainline) Contains(_ context.Context, head, commit string) (bool, error) {
	for c := m.w.commits[head]; c != nil; c = m.w.commits[c.parent] {
		if c.id == commit {
			return true, nil
		}
	}
	return false, nil
}

func (m modelMainline) Between(ctx context.Context, from, to string) ([]lander.Move, bool, error) {
	var out []lander.Move
	for c := m.w.commits[to]; c != nil; c = m.w.commits[c.parent] {
		if c.id == from {
			slices.Reverse(out)
			return out, false, nil
		}
		out = append(out, lander.Move{Commit: c.id, Author: "someone"})
	}
	return nil, true, nil
}

func (m modelMainline) Make(_ context.Context, base string, a *eventsv1.Admission, stamp int64) (*lander.Landing, error) {
	tree := m.w.commits[base].atoms
	atoms := atomsOf(a.LandingCommits)
	trees, clash := m.w.apply(tree, atoms)
	if clash != "" {
		return &lander.Landing{Candidate: guard.Candidate{Obstacle: &eventsv1.Reason{
			Class: eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT, Message: "does not merge with " + clash}}}, nil
	}
	l := &lander.Landing{}
	parent := base
	for i, t := range trees {
		parent = m.w.commit(parent, t, fmt.Sprintf("%s/%d/%d/%d", a.Change, a.Revision, i, stamp))
		l.Commits = append(l.Commits, parent)
	}
	l.Tree = treeID(trees[len(trees)-1])
	l.Versions, _ = m.w.delta(tree, trees)
	return l, nil
}

func (m modelMainline) Push(_ context.Context, base, tip string) error {
	if m.w.head != base {
		return lander.ErrMoved
	}
	arrive, answer := m.w.loseAnswer()
	if arrive {
		m.w.advance(tip)
	}
	if !answer {
		return errNoAnswer
	}
	return nil
}

// advance puts a commit, and its ancestors that are not there yet, on the mainline.
func (w *world) advance(tip string) {
	var chain []string
	for c := w.commits[tip]; c != nil && c.id != w.head; c = w.commits[c.parent] {
		chain = append(chain, c.id)
	}
	slices.Reverse(chain)
	w.landed = append(w.landed, chain...)
	w.head = tip
}
