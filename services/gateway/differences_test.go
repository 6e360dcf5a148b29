package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/api"
)

// Where git took long to fetch a revision it was said that the repository does not answer, and where it took too long, that the commits are
// gone.
func TestWhyRevisionsCannotBeComparedIsSaid(t *testing.T) {
	for cause, want := range map[error]error{
		gitrepo.ErrSlow: api.ErrFetching, gitrepo.ErrTooLarge: api.ErrFetching, gitrepo.ErrNoSuchCommit: api.ErrCommitsGone,
	} {
		if err := lacking(gitrepo.Missing{"1": fmt.Errorf("of it: %w", cause)}); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", cause, err, want)
		}
	}
	if err := lacking(nil); err != nil {
		t.Error(err)
	}
}

// TestRevisionsAreComparedWithoutTheMainline: a change is rebased and amended; then its author's own amendment is the difference. Where
// the older revision does not merge with the newer base, the mainline's part is in it, and that is said. Any gateway can tell.
func TestRevisionsAreComparedWithoutTheMainline(t *testing.T) {
	repo := newRepository(t)
	log := newLog(1)
	first := startGateway(t, log, repo, "one")
	revise := func(content string) {
		t.Helper()
		repo.git("checkout", "--quiet", "-B", "feature", "main")
		repo.commit("feature", "feature.txt", content, "Feature")
		repo.git("push", "--quiet", "--force", "origin", "feature")
		if status, answer := first.call("POST", "/v1/queues/main/changes", object{"change": "feature", "entries": []object{{"ref": "feature"}}}); status >= 300 {
			t.Fatal(status, answer)
		}
	}
	term, head := claim(t, log, events.TopicChanges, events.ServiceLander), ""
	onMain := func(file, content string) {
		t.Helper()
		repo.git("checkout", "--quiet", "main")
		before := head
		head = repo.commit("main", file, content, "Elsewhere")
		repo.git("push", "--quiet", "origin", "main")
		appendUnder(t, log, events.TopicChanges, events.ServiceLander, term, &eventsv1.MainlineMoved{From: before, To: head, Initial: before == ""})
		first.eventually("it is known that the mainline moved", func() bool { return first.gateway.queues[testQueue].head() == head })
	}
	revise("one\ntwo\nthree\n")
	onMain("other.txt", "of the mainline\n")
	revise("one\n2\nthree\n")
	onMain("feature.txt", "another file of that name\n")
	revise("one\n2\n3\n")
	second := startGateway(t, log, repo, "two")
	for _, g := range []*running{first, second} {
		const path = "/v1/queues/main/changes/feature/difference"
		for _, c := range []struct {
			query        string
			from, to     float64
			withMainline bool
			has, lacks   string
		}{
			{"?to=2", 1, 2, false, "-two\n+2\n", "other.txt"},
			{"?from=1&to=2", 1, 2, false, "-two\n+2\n", "other.txt"},
			{"?from=2&to=1", 2, 1, false, "-2\n+two\n", "other.txt"},
			{"", 2, 3, true, "-three\n+3\n", "another file"},
			{"?from=1", 1, 3, true, "other.txt", "another file"},
			{"?from=3&to=3", 3, 3, false, "", "diff"},
		} {
			status, answer := g.call("GET", path+c.query, nil)
			if status != 200 {
				t.Fatal(c.query, status, answer)
			}
			text := answer["text"].(string)
			from, to := answer["from"].(object)["revision"], answer["to"].(object)["revision"]
			if from != c.from || to != c.to || (answer["with_mainline"] == true) != c.withMainline || !strings.Contains(text, c.has) || strings.Contains(text, c.lacks) {
				t.Errorf("%s: %v to %v, with mainline: %v:\n%s", c.query, from, to, answer["with_mainline"], text)
			}
		}
		for query, want := range map[string]int{"?from=4": 400, "?to=-1": 400, "?from=x": 400} {
			if status, answer := g.call("GET", path+query, nil); status != want {
				t.Errorf("%s: %d %v", query, status, answer)
			}
		}
		if status, answer := g.call("GET", "/v1/queues/main/changes/ghost/difference", nil); status != 404 || fmt.Sprint(answer["error"].(object)["code"]) != "unknown_change" {
			t.Error(status, answer)
		}
	}
}
