package admission

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays testdata/*.txt. The queue holds at most 5 changes, of at most 3 entries, that require at most 2
// others. The commands are:
//
//	land [CHANGE] [revision=N] [commits=1,2] [ref=NAME] [requires=A,B] [held]
//	                         a land request; "held" if the mainline is already as the change would leave it
//	intended CHANGE, landed CHANGE, rejected CHANGE, cancelled CHANGE, dropped CHANGE
//	                         what becomes of the newest revision; a force-push drops what landed
//
// The output is the answer, and who is pending.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w, requests, dropped := newWorld(), 0, map[string]bool{}
		w.known.Dropped = func(change string) bool { return dropped[change] }
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			name := ""
			if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
				name = d.CmdArgs[0].Key
			}
			ref := &eventsv1.ChangeRef{Change: name, Revision: w.known.Lineup.Known(name)}
			switch d.Cmd {
			case "land":
				requests++
				r := request(name, 0)
				d.MaybeScanArgs(t, "revision", &r.Revision)
				for _, text := range names(t, d, "commits") {
					n, err := strconv.Atoi(text)
					if err != nil {
						t.Fatalf("%s: %v", d.Pos, err)
					}
					r.Entries = append(r.Entries, &eventsv1.Entry{Commit: commit(n)})
				}
				for _, ref := range names(t, d, "ref") {
					r.Entries = append(r.Entries, &eventsv1.Entry{Ref: ref})
				}
				r.Requires = names(t, d, "requires")
				w.held = d.HasArg("held")
				m := w.land(t, fmt.Sprint("request", requests), r)
				return w.answered(r, m)
			case "intended":
				w.apply(&eventsv1.LandIntended{Change: ref, Commits: []string{name}})
			case "landed":
				w.apply(&eventsv1.ChangeLanded{Change: ref, Commits: []string{name}})
			case "rejected":
				w.apply(&eventsv1.ChangeRejected{Change: ref})
			case "cancelled":
				w.apply(&eventsv1.ChangeCancelled{Change: name})
			case "dropped":
				dropped[name] = true
			default:
				t.Fatalf("%s: no such command", d.Pos)
			}
			return w.pending()
		})
	})
}

// names returns the elements of an argument.
func names(t *testing.T, d *datadriven.TestData, argument string) []string {
	text := ""
	if d.MaybeScanArgs(t, argument, &text); text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (w *world) answered(r *eventsv1.LandRequest, m any) string {
	switch f := m.(type) {
	case *eventsv1.ChangeAdmitted:
		return fmt.Sprintf("admitted %s as revision %d\n%s", f.Admission.Change, f.Admission.Revision, w.pending())
	case *eventsv1.ChangeRevised:
		return fmt.Sprintf("revised %s: revision %d\n%s", f.Admission.Change, f.Admission.Revision, w.pending())
	case *eventsv1.RequestRefused:
		return fmt.Sprintf("%s: %s\n%s", f.Code, f.Message, w.pending())
	}
	return fmt.Sprintf("no answer to %v\n", r)
}

func (w *world) pending() string {
	var names []string
	for _, c := range w.known.Lineup.Order() {
		names = append(names, fmt.Sprintf("%s@%d", c.ID(), c.Revision()))
	}
	return "  pending: " + strings.Join(names, " ") + "\n"
}
