package client

import (
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

func TestAPausedQueueSaysSoOnceAndWhatElseItsChangesWaitFor(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	for _, id := range []string{"a", "b"} {
		f.run("land", id)
	}
	f.run("hold", "b", "--why", "docs first")
	f.run("pause", "--why", "incident 7")
	out, _, _ := f.run("queue")
	if strings.Count(out, "incident 7") != 1 || !strings.Contains(out, "It is being analysed") || !strings.Contains(out, "held by ada: docs first") {
		t.Errorf("the paused queue is\n%s", out)
	}
	if out, _, _ := f.run("status", "b"); !strings.Contains(out, "incident 7") {
		t.Errorf("the change alone does not say that its queue is paused:\n%s", out)
	}
}

func TestAMergeConflictSaysWhatToDo(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	f.run("land", "a")
	f.Fold("main", events.TopicChanges, &eventsv1.ChangeRejected{Change: apitest.Ref("a"), Reason: &eventsv1.Reason{
		Class: eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT, Message: "it does not merge with the mainline as it is: x.txt", Other: "b"}})
	for _, command := range []string{"explain", "watch"} {
		if out, _, _ := f.run(command, "a"); !strings.Contains(out, "x.txt; rebase it on the mainline, push it, and land it again.") {
			t.Errorf("%s:\n%s", command, out)
		}
	}
}
