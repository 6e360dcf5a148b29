package admission

import (
	"crypto/sha256"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// Heads is a digest of the commits that a revision is pinned to, in order.
type Heads [16]byte

// HeadsOf returns the digest of an admission's entries. Refs play no part: the commits are what lands.
func HeadsOf(entries []*eventsv1.Entry) Heads {
	h := sha256.New()
	for _, e := range entries {
		h.Write([]byte(e.Commit))
		h.Write([]byte{0})
	}
	var out Heads
	copy(out[:], h.Sum(nil))
	return out
}

// Known is what the queue knows of the changes that were ever admitted.
type Known struct {
	Lineup *lineup.Queue
	// Heads has those of each change's newest revision, pending or not.
	Heads map[string]Heads
	// Dropped, if set, reports whether a change landed and a force-push took it off the mainline: it may land again.
	Dropped func(change string) bool
}

// Request is a land request that Complete has passed, with its id.
type Request struct {
	ID         string
	Land       *eventsv1.LandRequest
	ReceivedUS int64
	// Place is where the request is in landfall.land-requests.
	Place *eventsv1.RequestPlace
}

// Decide returns the record that answers the request: *eventsv1.ChangeAdmitted, *eventsv1.ChangeRevised or
// *eventsv1.RequestRefused. It changes nothing.
func Decide(known Known, limits Limits, r Request, pinned Pinned) proto.Message {
	if pinned.Problem != nil {
		return refused(r, pinned.Problem, 0)
	}
	id := r.Land.Change
	newest := known.Lineup.Known(id)
	heads := HeadsOf(pinned.Entries)
	same := newest > 0 && known.Heads[id] == heads
	dropped := known.Dropped != nil && known.Dropped(id)
	revision := r.Land.Revision
	switch {
	case revision == 0 && same && !dropped:
		return known.unchanged(r, unchanged(known.Lineup, id, newest), newest)
	case revision == newest && same && dropped:
		return known.unchanged(r, refuse(Unchanged, "Revision %d of %s landed with these commits, and a force-push dropped it; leave the revision out to land it again.", revision, quote(id)), newest)
	case revision == 0:
		revision = newest + 1
	case revision == newest && same:
		return known.unchanged(r, unchanged(known.Lineup, id, newest), newest)
	case revision == newest:
		return refused(r, refuse(RevisionTaken, "Revision %d of %s was admitted with other commits; leave the revision out, and the next one is taken.", revision, quote(id)), 0)
	case revision < newest:
		return known.unchanged(r, refuse(Unchanged, "Revision %d of %s was overtaken by revision %d, which stands.", revision, quote(id), newest), revision)
	}
	// The ids of squashed or rebased commits are not on the mainline: only this keeps a landed change from landing once
	// more, as empty commits.
	if settled, _ := known.Lineup.SettledAs(id); same && !dropped && settled.State == lineup.Landed {
		return known.unchanged(r, unchanged(known.Lineup, id, newest), newest)
	}
	if known.Lineup.Intended(id) {
		return refused(r, refuse(TooLate, "%s is being landed at this moment; land what is new under another id, or ask again if it did not land.", quote(id)), 0)
	}
	if pinned.Held && !mayChangeFirst(known.Lineup, r.Land.Requires) {
		return refused(r, refuse(AlreadyIn, "The mainline is already as %s would leave it, in every file that it alters; there is nothing to land.", quote(id)), 0)
	}
	if known.Lineup.Pending(id) == nil && len(known.Lineup.Order()) >= limits.Pending {
		return refused(r, refuse(QueueFull, "The queue holds %d changes, which is its limit; ask again when some have landed.", len(known.Lineup.Order())), 0)
	}
	pinned.LandingCommits = known.aboveRequired(r.Land.Requires, pinned)
	a := admissionOf(r, revision, pinned)
	if problem := requirementProblem(known.Lineup, a); problem != nil {
		return refused(r, problem, 0)
	}
	if newest == 0 {
		return &eventsv1.ChangeAdmitted{Admission: a}
	}
	return &eventsv1.ChangeRevised{Admission: a}
}

// mayChangeFirst reports whether one of the required changes has still to land: it may take back what the mainline holds.
func mayChangeFirst(q *lineup.Queue, requires []string) bool {
	return slices.ContainsFunc(requires, func(id string) bool { return q.RequirementState(id) == lineup.Pending })
}

// aboveRequired returns the landing commits of a change. If its first entry was made on top of a required change, they begin at the
// head of that one, which lands under other ids where it is squashed or rebased: its edits would be in both.
func (k Known) aboveRequired(requires []string, pinned Pinned) []*eventsv1.LandingCommit {
	commits := pinned.LandingCommits
	if len(requires) == 0 || len(pinned.Below) == 0 {
		return commits
	}
	heads := k.headsOf(requires)
	at := slices.IndexFunc(pinned.Below, func(commit string) bool { return heads[HeadsOf([]*eventsv1.Entry{{Commit: commit}})] })
	if at < 0 {
		return commits
	}
	base := pinned.Below[at]
	if last := slices.IndexFunc(commits, func(c *eventsv1.LandingCommit) bool { return c.Head == base }); last >= 0 {
		return commits[last+1:] // each commit lands by itself
	}
	commits = slices.Clone(commits)
	commits[0] = proto.CloneOf(commits[0])
	commits[0].Base = base
	return commits
}

// headsOf returns digests of the heads of some changes and of the pending changes that they require. That of a pending change covers
// its last entry alone.
func (k Known) headsOf(changes []string) map[Heads]bool {
	heads := map[Heads]bool{}
	seen := map[string]bool{}
	for open := slices.Clone(changes); len(open) > 0; open = open[1:] {
		id := open[0]
		if seen[id] {
			continue
		}
		seen[id] = true
		heads[k.Heads[id]] = true
		if c := k.Lineup.Pending(id); c != nil {
			entries := c.Admission.Entries
			heads[HeadsOf(entries[len(entries)-1:])] = true
			open = append(open, c.Admission.Requires...)
		}
	}
	return heads
}

func admissionOf(r Request, revision uint64, pinned Pinned) *eventsv1.Admission {
	land := r.Land
	a := &eventsv1.Admission{
		Queue: land.Queue, Change: land.Change, Revision: revision, RequestId: r.ID,
		Entries: pinned.Entries, LandingCommits: pinned.LandingCommits, Requires: land.Requires,
		Author: land.Author, Team: land.Team, Title: land.Title, Description: land.Description,
		Uri: land.Uri, Host: land.Host, Benefit: land.Benefit, Labels: land.Labels,
		Mainline: pinned.Mainline, ReceivedUs: r.ReceivedUS, Place: r.Place, Actor: land.Actor,
	}
	if a.Author == "" {
		a.Author = pinned.Author
	}
	if a.Title == "" {
		a.Title = pinned.Title
		if a.Description == "" {
			a.Description = pinned.Description
		}
	}
	if a.Host == eventsv1.HostClass_HOST_CLASS_UNSPECIFIED {
		a.Host = eventsv1.HostClass_HOST_CLASS_GIT
	}
	return a
}

func requirementProblem(q *lineup.Queue, a *eventsv1.Admission) *Refusal {
	id := q.MissingRequirement(&lineup.Change{Admission: a})
	if id == "" {
		return nil
	}
	switch state := q.RequirementState(id); {
	case state == lineup.Pending:
		return refuse(CyclicRequirement, "%s requires %s, which requires it in turn; leave one of the two out.", quote(a.Change), quote(id))
	case q.Known(id) == 0:
		return refuse(UnknownRequirement, "The required change %s is not known in this queue; land it first.", quote(id))
	default:
		return refuse(UnknownRequirement, "The required change %s was %s, so this one could never land; land that one again first.", quote(id), state)
	}
}

func unchanged(q *lineup.Queue, id string, revision uint64) *Refusal {
	if q.Pending(id) != nil {
		return refuse(Unchanged, "%s is already in the queue with these commits, as revision %d.", quote(id), revision)
	}
	settled, _ := q.SettledAs(id)
	if settled.State == lineup.Landed {
		return refuse(Unchanged, "%s has landed already with these commits, as revision %d.", quote(id), revision)
	}
	return refuse(Unchanged, "%s was %s with these very commits, as revision %d; to try them once more, retry the change.", quote(id), settled.State, revision)
}

func refused(r Request, why *Refusal, revision uint64) *eventsv1.RequestRefused {
	change := r.Land.GetChange()
	if !ValidID(change) { // the message quotes its beginning
		change = ""
	}
	return &eventsv1.RequestRefused{
		RequestId: r.ID, Change: change, Code: string(why.Code), Message: why.Message,
		StampUs: r.ReceivedUS, Revision: revision, Place: r.Place, Actor: r.Land.GetActor(),
	}
}

func (k Known) unchanged(r Request, why *Refusal, revision uint64) *eventsv1.RequestRefused {
	answer := refused(r, why, revision)
	answer.State = k.StateOf(answer.Change)
	return answer
}

// StateOf returns what has become of a change, "" of one that was never admitted.
func (k Known) StateOf(change string) string {
	switch {
	case k.Lineup.Known(change) == 0:
		return ""
	case k.Dropped != nil && k.Dropped(change):
		return "dropped"
	}
	return k.Lineup.RequirementState(change).String()
}

// Again returns the record for a request under an id that is answered: the answer that it got, once more, or that the id is another
// change's. before is the answer; that of another change names it, if its name is still known.
func Again(known Known, r Request, before Answer) *eventsv1.RequestRefused {
	change := r.Land.GetChange()
	switch was := before.Change(); {
	case was != change:
		return refused(r, refuse(RequestIDTaken, "The request_id %s was used for %s before; give each request its own id, or none.", quote(r.ID), named(was)), 0)
	case before.Admitted != nil:
		revision := before.Admitted.Revision
		return known.unchanged(r, refuse(Unchanged, "This request was answered before: %s was admitted as revision %d.", quote(change), revision), revision)
	}
	again := refused(r, &Refusal{Code: Code(before.Refused.Code), Message: before.Refused.Message}, before.Refused.Revision)
	if again.Code == string(Unchanged) {
		again.State = known.StateOf(change)
	}
	return again
}

func named(change string) string {
	if change == "" {
		return "another change"
	}
	return quote(change)
}

// Refused returns the record for a request that Complete found wrong.
func Refused(r Request, why *Refusal) *eventsv1.RequestRefused { return refused(r, why, 0) }

// Answer to a land request: exactly one of the two is set.
type Answer struct {
	Admitted *eventsv1.Admission
	Refused  *eventsv1.RequestRefused
}

// Change returns the change that the answer is about.
func (a Answer) Change() string { return a.Admitted.GetChange() + a.Refused.GetChange() }
