package audit

import (
	"errors"
	"strings"
	"testing"

	"landfall.build/tools/audit/audittest"
)

func TestTheAuditGivesStepsWhatTheirDependenciesHaveLeft(t *testing.T) {
	p := audittest.New(t)
	p.Commit("begin", map[string]string{
		"landfall.yaml": "targets:\n" +
			"- {name: gen, sources: [in], steps: [{name: make, run: [cp, in, out], outputs: [out]}]}\n" +
			"- {name: app, sources: [want], deps: [':gen'], steps: [{name: check, run: [diff, out, want]}]}\n",
		"in": "one\n", "want": "one\n",
	})
	red := p.Commit("another input", map[string]string{"in": "two\n"})
	silent := p.Commit("nothing left", map[string]string{"landfall.yaml": "targets:\n" +
		"- {name: gen, steps: [{name: make, run: ['true'], outputs: [out]}]}\n" +
		"- {name: app, deps: [':gen'], steps: [{name: check, run: [cat, out]}]}\n"})
	out, _, err := run(t, "--repo", p.Dir, "--retries", "0")
	if !errors.As(err, &NotGreen{}) || !strings.Contains(out, "1 of 3 commits are green") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{red[:12] + "  another input", "red      //:app", silent[:12], `red      //:gen`, `Command "make" passed, but the step did not leave out.`,
		"unproven //:app", "the outputs of //:gen, on which it depends, were not kept, and could not be made again"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}
