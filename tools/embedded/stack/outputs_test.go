package stack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatStepsLeaveIsGivenToDependentsOfLaterChanges: the dependency is on the mainline, and no build of the later changes runs it for
// itself.
func TestWhatStepsLeaveIsGivenToDependentsOfLaterChanges(t *testing.T) {
	together(t)
	r := newRepository(t)
	config := configured(t, r, t.TempDir())
	s, c := start(t, config)
	defer s.Close()
	push := func(name string, files map[string]string) {
		t.Helper()
		r.git("fetch", "-q", "origin")
		r.git("checkout", "-q", "-B", name, "origin/main")
		for path, content := range files {
			r.write(path, content)
		}
		r.commit(name)
		r.git("push", "-q", "origin", name)
		land(t, c, name, name)
	}
	push("both", map[string]string{
		"gen/landfall.yaml": "targets: [{name: gen, sources: [in], steps: [{name: make, run: [cp, in, out], dir: gen, outputs: [out]}]}]\n",
		"gen/in":            "one\n",
		"app/landfall.yaml": "targets: [{name: app, sources: [want], deps: [//gen], steps: [{name: check, run: [diff, gen/out, app/want]}]}]\n",
		"app/want":          "one\n",
	})
	expect(t, c, "both", "landed")
	push("wrong", map[string]string{"app/want": "two\n"})
	expect(t, c, "wrong", "rejected")
	if err := os.RemoveAll(filepath.Join(config.Data, "outputs", "files")); err != nil {
		t.Fatal(err)
	}
	push("comment", map[string]string{"app/landfall.yaml": "targets: [{name: app, kind: test, sources: [want], deps: [//gen], steps: [{name: check, run: [diff, gen/out, app/want]}]}]\n"})
	expect(t, c, "comment", "landed")
	push("silent", map[string]string{"gen/landfall.yaml": "targets: [{name: gen, sources: [in], steps: [{name: make, run: ['true'], outputs: [out]}]}]\n"})
	if v := settled(t, c, "silent"); v.State != "rejected" || !strings.Contains(v.Why, "//gen") ||
		!strings.Contains(v.Rejection.Failed[0].Message, `Command "make" passed, but the step did not leave gen/out.`) {
		t.Errorf("a target that leaves nothing is %s: %s, %+v", v.State, v.Why, v.Rejection)
	}
}
