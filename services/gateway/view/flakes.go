package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// knownFlake says how often a target contradicted itself, "" if it never did.
func (q *Queue) knownFlake(target string) string {
	t := q.flakes.Of(target)
	if t.Flakes == 0 {
		return ""
	}
	return fmt.Sprintf("a known flake: %d of its last %d versions that passed had failed before, with nothing changed", t.Flakes, t.Versions)
}

// Flake is a target that contradicted itself: a version of it failed and then passed, with nothing changed.
type Flake struct {
	Target string `json:"target"`
	// Owners are those that its last build read from the mainline.
	Owners []string `json:"owners,omitempty"`
	// Rate is the share of Versions that were Flakes: those that passed since the first flake. Older ones weigh less.
	Rate     float64 `json:"rate"`
	Versions int64   `json:"versions"`
	Flakes   int64   `json:"flakes"`
	// LostMS is the time that workers spent on attempts which failed and were contradicted.
	LostMS int64 `json:"lost_ms"`
	// LastSeen is when the last flake was seen, in the build LastBuild, of the change Change if that is still kept.
	LastSeen  time.Time `json:"last_seen"`
	LastBuild string    `json:"last_build,omitempty"`
	Change    string    `json:"change,omitempty"`
	// Quarantined is the quarantine of the target that ends last, if there is one.
	Quarantined *Quarantine `json:"quarantined,omitempty"`
}

// Flakes lists the targets that have had a flake, those that cost most first.
func (q *Queue) Flakes() []Flake {
	out := []Flake{}
	for _, t := range q.flakes.Targets() {
		f := Flake{
			Target: t.Name, Owners: q.owners[t.Name], Rate: t.Rate(), Versions: t.Versions, Flakes: t.Flakes, LostMS: t.LostUS / 1000,
			LastSeen: stamp(t.LastUS, time.Time{}), LastBuild: t.LastBuild,
		}
		if b := q.builds.byID[t.LastBuild]; b != nil {
			f.Change = b.of.change
		}
		if of := q.quarantines.Of(t.Name); of != nil {
			quarantined := quarantineOf(of)
			f.Quarantined = &quarantined
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Flake) int { return cmp.Compare(b.LostMS, a.LostMS) })
	return out
}

// foldFlake counts a finished step. If it contradicts earlier attempts, it adds a line to the timeline of each change in whose
// builds they ran.
func (q *Queue) foldFlake(f *eventsv1.StepFinished) {
	t := q.flakes.Apply(f)
	if t == nil {
		return
	}
	if _, known := q.owners[t.Name]; !known {
		q.owners[t.Name] = nil // builds that are prepared later name them
	}
	attempts := q.steps.attempts[version{f.Target, f.Hash}]
	for _, a := range attempts {
		if b := q.builds.byID[a.build]; b != nil && b.prepared != nil {
			q.owners[t.Name] = b.ownersOf(t.Name)
		}
	}
	text := fmt.Sprintf("%s failed and then passed with nothing changed: a flake (%d of its last %d)%s.", t.Name, t.Flakes, t.Versions, ownedBy(q.owners[t.Name]))
	noted := map[ref]bool{}
	for _, a := range attempts {
		if b := q.builds.byID[a.build]; b != nil && !noted[b.of] {
			noted[b.of] = true
			q.noteAt(b.of, stamp(f.FinishedUs, time.Time{}), "flake", text)
		}
	}
}
