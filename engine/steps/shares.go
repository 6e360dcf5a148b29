package steps

import (
	"cmp"
	"slices"

	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// shares plays processor sharing beside the real order (M36): all changes with steps are worked on at once, each as fast as its
// weight says. A change has an account from its first build on until sharing is through with it, also when it has left.
type shares struct {
	// givenUs is the worker time that a change of weight 1 has been given which was always there, up to the time atUs.
	givenUs float64
	atUs    int64
	// accounts are in the order in which sharing is through with them.
	accounts []*account
	of       map[changeKey]*account `snapshot:"index"`
	// others is what the changes of other queues weigh that share the workers.
	others float64 `snapshot:"-"`
	// opened counts the accounts that were opened, changed has those to be settled, and meanwhile those of which a step is begun
	// in the present choice.
	opened    uint64
	changed   []*account `snapshot:"-"`
	meanwhile []*account `snapshot:"-"`
}

// changeKey is a change at a revision; the mainline is "".
type changeKey struct {
	change   string
	revision uint64
}

func keyOf(c *eventsv1.ChangeRef) changeKey { return changeKey{c.GetChange(), c.GetRevision()} }

type account struct {
	changeKey
	// number is its place among those that were opened.
	number uint64
	weight float64
	// throughUs is givenUs when sharing is through with the change.
	throughUs float64
	// sinceUs is when the change came, or had steps again after it had none; throughAtUs is when sharing was through.
	sinceUs, throughAtUs int64
	// leftUs is how long the steps of the main build take together which no worker has begun.
	leftUs int64
	// builds are those of the change that ask for versions; main is the one of them that counts: of those that do not linger and
	// are not for idle workers alone, the one that is worth most.
	builds []*build `snapshot:"-"`
	main   *build   `snapshot:"-"`
	// begunUs is what was begun of the main build since the account was settled, overUs how much longer its steps took than was
	// likely, and meanwhileUs what is begun of it in the present choice.
	begunUs, overUs, meanwhileUs int64 `snapshot:"-"`
	changed                      bool  `snapshot:"-"`
}

func byEnd(a, b *account) int {
	return cmp.Or(cmp.Compare(a.throughUs, b.throughUs), cmp.Compare(a.number, b.number))
}

// leastWeight bounds how little a change weighs.
const leastWeight = 1.0 / 1024

// joinAccount makes a build that begins to ask for versions one of its change.
func (q *Queue) joinAccount(b *build) {
	s, key := &q.shares, keyOf(b.change())
	a := s.of[key]
	if a == nil {
		s.opened++
		a = &account{changeKey: key, number: s.opened, weight: 1, throughUs: s.givenUs, sinceUs: s.atUs, throughAtUs: s.atUs}
		s.add(a)
	}
	b.account = a
	a.builds = append(a.builds, b)
	q.changeAccount(b)
}

// leaveAccount takes out a build that asks for nothing any more.
func (q *Queue) leaveAccount(b *build) {
	a := b.account
	if a == nil {
		return
	}
	q.changeAccount(b)
	b.account = nil
	a.builds = slices.DeleteFunc(a.builds, func(o *build) bool { return o == b })
}

// changeAccount has the account of a build settled after the record.
func (q *Queue) changeAccount(b *build) {
	if a := b.account; a != nil && !a.changed {
		a.changed = true
		q.shares.changed = append(q.shares.changed, a)
	}
}

func (s *shares) add(a *account) {
	s.of[a.changeKey] = a
	s.insert(a)
}

func (s *shares) insert(a *account) {
	at, _ := slices.BinarySearchFunc(s.accounts, a, byEnd)
	s.accounts = slices.Insert(s.accounts, at, a)
}

func (s *shares) remove(a *account) {
	if at, found := slices.BinarySearchFunc(s.accounts, a, byEnd); found {
		s.accounts = slices.Delete(s.accounts, at, at+1)
	}
}

// settleAccounts takes over what a record has changed.
func (q *Queue) settleAccounts() {
	s := &q.shares
	for _, a := range s.changed {
		a.changed = false
		through := a.settle(s.givenUs, s.atUs)
		if through <= s.givenUs && s.givenUs < a.throughUs {
			a.throughAtUs = s.atUs
		}
		if q.closes(a, through) {
			s.remove(a)
			delete(s.of, a.changeKey)
		} else if through != a.throughUs {
			s.remove(a)
			a.throughUs = through
			s.insert(a)
		}
	}
	clear(s.changed)
	s.changed = s.changed[:0]
}

// closes reports whether an account is to be closed: its change has left, and sharing is through with it. Without workers nobody
// shares anything.
func (q *Queue) closes(a *account, throughUs float64) bool {
	return len(a.builds) == 0 && (throughUs <= q.shares.givenUs || q.Workers <= 0)
}

// settle takes over what has changed of the builds of a change, and returns when sharing is through with it now. What workers
// began is no news for it; what came up besides it has to work off too.
func (a *account) settle(givenUs float64, atUs int64) (throughUs float64) {
	a.main = nil
	for _, b := range a.builds {
		if b.successor == "" && !b.scheduled.GetIdle() && (a.main == nil || b.value > a.main.value || b.value == a.main.value && before(b, a.main) < 0) {
			a.main = b
		}
	}
	left, weight := int64(0), a.weight
	if a.main != nil {
		left, weight = a.main.idleUs, max(a.main.value, leastWeight)
	}
	throughUs = a.throughUs
	if a.leftUs+a.begunUs == 0 && left > 0 {
		throughUs, a.sinceUs = max(throughUs, givenUs), atUs // what it was not given while it had nothing to do is lost
	}
	if more := left - a.leftUs + a.begunUs + a.overUs; more != 0 || weight != a.weight {
		throughUs = givenUs + ((throughUs-givenUs)*a.weight+float64(more))/weight
	}
	a.leftUs, a.weight, a.begunUs, a.overUs = left, weight, 0, 0
	return throughUs
}

// charge calls a function for the accounts of the changes whose main build waits for a version.
func (q *Queue) charge(v Version, f func(a *account, us int64)) {
	w := q.wanted[v]
	if w == nil {
		return
	}
	for _, b := range w.askers {
		if a := b.account; a != nil && a.main == b.build && b.open[b.place] {
			f(a, w.us)
			q.changeAccount(b.build)
		}
	}
}

// setBegun notes whether a worker has begun with a version.
func (q *Queue) setBegun(v Version, begun bool) {
	w := q.wanted[v]
	if w == nil || w.begun == begun {
		return
	}
	if begun {
		q.charge(v, func(a *account, us int64) { a.begunUs += us })
	}
	w.begun = begun
	for _, b := range w.askers {
		if b.open[b.place] {
			b.idleUs += w.us * int64(1-2*boolean(begun))
			q.changeAccount(b.build)
		}
	}
}

// advance plays sharing up to a time, and closes the accounts of changes that have left.
func (q *Queue) advance(nowUs int64) {
	s := &q.shares
	s.givenUs = q.play(nowUs)
	s.atUs = max(s.atUs, nowUs)
	s.accounts = slices.DeleteFunc(s.accounts, func(a *account) bool {
		closed := q.closes(a, a.throughUs)
		if closed {
			delete(s.of, a.changeKey)
		}
		return closed
	})
}

// play returns what givenUs is at a time, and notes of the accounts that sharing is through with by then when that was.
func (q *Queue) play(nowUs int64) float64 {
	s := &q.shares
	given, left := s.givenUs, float64(max(0, nowUs-s.atUs))
	if s.atUs == 0 || q.Workers <= 0 {
		return given
	}
	first, _ := slices.BinarySearchFunc(s.accounts, given, func(a *account, of float64) int {
		return 2*boolean(a.throughUs > of) - 1
	})
	pending, weight := s.accounts[first:], q.shares.others
	for _, a := range pending {
		weight += a.weight
	}
	for _, a := range pending {
		takes := (a.throughUs - given) * weight / float64(q.Workers)
		if takes > left {
			return given + left*float64(q.Workers)/weight
		}
		given, left, weight = a.throughUs, left-takes, weight-a.weight
		a.throughAtUs = nowUs - int64(left)
	}
	return given
}

// ShareWith says what the changes of other queues weigh that share the workers, where one that is worth 1 here weighs 1.
func (q *Queue) ShareWith(others float64) { q.shares.others = others }

// Sharing returns what the changes weigh together that sharing is not through with.
func (q *Queue) Sharing() float64 {
	weight := 0.0
	for _, a := range q.shares.accounts {
		if a.throughUs > q.shares.givenUs {
			weight += a.weight
		}
	}
	return weight
}

// A change is late when it has taken so many times as long as with sharing, and very late at as many as no change is to take.
const (
	late     = 2
	veryLate = 4
)

// owed returns the entry of the step that a change is owed next, and when sharing is through with the change; nil if none is owed
// one (M36).
func (q *Queue) owed(nowUs int64) (step *entry, dueUs int64) {
	if q.Workers <= 0 {
		return nil, 0
	}
	given := q.play(nowUs)
	of := q.owedTo(given, nowUs)
	switch {
	case of == nil:
		return nil, 0
	case of.throughUs > given:
		dueUs = nowUs + int64((of.throughUs-given)*(q.Sharing()+q.shares.others)/float64(q.Workers))
	default:
		dueUs = of.throughAtUs
	}
	return &q.choice.entries[of.main.slot-1], dueUs
}

// owedTo returns the change that is owed a step: the first in the order of sharing that is very late; else the first with a
// step if the changes up to it, or to one behind it, have had less than with sharing by the work of so many builds; else the one
// that is late by the most times.
func (q *Queue) owedTo(givenUs float64, nowUs int64) *account {
	credit, behind := float64(patience*q.estimates.work.mean), 0.0
	var first, lacking, latest *account
	for _, a := range q.shares.accounts {
		through := a.throughUs <= givenUs
		if !through && lacking != nil {
			break
		}
		left := a.leftUs - a.meanwhileUs
		if behind += float64(left); !through {
			behind -= (a.throughUs - givenUs) * a.weight
		}
		if left <= 0 || a.main == nil {
			continue
		}
		if offers := q.choice.entries[a.main.slot-1].class == ready; offers {
			if first == nil {
				first = a
			}
			if through && a.waited(nowUs) >= veryLate*a.shared() {
				return a
			}
			if through && a.waited(nowUs) >= late*a.shared() && (latest == nil || a.waited(nowUs)*latest.shared() > latest.waited(nowUs)*a.shared()) {
				latest = a
			}
		}
		if lacking == nil && behind > credit {
			lacking = first
		}
	}
	if lacking != nil {
		return lacking
	}
	return latest
}

// waited returns how long a change has had steps, shared how long sharing took to be through with it.
func (a *account) waited(nowUs int64) float64 { return float64(nowUs - a.sinceUs) }

func (a *account) shared() float64 { return float64(a.throughAtUs - a.sinceUs) }

// beginMeanwhile counts a version as begun in the present choice.
func (q *Queue) beginMeanwhile(v Version) {
	w := q.wanted[v]
	if w == nil || w.begun {
		return
	}
	for _, b := range w.askers {
		if a := b.account; a.main == b.build && b.open[b.place] {
			a.meanwhileUs += w.us
			q.shares.meanwhile = append(q.shares.meanwhile, a)
		}
	}
}

func (q *Queue) forgetMeanwhile() {
	for _, a := range q.shares.meanwhile {
		a.meanwhileUs = 0
	}
	clear(q.shares.meanwhile)
	q.shares.meanwhile = q.shares.meanwhile[:0]
}

func (s *shares) message() *snapshotv1.StepsSharing {
	m := &snapshotv1.StepsSharing{GivenUs: s.givenUs, AtUs: s.atUs, Opened: s.opened}
	for _, a := range s.accounts {
		of := &snapshotv1.StepsAccount{
			Change: a.change, Revision: a.revision, Number: a.number, Weight: a.weight, ThroughUs: a.throughUs, LeftUs: a.leftUs,
			SinceUs: a.sinceUs, ThroughAtUs: a.throughAtUs,
		}
		m.Accounts = append(m.Accounts, of)
	}
	return m
}

// restoreShares restores the accounts, and gives them the builds that ask for versions.
func (q *Queue) restoreShares(m *snapshotv1.StepsSharing) {
	q.shares.givenUs, q.shares.atUs, q.shares.opened = m.GetGivenUs(), m.GetAtUs(), m.GetOpened()
	for _, of := range m.GetAccounts() {
		q.shares.add(&account{
			changeKey: changeKey{of.Change, of.Revision}, number: of.Number, weight: of.Weight, throughUs: of.ThroughUs, leftUs: of.LeftUs,
			sinceUs: of.SinceUs, throughAtUs: of.ThroughAtUs,
		})
	}
	asking := slices.DeleteFunc(slices.Clone(q.order), func(b *build) bool { return b.slot == 0 })
	slices.SortFunc(asking, func(a, b *build) int { return cmp.Compare(a.started, b.started) })
	for _, b := range asking {
		q.joinAccount(b)
	}
	q.settleAccounts()
}
