package proof

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/guard"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/lander"
)

// commit is one of the mainline, or one that was made to become so.
type commit struct {
	id, parent string
	tree       *tree
	// by is the change, with its revision, that it lands; "" for a direct push.
	by string
	// edits are the atoms that it brings, and base is what its change was put on.
	edits []*atom
	base  string
	// trailer is a change that the message names, whoever wrote it.
	trailer string
}

// mainline is the remote branch.
type mainline struct {
	repository *repository
	commits    map[string]*commit
	head       string
	// landed are the commits that pushes of ours brought, in order; removed those that a person took off.
	landed  []*commit
	removed map[string]bool
	// heads are all that the branch ever pointed at.
	heads map[string]bool

	inFlight []push
	// unwanted are changes that the remote refuses, refused how often it has done so to each; again, for
	// how many minutes yet it is waited for one to be tried again.
	unwanted map[string]bool
	refused  map[string]int
	// lost are changes whose commits the remote gives out to nobody, missed how often a lander found those of each gone.
	lost   map[string]bool
	missed map[string]int
	// misread are unwanted changes that it refuses with words by which servers refuse everybody.
	misread map[string]bool
	tries   int // after so many refusals nobody waits for a change to be tried again
	again   int
	// strangers counts pushes of commits that another lander has made.
	strangers int

	// beforePush and answer are what may happen around a push: somebody else's work, and how it ends; away is why
	// the branch cannot be read, misses whether commits are gone this time.
	owner      *landerActor
	away       func() error
	misses     func() bool
	beforePush func()
	answer     func() pushAnswer
	// frozen is why the remote refuses every push, nil if it does not.
	frozen func() *lander.PushRefusal
	// reviews are its branches under review, nil for none. office is the number of the lander in office.
	reviews *reviews
	office  int
	// underWay: that began with the last push, which may have been under way. Pushes come one after the other, so no later one was.
	underWay bool
}

// pushAnswer is how a push ends.
type pushAnswer int

const (
	pushAnswered pushAnswer = iota
	// The pusher gets no answer; the push arrived, never does, or does later.
	pushUnanswered
	pushLost
	pushLate
)

func newMainline(r *repository) *mainline {
	m := &mainline{
		repository: r, commits: map[string]*commit{}, removed: map[string]bool{}, heads: map[string]bool{},
		unwanted: map[string]bool{}, misread: map[string]bool{}, refused: map[string]int{}, tries: maxTries, lost: map[string]bool{}, missed: map[string]int{},
		away: func() error { return nil }, misses: func() bool { return false }, beforePush: func() {}, answer: func() pushAnswer { return pushAnswered },
		frozen: func() *lander.PushRefusal { return nil },
	}
	m.begin()
	return m
}

// begin makes the first commit, which holds edits that nobody asked the queue for.
func (m *mainline) begin(edits ...*atom) {
	var holds atoms
	for _, a := range edits {
		holds.add(a)
	}
	m.head = m.commit("", m.repository.tree(holds), "", nil, "", "root")
	m.heads = map[string]bool{m.head: true}
}

// commit makes a commit; the same arguments give the same id.
func (m *mainline) commit(parent string, t *tree, by string, edits []*atom, base, salt string) string {
	h := sha256.Sum256([]byte(parent + "\x00" + t.id + "\x00" + by + "\x00" + salt))
	id := hex.EncodeToString(h[:20])
	if m.commits[id] == nil {
		m.commits[id] = &commit{id: id, parent: parent, tree: t, by: by, edits: edits, base: base}
	}
	return id
}

func (m *mainline) tree() *tree { return m.commits[m.head].tree }

func (m *mainline) contains(head, id string) bool {
	for c := m.commits[head]; c != nil; c = m.commits[c.parent] {
		if c.id == id {
			return true
		}
	}
	return false
}

// between lists the commits from one head, which is an ancestor or "", to another, oldest first.
func (m *mainline) between(from, to string) (list []*commit) {
	for c := m.commits[to]; c != nil && c.id != from; c = m.commits[c.parent] {
		list = append(list, c)
	}
	slices.Reverse(list)
	return list
}

// point moves the branch, as its owners may do without the queue.
func (m *mainline) point(to string) {
	for _, c := range m.between("", m.head) {
		m.removed[c.id] = m.removed[c.id] || !m.contains(to, c.id)
	}
	m.head = to
	m.heads[to] = true
}

// remote is the branch as one lander sees it, who has a mirror of its own: of what was never on the branch it knows
// what it has made itself.
type remote struct {
	*mainline
	made   map[string]bool
	number int
}

// asSeen is the branch as the next lander sees it, who is in office from now on.
func (m *mainline) asSeen() remote {
	m.office++
	return remote{m, map[string]bool{}, m.office}
}

var errNoAnswer = errors.New("no answer")

func (m remote) Head(context.Context) (string, error) {
	if err := m.away(); err != nil {
		return "", err
	}
	return m.head, nil
}

func (m remote) Contains(_ context.Context, head, id string) (bool, error) {
	return m.contains(head, id), nil
}

func (m remote) Between(_ context.Context, from, to string) ([]lander.Move, bool, error) {
	if !m.contains(to, from) {
		return nil, true, nil
	}
	var moves []lander.Move
	for _, c := range m.between(from, to) {
		moves = append(moves, lander.Move{Commit: c.id, Author: "someone"})
	}
	return moves, false, nil
}

func (m remote) Make(_ context.Context, base string, a *eventsv1.Admission, stamp int64, quarantined []string) (*lander.Landing, error) {
	if m.lost[a.Change] || m.misses() {
		m.missed[a.Change]++
		m.owner.m.tally[LostCommits]++
		return nil, lander.ErrGone
	}
	edits := m.repository.editsOf(a.LandingCommits)
	s := m.repository.study(m.commits[base].tree, edits)
	switch {
	case s.obstacle != "":
		return obstacle(eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT, "it does not merge with "+s.obstacle), nil
	case s.invalid:
		return obstacle(eventsv1.ReasonClass_REASON_CLASS_INVALID, "its definitions are invalid"), nil
	}
	l := &lander.Landing{Tree: s.trees[len(s.trees)-1].id, Deleted: s.affected.Deleted, Quarantined: s.among(quarantined), Candidate: guard.Candidate{
		Versions: s.affected.Targets, Base: m.commits[base].tree.baseVersions(s.affected.Targets),
	}}
	if left := m.owner.m.leaves; left == M23aProveBase || left == M23aVerifyPushes {
		l.Base = nil
	}
	parent := base
	for i, t := range s.trees {
		parent = m.commit(parent, t, fmt.Sprintf("%s@%d", a.Change, a.Revision), edits[i:i+1], base, fmt.Sprintf("%d/%d", i, stamp))
		l.Commits = append(l.Commits, parent)
		m.made[parent] = true
	}
	return l, nil
}

func obstacle(class eventsv1.ReasonClass, message string) *lander.Landing {
	return &lander.Landing{Candidate: guard.Candidate{Obstacle: &eventsv1.Reason{Class: class, Message: message}}}
}

// Push is the compare-and-swap of M22.
func (m remote) Push(_ context.Context, base, tip string) error {
	if !m.made[tip] {
		m.strangers++
		return lander.ErrUnknownCommit
	}
	m.beforePush()
	if why := m.frozen(); why != nil {
		if m.underWay && m.answer() == pushLate {
			m.inFlight = append(m.inFlight, push{base, tip}) // it was under way when the right was lost
			return errNoAnswer
		}
		return why
	}
	if m.dislikes(base, tip) && m.answer() == pushLate {
		m.inFlight = append(m.inFlight, push{base, tip}) // the hook, slow or changed meanwhile, lets it pass
		return errNoAnswer
	}
	if why := m.refuses(base, tip); why != nil {
		return why
	}
	switch m.answer() {
	case pushLost:
		return errNoAnswer
	case pushLate:
		m.inFlight = append(m.inFlight, push{base, tip})
		return errNoAnswer
	case pushUnanswered:
		m.arrive(push{base, tip})
		return errNoAnswer
	}
	if !m.arrive(push{base, tip}) {
		return lander.ErrMoved
	}
	return nil
}

// PushNothing is a compare-and-swap too.
func (m remote) PushNothing(_ context.Context, base string, stamp int64) error {
	if m.head != base {
		return lander.ErrMoved
	}
	if why := m.frozen(); why != nil {
		return why
	}
	m.point(m.commit(base, m.commits[base].tree, "", nil, base, fmt.Sprintf("nothing/%d", stamp)))
	return nil
}

// maxTries is how many refusals are waited for before a bystander lands, and once it has.
const maxTries = 8

// dislikes reports whether the hook refuses a push.
func (m *mainline) dislikes(base, tip string) bool {
	return slices.ContainsFunc(m.between(base, tip), func(c *commit) bool {
		change, _, _ := strings.Cut(c.by, "@")
		return m.unwanted[change]
	})
}

// refuses is what the hook says of a push, nil if it lets it pass.
func (m *mainline) refuses(base, tip string) error {
	for _, c := range m.between(base, tip) {
		change, _, _ := strings.Cut(c.by, "@")
		if m.unwanted[change] {
			m.refused[change]++
			if m.refused[change] < m.tries {
				m.again = 5
			}
			m.owner.m.tally[RefusedPushes]++
			if m.misread[change] {
				return &lander.PushRefusal{Sentence: "not allowed to push " + change, Everybody: true, Err: errHook}
			}
			return &lander.PushRefusal{Sentence: change + " is not wanted", Err: errHook}
		}
	}
	return nil
}

var errHook = errors.New("a hook declined")

// push is a compare-and-swap of the branch.
type push struct{ base, tip string }

func (m *mainline) arrive(p push) bool {
	if m.head != p.base {
		return false
	}
	m.landed = append(m.landed, m.between(p.base, p.tip)...)
	m.point(p.tip)
	return true
}

// arriveLate lets a push arrive whose writer got no answer long ago.
func (m *mainline) arriveLate() {
	m.reviews.arriveLate()
	if len(m.inFlight) > 0 {
		m.arrive(m.inFlight[0])
		m.inFlight = m.inFlight[1:]
	}
}

// editsOf are the atoms of landing commits.
func (r *repository) editsOf(commits []*eventsv1.LandingCommit) []*atom {
	list := make([]*atom, len(commits))
	for i, c := range commits {
		list[i] = r.byID[c.Head]
	}
	return list
}
