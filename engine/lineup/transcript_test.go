package lineup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays testdata/*.txt. Each command is a fact of landfall.changes. A change is written as its id, or as
// id@revision; the revision is 1 otherwise.
//
//	admit CHANGE [requires=(CHANGE, …)]    cancel CHANGE           pause | resume
//	revise CHANGE [requires=(CHANGE, …)]   hold CHANGE NAME        push COMMIT
//	move CHANGE [before=CHANGE]            release CHANGE NAME     intend CHANGE COMMIT
//	reject CHANGE | eject CHANGE           void COMMIT             land CHANGE COMMIT
//	refused-by-remote SENTENCE | taken-by-remote
//
// The answer is what the fact did, and the queue after it.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		q, offset := New(), int64(0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			fact := factOf(t, d)
			offset++
			return describeConsequence(q.Apply(fact, offset)) + table(q)
		})
	})
}

func factOf(t *testing.T, d *datadriven.TestData) proto.Message {
	var first, second string
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	if len(d.CmdArgs) > 1 {
		second = d.CmdArgs[1].Key
	}
	ref := &eventsv1.ChangeRef{Change: first, Revision: 1}
	if id, revision, found := strings.Cut(first, "@"); found {
		ref.Change = id
		if _, err := fmt.Sscan(revision, &ref.Revision); err != nil {
			d.Fatalf(t, "%s: %v", first, err)
		}
	}
	admission := &eventsv1.Admission{Change: ref.Change, Revision: ref.Revision, LandingCommits: []*eventsv1.LandingCommit{{Head: first}}}
	if a, has := d.Arg("requires"); has {
		admission.Requires = a.Vals
	}
	switch d.Cmd {
	case "admit":
		return &eventsv1.ChangeAdmitted{Admission: admission}
	case "revise":
		return &eventsv1.ChangeRevised{Admission: admission}
	case "move":
		before := ""
		d.MaybeScanArgs(t, "before", &before)
		return &eventsv1.ChangeMoved{Change: ref.Change, Before: before}
	case "cancel":
		return &eventsv1.ChangeCancelled{Change: ref.Change}
	case "reject":
		return &eventsv1.ChangeRejected{Change: ref}
	case "eject":
		return &eventsv1.ChangeEjected{Change: ref}
	case "hold":
		return &eventsv1.ChangeHeld{Change: ref.Change, Hold: second, Who: "an operator"}
	case "release":
		return &eventsv1.ChangeReleased{Change: ref.Change, Hold: second}
	case "pause":
		return &eventsv1.QueuePaused{Who: "an operator"}
	case "resume":
		return &eventsv1.QueueResumed{}
	case "refused-by-remote":
		return &eventsv1.LandingsPaused{Message: first}
	case "taken-by-remote":
		return &eventsv1.LandingsResumed{}
	case "push":
		return &eventsv1.MainlineMoved{To: first}
	case "intend":
		return &eventsv1.LandIntended{Change: ref, Commits: []string{second}}
	case "void":
		return &eventsv1.LandVoid{Commit: first}
	case "land":
		return &eventsv1.ChangeLanded{Change: ref, Commits: []string{second}}
	}
	d.Fatalf(t, "no such command")
	return nil
}

func describeConsequence(e Consequence) string {
	if !e.Applied {
		return "ignored: " + e.Why + "\n"
	}
	var did []string
	switch {
	case e.Revised:
		did = append(did, fmt.Sprintf("%s@%d is replaced", e.Left.ID(), e.Left.Revision()))
	case e.Left != nil:
		did = append(did, fmt.Sprintf("%s has %v", e.Left.ID(), map[State]string{Landed: "landed", Rejected: "been rejected", Ejected: "been ejected", Cancelled: "been cancelled"}[e.As]))
	}
	if e.Entered != nil {
		did = append(did, fmt.Sprintf("%s@%d enters", e.Entered.ID(), e.Entered.Revision()))
	}
	if e.Reordered {
		did = append(did, "places change")
	}
	if did == nil {
		return "applied\n"
	}
	return strings.Join(did, "; ") + "\n"
}

func table(q *Queue) string {
	var b strings.Builder
	for i, c := range q.Order() {
		fmt.Fprintf(&b, "  %d %s@%d", i+1, c.ID(), c.Revision())
		if len(c.Admission.Requires) > 0 {
			fmt.Fprintf(&b, " requires %s", strings.Join(c.Admission.Requires, ", "))
		}
		if missing := q.MissingRequirement(c); missing != "" {
			fmt.Fprintf(&b, ", and %s will not land", missing)
		}
		for _, h := range c.Holds {
			fmt.Fprintf(&b, " held by %s", h.Name)
		}
		if q.Intended(c.ID()) {
			fmt.Fprintf(&b, " is being landed as %s", q.Intention.Tip())
		}
		fmt.Fprintln(&b)
	}
	if q.Paused != nil {
		fmt.Fprintf(&b, "  paused by %s\n", q.Paused.Who)
	}
	if q.RefusedByRemote != nil {
		fmt.Fprintf(&b, "  the remote refuses every push: %s\n", q.RefusedByRemote.Message)
	}
	if q.Head != "" {
		fmt.Fprintf(&b, "  the mainline is at %s, its move %d\n", q.Head, q.Sequence)
	}
	return b.String()
}
