package pipeline_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/lander"
)

// model is a repository without git: a change is the targets that it affects, a commit is what has landed,
// and a target's version is which of the changes that affect it a tree holds. The lander and the simulated
// builders look at the same model, so hashes agree exactly where trees do. It is safe for both at once.
type model struct {
	mu      sync.Mutex
	changes map[string]*modelChange // by head commit
	commits map[string]*modelCommit
	head    string
	// landed holds, by target, the sums of what has landed in it, oldest first.
	landed map[string][]landedSum
}

// modelChange is one change of one landing commit.
type modelChange struct {
	id, head string
	targets  []string
	digest   uint64
	// fails: every version that holds it is red.
	fails bool
}

type modelCommit struct {
	change   *modelChange // nil for the root
	sequence int
}

type landedSum struct {
	sequence int
	sum      uint64
}

func newModel() *model {
	return &model{
		changes: map[string]*modelChange{}, commits: map[string]*modelCommit{"root": {}}, head: "root",
		landed: map[string][]landedSum{},
	}
}

func hexOf(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:])
}

// add makes a change of what affects these targets.
func (m *model) add(id string, targets []string, fails bool) *modelChange {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := sha256.Sum256([]byte(id))
	c := &modelChange{id: id, head: hexOf("head", id)[:40], targets: targets, digest: binary.LittleEndian.Uint64(h[:]), fails: fails}
	m.changes[c.head] = c
	return c
}

func (c *modelChange) affects(target string) bool {
	for _, t := range c.targets {
		if t == target {
			return true
		}
	}
	return false
}

// version returns the hash of a target in base ⊕ the changes, and whether it is red there.
func (m *model) version(base, target string, changes []*modelChange) (hash string, red bool) {
	sum, sums := uint64(0), m.landed[target]
	for i := len(sums) - 1; i >= 0; i-- {
		if sums[i].sequence <= m.commits[base].sequence {
			sum = sums[i].sum
			break
		}
	}
	for _, c := range changes {
		if c.affects(target) {
			sum += c.digest
			red = red || c.fails
		}
	}
	return hexOf(target, fmt.Sprint(sum)), red
}

// Head implements lander.Mainline.
func (m *model) Head(context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head, nil
}

// Between implements lander.Mainline: nobody pushes past the queue here.
func (m *model) Between(_ context.Context, from, to string) ([]lander.Move, bool, error) {
	return nil, false, fmt.Errorf("nobody pushed, yet the lander asks for what is between %s and %s", from, to)
}

// Make implements lander.Mainline.
func (m *model) Make(_ context.Context, base string, a *eventsv1.Admission, stamp int64, _ []string) (*lander.Landing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.changes[a.LandingCommits[0].Head]
	if c == nil || m.commits[base] == nil {
		return nil, fmt.Errorf("the model has no change %s or no commit %s", a.Change, base)
	}
	tip := hexOf("commit", base, a.Change, fmt.Sprint(stamp))[:40]
	m.commits[tip] = &modelCommit{c, m.commits[base].sequence + 1}
	l := &lander.Landing{Commits: []string{tip}, Tree: hexOf("tree", tip)[:40]}
	for _, t := range c.targets {
		hash, _ := m.version(base, t, []*modelChange{c})
		l.Candidate.Versions = append(l.Candidate.Versions, &eventsv1.TargetVersion{Target: t, Hash: hash, Part: 1})
	}
	return l, nil
}

// Contains implements lander.Mainline.
func (m *model) Contains(_ context.Context, head, commit string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.commits[head] == nil || m.commits[commit] == nil {
		return false, errors.New("the model has no such commit")
	}
	return head == commit, nil
}

// MoveHeads and TakeBackHeads implement lander.Mainline. Nothing is under review here.
func (m *model) MoveHeads(context.Context, []*eventsv1.ReviewHead) error     { return nil }
func (m *model) TakeBackHeads(context.Context, []*eventsv1.ReviewHead) error { return nil }

// PushNothing implements lander.Mainline. No push is refused here, so nobody asks for it.
func (m *model) PushNothing(context.Context, string, int64) error { return lander.ErrPushRefused }

// Push implements lander.Mainline.
func (m *model) Push(_ context.Context, base, commit string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.head != base {
		return lander.ErrMoved
	}
	m.head = commit
	at := m.commits[commit]
	for _, t := range at.change.targets {
		sums := m.landed[t]
		last := uint64(0)
		if n := len(sums); n > 0 {
			last = sums[n-1].sum
		}
		m.landed[t] = append(sums, landedSum{at.sequence, last + at.change.digest})
	}
	return nil
}
