package view

import (
	"slices"
	"strings"
	"unicode"

	"landfall.build/engine/snapshotv1"
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
	// analyzed is set once it is known what the push affects: the targets, or everything if there are too many of them.
	analyzed   bool
	everything bool
	targets    []string
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
	if p.everything = f.Affected.GetAll() || len(f.Affected.GetTargets()) > maxPushTargets; p.everything {
		return
	}
	for _, t := range f.Affected.GetTargets() {
		p.targets = append(p.targets, t.Target)
	}
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
func (q *Queue) pushOf(targets ...string) string {
	for i := len(q.pushes) - 1; i >= 0; i-- {
		p := q.pushes[i]
		if p.everything || slices.ContainsFunc(p.targets, func(t string) bool { return slices.Contains(targets, t) }) {
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
		out = append(out, &snapshotv1.GatewayPush{Commit: p.commit, Author: p.author, Title: p.title, Analyzed: p.analyzed, Everything: p.everything, Targets: p.targets})
	}
	return out
}

func (q *Queue) restorePushes(list []*snapshotv1.GatewayPush) {
	for _, p := range list {
		q.pushes = append(q.pushes, &push{p.Commit, p.Author, p.Title, p.Analyzed, p.Everything, p.Targets})
	}
}
