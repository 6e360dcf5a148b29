// Package foreign folds what came past the queue (M23a): which target versions direct pushes gave the
// mainline, and whether they are proven by now. The enumerator and the lander share it, so that both mean
// the same by "red on the mainline itself".
//
// Pushes are analysed in any order, the mainline moves on meanwhile, and the two readers read the topics
// in different orders. So everything is kept with the move of the mainline that it speaks of, and of two
// facts about a target the one about the later mainline counts, whichever was read first.
package foreign

import (
	"sort"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/targets"
	"landfall.build/services/evidence"
)

// Bounds on what is remembered: how far back a verification of the mainline is understood, and how many
// wait for their base.
const (
	keptMoves = 256
	keptEarly = 64
)

// Pushes is what came past one queue. The zero value is not usable; see New.
type Pushes struct {
	// sequences are the last moves of the mainline, by the commit that they made its head.
	sequences map[string]uint64
	commits   []string
	sequence  uint64
	// awaited are the pushes that are not analysed yet.
	awaited map[span]uint64

	pushed   map[string]version
	observed map[string]version
	// early are preparations on heads that the reader has not heard of: the two topics have no common order.
	early []*eventsv1.BuildPrepared
	// landed is the last move that gave a target a version which the land guard saw proven.
	landed map[string]uint64
	// whole is the last push of which nothing but the whole repository's version is known: what earlier
	// ones did is verified with it.
	whole uint64
}

type span struct{ from, to string }

// version is what a target is as of a move of the mainline.
type version struct {
	sequence uint64
	hash     string // "" if the tree lacks the target
	trivial  bool
}

// New is a mainline that nothing came onto past the queue.
func New() *Pushes {
	return &Pushes{
		sequences: map[string]uint64{}, awaited: map[span]uint64{},
		pushed: map[string]version{}, observed: map[string]version{}, landed: map[string]uint64{},
	}
}

// Moved folds a move of the mainline that is not the queue's. sequence is the number of moves with it.
func (p *Pushes) Moved(f *eventsv1.MainlineMoved, sequence uint64) {
	p.move(f.To, sequence)
	if !f.Initial {
		p.awaited[span{f.From, f.To}] = sequence
	}
}

func (p *Pushes) move(to string, sequence uint64) {
	p.sequence = sequence
	p.sequences[to] = sequence
	p.commits = append(p.commits, to)
	if len(p.commits) > keptMoves {
		if old := p.commits[0]; p.sequences[old]+keptMoves <= sequence {
			delete(p.sequences, old)
		}
		p.commits = append([]string(nil), p.commits[1:]...)
	}
	waiting := p.early
	p.early = nil
	for _, f := range waiting {
		p.Prepared(f)
	}
}

// Landed folds a landing: the versions of its proof are what its targets are now, and what it deletes is gone.
func (p *Pushes) Landed(f *eventsv1.ChangeLanded, sequence uint64) {
	if len(f.Commits) > 0 {
		p.move(f.Commits[len(f.Commits)-1], sequence)
	}
	for _, proof := range f.Proof {
		p.landed[proof.GetVersion().GetTarget()] = sequence
	}
	for _, t := range f.Deleted {
		p.landed[t] = sequence // what a push made of it is no more
	}
	p.forget()
}

// Analyzed folds what one commit that came past the queue did. ok is false for a repeat.
func (p *Pushes) Analyzed(f *eventsv1.MainlineAnalyzed) (sequence uint64, ok bool) {
	at := span{f.From, f.To}
	if sequence, ok = p.awaited[at]; !ok {
		return 0, false
	}
	delete(p.awaited, at)
	if f.GetAffected().GetAll() {
		p.whole = max(p.whole, sequence)
	}
	for _, v := range f.GetAffected().GetTargets() {
		if old := p.pushed[v.Target]; old.sequence <= sequence {
			hash := v.Hash
			if v.Absent {
				hash = ""
			}
			p.pushed[v.Target] = version{sequence, hash, v.Trivial}
		}
	}
	for _, t := range f.GetAffected().GetDeleted() {
		if old, had := p.pushed[t]; had && old.sequence < sequence {
			p.pushed[t] = version{sequence: sequence}
		}
	}
	p.forget()
	return sequence, true
}

// Prepared folds a preparation of a build of the mainline itself: it says what its targets really are as of
// its base.
func (p *Pushes) Prepared(f *eventsv1.BuildPrepared) {
	if f.GetChange().GetChange() != "" {
		return
	}
	sequence, known := p.sequences[f.Base]
	if !known {
		if p.early = append(p.early, f); len(p.early) > keptEarly {
			p.early = append([]*eventsv1.BuildPrepared(nil), p.early[1:]...)
		}
		return
	}
	for _, v := range f.Versions {
		hash := v.Hash
		if v.Absent {
			hash = ""
		}
		if old, had := p.observed[v.Target]; !had || old.sequence <= sequence {
			p.observed[v.Target] = version{sequence, hash, v.Trivial}
		}
	}
	for t, o := range p.observed {
		if o.sequence+keptMoves < p.sequence {
			delete(p.observed, t)
		}
	}
}

// forget drops what no later fact can make count again.
func (p *Pushes) forget() {
	if len(p.awaited) > 0 {
		return
	}
	for t := range p.pushed {
		if _, open := p.at(t); !open {
			delete(p.pushed, t)
		}
	}
	clear(p.landed)
}

// at is the version of a target that came past the queue and that nothing has landed over.
func (p *Pushes) at(target string) (v version, open bool) {
	v, open = p.pushed[target]
	if !open || p.landed[target] >= v.sequence || p.whole > v.sequence {
		return version{}, false
	}
	if o, had := p.observed[target]; had && o.sequence >= v.sequence {
		v.hash, v.trivial, v.sequence = o.hash, o.trivial, o.sequence
	}
	return v, v.hash != ""
}

// Known says that all that came past the queue is analysed.
func (p *Pushes) Known() bool { return len(p.awaited) == 0 }

// Open says whether a target is as a push made it.
func (p *Pushes) Open(target string) bool {
	_, open := p.at(target)
	return open
}

// Has says whether a version is what a push gave its target, so that results about it matter to all.
func (p *Pushes) Has(v evidence.Version) bool {
	at, open := p.at(v.Target)
	return open && at.hash == v.Hash
}

// Blocks says that the target is red, or not known to be green, on the mainline itself: red with a change
// then says nothing about the change. The whole repository is green only if all of it is.
func (p *Pushes) Blocks(target string, ledger *evidence.Ledger, policy *eventsv1.StepPolicy) bool {
	if !p.Known() {
		return true
	}
	unproven := func(t string) bool {
		v, open := p.at(t)
		return open && !v.trivial && ledger.State(evidence.Version{Target: t, Hash: v.hash}, policy) != evidence.Green
	}
	if target != targets.Repository {
		return unproven(target) || unproven(targets.Repository)
	}
	for t := range p.pushed {
		if unproven(t) {
			return true
		}
	}
	return false
}

// Unproven lists, by target, what is to be built on the mainline itself. The whole repository's version
// changes with every commit, so what was found of an older one is asked for again, of the present head,
// without a hash.
func (p *Pushes) Unproven(ledger *evidence.Ledger, policy *eventsv1.StepPolicy) []*eventsv1.TargetVersion {
	var list []*eventsv1.TargetVersion
	for t := range p.pushed {
		v, open := p.at(t)
		if !open || v.trivial {
			continue
		}
		state := ledger.State(evidence.Version{Target: t, Hash: v.hash}, policy)
		switch {
		case state == evidence.Green:
		case t == targets.Repository && v.sequence < p.sequence && (state != evidence.Unknown || p.observed[t].sequence != v.sequence):
			list = append(list, &eventsv1.TargetVersion{Target: t})
		case state == evidence.Unknown:
			list = append(list, &eventsv1.TargetVersion{Target: t, Hash: v.hash})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Target < list[j].Target })
	return list
}

// Red lists, sorted, what is proven red on the mainline itself and was not landed over since: until somebody
// repairs it, the queue says so (M23a).
func (p *Pushes) Red(ledger *evidence.Ledger, policy *eventsv1.StepPolicy) []*eventsv1.TargetVersion {
	var list []*eventsv1.TargetVersion
	for t := range p.pushed {
		v, open := p.at(t)
		if open && !v.trivial && ledger.State(evidence.Version{Target: t, Hash: v.hash}, policy) == evidence.Red {
			list = append(list, &eventsv1.TargetVersion{Target: t, Hash: v.hash})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Target < list[j].Target })
	return list
}
