package view

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// Bounds on what is kept of direct pushes, and of what people read of one.
const (
	maxPushes       = 32
	maxPushTargets  = 500
	maxPushedAuthor = 80
	maxPushedTitle  = 80
)

// push is a commit that came to the mainline past the queue.
type push struct {
	commit, author, title string
	// analyzed is set once it is known what the push affects: the targets, or everything if there are too many of them. hashes has the
	// version that it gave each of the targets.
	analyzed   bool
	everything bool
	targets    []string
	hashes     []string
	// landed are targets that changes landed in since: they were proven green then.
	landed []string
}

// affects reports whether a push gave a target another version, and which one if that is kept.
func (p *push) affects(target string) (v version, does bool) {
	if i := slices.Index(p.targets, target); i >= 0 {
		v.target = target
		if i < len(p.hashes) {
			v.hash = p.hashes[i]
		}
		return v, true
	}
	return version{target: target}, p.everything
}

// foldPush keeps a commit that was pushed past the queue. What the mainline held before the queue is none.
func (q *Queue) foldPush(f *eventsv1.MainlineMoved) {
	if f.Initial {
		return
	}
	q.pushes = append(q.pushes, &push{commit: f.To, author: pushedWord(f.Author, maxPushedAuthor), title: pushedWord(f.Title, maxPushedTitle)})
	q.pushes = q.pushes[max(0, len(q.pushes)-maxPushes):]
}

// foldPushAnalyzed takes what a push affects.
func (q *Queue) foldPushAnalyzed(f *eventsv1.MainlineAnalyzed) {
	i := slices.IndexFunc(q.pushes, func(p *push) bool { return p.commit == f.To })
	if i < 0 || q.pushes[i].analyzed {
		return
	}
	p := q.pushes[i]
	p.analyzed = true
	list := f.Affected.GetTargets()
	p.everything = f.Affected.GetAll() || len(list) > maxPushTargets
	for _, t := range list[:min(len(list), maxPushTargets)] {
		p.targets, p.hashes = append(p.targets, t.Target), append(p.hashes, t.Hash)
	}
}

// landOverPushes notes in which targets a change has landed: what broke them is none of the pushes before.
func (q *Queue) landOverPushes(f *eventsv1.ChangeLanded) {
	if len(q.pushes) == 0 {
		return
	}
	names := slices.Clone(f.Deleted)
	for _, p := range f.Proof {
		names = append(names, p.GetVersion().GetTarget())
	}
	for _, p := range q.pushes {
		for _, name := range names {
			if _, affected := p.affects(name); !affected && p.analyzed && name != targets.Repository {
				continue
			}
			if at, had := slices.BinarySearch(p.landed, name); !had {
				p.landed = slices.Insert(p.landed, at, name)
			}
		}
		p.landed = p.landed[:min(len(p.landed), maxPushTargets)] // a push that affects everything may have more
	}
}

// suspects returns the pushes one of which broke a target that is red on the mainline, oldest first: those that gave it another version
// since the last one that is known to be green, up to the first one that is known to be red.
func (q *Queue) suspects(target string) (out []*push) {
	const passed, failed = eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	known := false // the first red one is in out
	for _, p := range q.pushes {
		v, affects := p.affects(target)
		if !affects || slices.Contains(p.landed, target) || slices.Contains(p.landed, targets.Repository) {
			continue
		}
		whole, _ := p.affects(targets.Repository)
		switch outcome := q.outcomeAt(v); {
		case outcome == passed, outcome == 0 && q.outcomeAt(whole) == passed: // the whole repository is green only if each target is
			out, known = nil, false
		case !known:
			out, known = append(out, p), outcome == failed
		}
	}
	return out
}

// redSince returns the oldest push that broke a target which is red on the mainline, nil if none that is kept did.
func (q *Queue) redSince() *RedSince {
	var since *RedSince
	first := len(q.pushes)
	for _, target := range without(q.mainlineRed(), q.redUnproven()) {
		list := q.suspects(target)
		if len(list) == 0 {
			continue
		}
		switch place := slices.Index(q.pushes, list[0]); {
		case place > first:
			continue
		case place < first:
			p := list[0]
			author, _, _ := strings.Cut(p.author, " <")
			first, since = place, &RedSince{Commit: p.commit, Author: author, Title: p.title, Suspects: len(list)}
		}
		since.Suspects = min(since.Suspects, len(list))
		for _, p := range list {
			v, _ := p.affects(target)
			for _, a := range q.steps.attempts[v] {
				if a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && (since.At.IsZero() || a.finished.Before(since.At)) {
					since.At = a.finished
				}
			}
		}
	}
	return since
}

// outcomeAt returns how the steps of a version ended, unspecified if they did not.
func (q *Queue) outcomeAt(v version) eventsv1.StepOutcome {
	if a := q.steps.settling(v); a != nil && v.hash != "" {
		return a.outcome
	}
	return eventsv1.StepOutcome_STEP_OUTCOME_UNSPECIFIED
}

// maxSuspects is how many suspects a sentence names.
const maxSuspects = 3

// brokenBy names the push that broke a target, or the suspects, as the subject of a sentence.
func (q *Queue) brokenBy(target string) string {
	list := q.suspects(target)
	switch len(list) {
	case 0:
		return "a direct push"
	case 1:
		return "a direct push (" + list[0].name() + ")"
	}
	var said []string
	for _, p := range list[:min(len(list), maxSuspects)] {
		said = append(said, p.name())
	}
	text := strings.Join(said, "; ")
	if more := len(list) - len(said); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("one of %d direct pushes (%s)", len(list), text)
}

// pushedWord returns what a commit says of itself as one printable line of at most so many bytes.
func pushedWord(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return clip(strings.Join(strings.Fields(text), " "), most)
}

// name names the push for a sentence: its commit, author and subject.
func (p *push) name() string {
	text := events.ShortID(p.commit)
	if author, _, _ := strings.Cut(p.author, " <"); author != "" {
		text += " by " + author
	}
	if p.title != "" {
		text += ", " + quoted(p.title)
	}
	return text
}

// pushOf returns the newest push that affects one of the targets, in brackets and behind a space; "" if none that is kept does.
func (q *Queue) pushOf(of ...string) string {
	for i := len(q.pushes) - 1; i >= 0; i-- {
		p := q.pushes[i]
		if p.everything || slices.ContainsFunc(p.targets, func(t string) bool { return slices.Contains(of, t) }) {
			return " (" + p.name() + ")"
		}
	}
	return ""
}

// pushBeingAnalyzed returns the oldest push of which it is not known what it affects, in brackets and behind a space; "" if there
// is none.
func (q *Queue) pushBeingAnalyzed() string {
	for _, p := range q.pushes {
		if !p.analyzed {
			return " (" + p.name() + ")"
		}
	}
	return ""
}

func (q *Queue) pushesSnapshot() (out []*snapshotv1.GatewayPush) {
	for _, p := range q.pushes {
		out = append(out, &snapshotv1.GatewayPush{Commit: p.commit, Author: p.author, Title: p.title, Analyzed: p.analyzed, Everything: p.everything, Targets: p.targets, Hashes: p.hashes, Landed: p.landed})
	}
	return out
}

func (q *Queue) restorePushes(list []*snapshotv1.GatewayPush) {
	for _, p := range list {
		q.pushes = append(q.pushes, &push{p.Commit, p.Author, p.Title, p.Analyzed, p.Everything, p.Targets, p.Hashes, p.Landed})
	}
}
