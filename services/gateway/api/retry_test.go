package api_test

import (
	"net/http"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

const failed = eventsv1.StepOutcome_STEP_OUTCOME_FAILED

// node folds the state of //x: of a change, whose version is the build's, or with change "" of the mainline. Without a state it is not known.
func (s *server) node(change, build string, state eventsv1.OutcomeState) {
	v := &eventsv1.TargetVersion{Target: "//x", Hash: apitest.VersionOf(build, "//x")}
	class := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{v}}
	if state != 0 {
		class.Outcomes = []*eventsv1.Outcome{{State: state, Version: v}}
	}
	n := &eventsv1.Node{Change: apitest.Ref(change), Analyzed: true, Classes: []*eventsv1.Class{class}}
	if change == "" {
		n.Change, n.Mainline, n.Inherited = &eventsv1.ChangeRef{}, true, []string{"//x"}
	}
	s.Graph("main", &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}})
}

// mainline folds the tree of a build of the mainline itself.
func (s *server) mainline(build string) {
	s.Fold("main", events.TopicBuilds, &eventsv1.BuildPrepared{Build: build, Change: &eventsv1.ChangeRef{}, Base: "m", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
		Versions: []*eventsv1.TargetVersion{{Target: "//x", Hash: apitest.VersionOf(build, "//x")}}})
}

// retry asks for a retry, and returns the one that was written; nil if none was.
func (s *server) retry(path string, status int, says string) (written *eventsv1.ChangeRetried) {
	s.t.Helper()
	before := len(s.Folded("main"))
	response, text := s.do("POST", path, "{}")
	if response.StatusCode != status || !strings.Contains(text, says) {
		s.t.Errorf("%s: %s %s, want %d with %q", path, response.Status, text, status, says)
	}
	if again := response.Header.Get("Retry-After"); (status == http.StatusServiceUnavailable) != (again != "") {
		s.t.Errorf("status %d with Retry-After %q", status, again)
	}
	for _, e := range s.Folded("main")[before:] {
		if f, is := e.Message.(*eventsv1.ChangeRetried); is {
			written = f
		}
	}
	return written
}

// attempts returns the numbers of the attempts that a retry takes back.
func attempts(f *eventsv1.ChangeRetried) (out []uint32) {
	for _, p := range f.GetFailed() {
		out = append(out, p.Attempt)
	}
	return out
}

// TestARetryWaitsForTheRunThatFailed: runs and what follows from them stand in different topics, so a change can be known to be blocked
// before the run for which it is, its own or the mainline's.
func TestARetryWaitsForTheRunThatFailed(t *testing.T) {
	s := serve(t)
	s.land("c")
	const retry, unread = "/v1/queues/main/changes/c/retry", "No run that failed for which c is blocked has been read yet."
	s.Prepare("main", "b1", "c", "//x")
	s.mainline("m1")
	s.node("", "m1", eventsv1.OutcomeState_OUTCOME_STATE_RED)
	s.node("c", "b1", eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED)
	s.retry(retry, 503, unread)
	s.Finish("main", "b1", "//x", 1, failed, "", "")
	s.retry(retry, 503, unread)
	s.Finish("main", "m1", "//x", 1, failed, "", "")
	if got := attempts(s.retry(retry, 200, "What failed in //x")); len(got) != 2 || got[0] != 1 || got[1] != 1 {
		t.Errorf("the retry takes back attempts %v", got)
	}
	s.retry(retry, 503, unread) // what was taken back keeps nobody blocked
	s.Finish("main", "b1", "//x", 2, failed, "", "")
	s.retry(retry, 503, unread)
	s.Finish("main", "m1", "//x", 2, failed, "", "")
	if got := attempts(s.retry(retry, 200, "What failed in //x")); len(got) != 2 || got[0] != 2 || got[1] != 2 {
		t.Errorf("the second retry takes back attempts %v", got)
	}
	s.Finish("main", "b1", "//x", 3, failed, "", "")
	s.node("", "m1", 0)
	s.retry(retry, 409, "//x is being verified on the mainline; there is nothing to retry yet.")
	s.node("c", "b1", eventsv1.OutcomeState_OUTCOME_STATE_GREEN)
	s.retry(retry, 409, "c is in the queue; there is nothing to retry.")
}

// TestARetryOfTheMainlineWaitsForTheRunThatFailed: the mainline can be known to be red before the run that failed there is.
func TestARetryOfTheMainlineWaitsForTheRunThatFailed(t *testing.T) {
	s := serve(t)
	const retry, unread = "/v1/queues/main/retry", "No run that failed for which the mainline is red has been read yet."
	s.mainline("m1")
	s.node("", "m1", 0)
	s.retry(retry, 409, "Nothing is known to fail on the mainline")
	s.node("", "m1", eventsv1.OutcomeState_OUTCOME_STATE_RED)
	s.retry(retry, 503, unread)
	s.Finish("main", "m1", "//x", 1, failed, "", "")
	if got := attempts(s.retry(retry, 200, "What failed on the mainline in //x")); len(got) != 1 || got[0] != 1 {
		t.Errorf("the retry takes back attempts %v", got)
	}
	s.retry(retry, 503, unread)
	s.Finish("main", "m1", "//x", 2, failed, "", "")
	if got := attempts(s.retry(retry, 200, "What failed on the mainline in //x")); len(got) != 1 || got[0] != 2 {
		t.Errorf("the second retry takes back attempts %v", got)
	}
	s.node("", "m1", eventsv1.OutcomeState_OUTCOME_STATE_GREEN)
	s.retry(retry, 409, "Nothing is known to fail on the mainline")
}
