// Package directpush folds the commits that came past the queue (M23a): which target versions they gave the mainline, and
// whether these are proven by now. The enumerator and the lander share it, so that both mean the same by "red on the
// mainline itself".
//
// Pushes are analysed in any order, the mainline moves on meanwhile, and the two services read the topics in different
// orders. So each fact is kept with the move of the mainline that it is about, and of two facts about a target the one about
// the later move counts, whichever was read first.
package directpush

import (
	"slices"
	"strings"

	"landfall.build/engine/evidence"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// Bounds on what is remembered: on how old a head a verification of the mainline still counts, and how many verifications
// wait for their head.
const (
	keptMoves = 256
	keptEarly = 64
)

// Pushes are the commits that came past one queue. The zero value is not usable; see New.
type Pushes struct {
	// commits are the last heads of the mainline, oldest first, and sequences the moves that made them the head.
	sequences map[string]uint64
	commits   []string
	sequence  uint64 // the last move
	// awaited holds the moves of the pushes that are not analysed yet.
	awaited map[span]uint64

	// pushed holds, by target, the version that the last push gave it, observed the one that a build of the mainline found.
	pushed   map[string]version
	observed map[string]version
	// early are preparations on heads that were not read yet: the two topics have no common order.
	early []*eventsv1.BuildPrepared
	// landed holds, by target, the last landing that gave it a version, which the land guard saw proven.
	landed map[string]uint64
	// whole is the move of the last push whose only known version is the whole repository's. Earlier pushes are verified
	// with it.
	whole uint64
	// reading is how trees were read in the last survey of the mainline, "" if that says nothing.
	reading string
}

type span struct{ from, to string }

// version is the version of a target as of a move of the mainline.
type version struct {
	sequence uint64
	hash     string // "" if the tree lacks the target
	trivial  bool
	// inherited: no push gave it; see Pushes.Doubted.
	inherited bool
	// surveyed: a survey of the mainline found it; see Pushes.Surveyed.
	surveyed bool
}

func versionAt(sequence uint64, v *eventsv1.TargetVersion) version {
	if v.Absent {
		return version{sequence: sequence, trivial: v.Trivial}
	}
	return version{sequence: sequence, hash: v.Hash, trivial: v.Trivial}
}

// New returns the state of a mainline without direct pushes.
func New() *Pushes {
	return &Pushes{
		sequences: map[string]uint64{}, awaited: map[span]uint64{},
		pushed: map[string]version{}, observed: map[string]version{}, landed: map[string]uint64{},
	}
}

// Moved folds a move of the mainline that is not the queue's. sequence is the number of the move.
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
		p.commits = slices.Clone(p.commits[1:])
	}
	waiting := p.early
	p.early = nil
	for _, f := range waiting {
		p.Prepared(f)
	}
}

// Landed folds a landing. Its targets have the versions of its proof now, and those that it deletes are gone.
func (p *Pushes) Landed(f *eventsv1.ChangeLanded, sequence uint64) {
	if len(f.Commits) > 0 {
		p.move(f.Commits[len(f.Commits)-1], sequence)
	}
	for _, proof := range f.Proof {
		p.landed[proof.GetVersion().GetTarget()] = sequence
	}
	for _, t := range f.Deleted {
		p.landed[t] = sequence
	}
	p.forget()
}

// Analyzed folds the analysis of a push and returns the push's move. ok is false for a repeat.
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
			p.pushed[v.Target] = versionAt(sequence, v)
		}
	}
	for _, t := range f.GetAffected().GetDeleted() {
		// An earlier push that is analysed later may have created the target.
		if old, had := p.pushed[t]; (had || len(p.awaited) > 0) && old.sequence < sequence {
			p.pushed[t] = version{sequence: sequence}
		}
	}
	p.forget()
	return sequence, true
}

// Doubted folds versions that the present head has of targets in which a change failed, and that nothing has proven green
// there: the mainline had them before the queue, or what proved them is forgotten. They are treated as a push's.
func (p *Pushes) Doubted(versions []*eventsv1.TargetVersion) {
	for _, v := range versions {
		doubted := versionAt(p.sequence, v)
		doubted.inherited = true
		p.pushed[v.Target] = doubted
		delete(p.landed, v.Target)
	}
}

// Surveyed folds a survey of the present head, and reports whether it reads trees in another way than the one before. What is open
// has the versions of the survey then.
func (p *Pushes) Surveyed(f *eventsv1.MainlineSurveyed) bool {
	if f.Reading == "" || f.Reading == p.reading {
		return false
	}
	p.reading = f.Reading
	if f.Whole == nil {
		return true // the targets of the head are not known
	}
	found := map[string]string{f.Whole.Target: f.Whole.Hash}
	for _, v := range f.Targets {
		found[v.Target] = v.Hash
	}
	for t := range p.pushed {
		if v, open := p.last(t); open {
			p.pushed[t] = version{sequence: p.sequence, hash: found[t], inherited: v.inherited, surveyed: true}
		}
	}
	return true
}

// ProvenGreen reports whether a version of the mainline's head is known to be green. The whole repository's version changes
// with every commit, so there an older head counts too, if nothing has come past the queue since.
func (p *Pushes) ProvenGreen(v *eventsv1.TargetVersion, ledger *evidence.Ledger, policy *eventsv1.StepPolicy) bool {
	return v.Trivial || v.Absent || len(p.proven(v, ledger, policy)) > 0
}

// proven returns the green versions that stand for a version of the mainline's head: that version itself, and of the whole repository the
// one of an older head, if nothing has come past the queue since.
func (p *Pushes) proven(v *eventsv1.TargetVersion, ledger *evidence.Ledger, policy *eventsv1.StepPolicy) (list []evidence.Version) {
	hashes := []string{v.Hash}
	if at, open := p.at(v.Target); open && v.Target == targets.Repository && at.hash != v.Hash {
		hashes = append(hashes, at.hash)
	}
	for _, hash := range hashes {
		if of := (evidence.Version{Target: v.Target, Hash: hash}); ledger.State(of, policy) == evidence.Green {
			list = append(list, of)
		}
	}
	return list
}

// FailedWith reports whether a version of the mainline's head failed around the last failure of the change's, though it is green now (M23c).
func (p *Pushes) FailedWith(v *eventsv1.TargetVersion, red evidence.Version, ledger *evidence.Ledger, policy *eventsv1.StepPolicy) bool {
	return !v.Trivial && !v.Absent && slices.ContainsFunc(p.proven(v, ledger, policy), func(green evidence.Version) bool { return ledger.FailedWith(green, red) })
}

// Outdated returns the attempts that show a version of the mainline's head to be green, if the change's version became red after all of
// them, else nil. What steps find outside of the tree may have changed since (M23c).
func (p *Pushes) Outdated(v *eventsv1.TargetVersion, red evidence.Version, ledger *evidence.Ledger, policy *eventsv1.StepPolicy) (list []*eventsv1.Proof) {
	if v.Trivial || v.Absent {
		return nil
	}
	for _, green := range p.proven(v, ledger, policy) {
		passed := ledger.Outdated(green, red)
		if passed == nil {
			return nil
		}
		list = append(list, &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: green.Target, Hash: green.Hash}, Build: passed.Build, Attempt: passed.Attempt})
	}
	return list
}

// Prepared folds the preparation of a build of the mainline itself, which found its targets' versions as of its base.
func (p *Pushes) Prepared(f *eventsv1.BuildPrepared) {
	if f.GetChange().GetChange() != "" {
		return
	}
	sequence, known := p.sequences[f.Base]
	if !known {
		if p.early = append(p.early, f); len(p.early) > keptEarly {
			p.early = slices.Clone(p.early[1:])
		}
		return
	}
	for _, v := range f.Versions {
		if p.observed[v.Target].sequence <= sequence {
			p.observed[v.Target] = versionAt(sequence, v)
		}
	}
	for t, o := range p.observed {
		if o.sequence+keptMoves < p.sequence {
			delete(p.observed, t)
		}
	}
}

// forget drops the versions that no later fact can make count again.
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

// last returns the version of a target that came past the queue, as that was found then. open is false if there is none, it was the
// target's end, or something has landed over it since.
func (p *Pushes) last(target string) (v version, open bool) {
	v, open = p.pushed[target]
	if !open || v.hash == "" || p.landed[target] >= v.sequence || p.whole > v.sequence {
		return version{}, false
	}
	return v, true
}

// at is last as of the last build of the mainline: a version that one found replaces the push's, unless the guard doubts the version
// of that very head, or a survey has found it there. Both found it later, and perhaps with other tools.
func (p *Pushes) at(target string) (v version, open bool) {
	if v, open = p.last(target); !open {
		return version{}, false
	}
	if o, had := p.observed[target]; had && (o.sequence > v.sequence || o.sequence == v.sequence && !v.inherited && !v.surveyed) {
		v.hash, v.trivial, v.sequence = o.hash, o.trivial, o.sequence
	}
	return v, v.hash != ""
}

// Known reports whether all pushes are analysed.
func (p *Pushes) Known() bool { return len(p.awaited) == 0 }

// Open reports whether a target has the version that a push gave it.
func (p *Pushes) Open(target string) bool {
	_, open := p.at(target)
	return open
}

// Inherited reports whether a target's open version is one that no push gave it; see Doubted.
func (p *Pushes) Inherited(target string) bool {
	v, open := p.at(target)
	return open && v.inherited
}

// Has reports whether a version is the one that a push gave its target, so that its results matter to every change.
func (p *Pushes) Has(v evidence.Version) bool {
	at, open := p.at(v.Target)
	return open && at.hash == v.Hash
}

// Blocks reports whether a target is red, or not known to be green, on the mainline itself: red with a change then tells
// nothing about the change. The whole repository is green only if every target is.
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

// Unproven returns, sorted by target, the versions to be built on the mainline itself. The whole repository's version
// changes with every commit. So if a build of an older head did not prove it, it is asked for of the present head, without a
// hash.
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
		case t == targets.Repository && v.sequence < p.sequence && (state != evidence.Unknown || !p.isObserved(t, v)):
			list = append(list, &eventsv1.TargetVersion{Target: t})
		case state == evidence.Unknown:
			list = append(list, &eventsv1.TargetVersion{Target: t, Hash: v.hash})
		}
	}
	return byTarget(list)
}

// isObserved reports whether a build of the mainline has found that version.
func (p *Pushes) isObserved(target string, v version) bool {
	o := p.observed[target]
	return o.sequence == v.sequence && o.hash == v.hash
}

func byTarget(list []*eventsv1.TargetVersion) []*eventsv1.TargetVersion {
	slices.SortFunc(list, func(a, b *eventsv1.TargetVersion) int { return strings.Compare(a.Target, b.Target) })
	return list
}

// Red returns, sorted by target, the versions that are proven red on the mainline itself. The queue reports them until
// somebody repairs them (M23a).
func (p *Pushes) Red(ledger *evidence.Ledger, policy *eventsv1.StepPolicy) []*eventsv1.TargetVersion {
	var list []*eventsv1.TargetVersion
	for t := range p.pushed {
		v, open := p.at(t)
		if open && !v.trivial && ledger.State(evidence.Version{Target: t, Hash: v.hash}, policy) == evidence.Red {
			list = append(list, &eventsv1.TargetVersion{Target: t, Hash: v.hash})
		}
	}
	return byTarget(list)
}
