package analyzer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
)

// gomods is a repository of one Go module.
var gomods = files{
	"go.mod": "module shop\n\ngo 1.26\n", "README.md": "one\n",
	"app/app.go": "package app\n\nimport _ \"shop/store\"\n", "store/store.go": "package store\n", "docs/docs.go": "package docs\n",
}

// raw makes a commit whose tree has entries that no checkout makes, each as git fast-import takes it after M:
// "MODE OBJECT", with the object's text or, for a submodule, its id.
func (w *world) raw(id, on string, entries map[string]string) *eventsv1.LandingCommit {
	w.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit refs/heads/raw-%s\ncommitter Ada <ada@example.com> 1700000300 +0000\ndata 3\nraw\nfrom %s\n", id, on)
	for path, entry := range entries {
		mode, text, _ := strings.Cut(entry, " ")
		quoted := fmt.Sprintf("\"%s\"", strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", "\\n").Replace(path))
		if mode == "160000" {
			fmt.Fprintf(&b, "M %s %s %s\n", mode, text, quoted)
		} else {
			fmt.Fprintf(&b, "M %s inline %s\ndata %d\n%s\n", mode, quoted, len(text), text)
		}
	}
	file := filepath.Join(w.dir, "import")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		w.Fatal(err)
	}
	w.run(filepath.Join(w.dir, "clone"), "-c", "core.protectNTFS=false", "-c", "alias.feed=!git fast-import --quiet <"+file, "feed")
	return &eventsv1.LandingCommit{Head: w.git("rev-parse", "raw-"+id), Base: on}
}

// publish admits a change of one landing commit that is made already.
func (w *world) publish(id string, c *eventsv1.LandingCommit) {
	w.Helper()
	a := &eventsv1.Admission{Queue: queueName, Change: id, Revision: 1, Mainline: w.main, LandingCommits: []*eventsv1.LandingCommit{c}}
	w.git("push", "--quiet", "--force", "origin", c.Head+":refs/heads/changes/"+id)
	w.known[id] = a
	w.append(events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: a})
}

// TestABadChangeConflictsOrIsRefusedAndTheQueueGoesOn: whatever a change brings, its analysis ends in a fact that says
// why, and the one behind it is analysed as if nothing had been.
func TestABadChangeConflictsOrIsRefusedAndTheQueueGoesOn(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries map[string]string
		outcome eventsv1.AnalysisOutcome
		all     bool
		// says is part of the message, touches of δ.
		says, touches string
	}{
		{"a file that does not parse", map[string]string{"store/store.go": "100644 package store\n\nimport (\n\t\"unclosed\n"}, analyzed, false, "", "shop/store@1"},
		{"a broken go.mod", map[string]string{"go.mod": "100644 module shop\n\nrequire x y z\n"}, invalid, false, "go.mod:3:", ""},
		{"a broken go.work", map[string]string{"go.work": "100644 use (\n"}, invalid, false, "go.work:", ""},
		{"a cycle of imports", map[string]string{"store/store.go": "100644 package store\n\nimport _ \"shop/app\"\n"}, analyzed, false, "", "shop/app@1"},
		{"a submodule", map[string]string{"third": "160000 " + strings.Repeat("1", 40)}, analyzed, false, "", ""},
		{"a submodule instead of a package", map[string]string{"store/store.go": "100644 package store\n// 2\n", "vendored/x": "160000 " + strings.Repeat("2", 40)}, analyzed, false, "", "shop/store@1"},
		{"a loop of links", map[string]string{"store/a": "120000 b", "store/b": "120000 a", "store/up": "120000 .", "store/link.go": "120000 link.go"}, analyzed, false, "", "shop/store@1"},
		{"a link out of the repository", map[string]string{"store/out.go": "120000 ../../../etc/passwd", "store/abs.go": "120000 /etc/passwd"}, analyzed, false, "", "shop/store@1"},
		{"a go.mod that is a link", map[string]string{"docs/go.mod": "120000 ../go.mod"}, analyzed, true, "symbolic link", "//:repository@1"},
		{"a link that leads nowhere", map[string]string{"store/empty": "120000 "}, invalid, false, "store/empty", ""},
		{"names of all kinds", map[string]string{"store/a b.go": "100644 package store\n", "store/q\"x.go": "100644 package store\n",
			"store/n\nl.go": "100644 package store\n", "store/\xff\xfe.go": "100644 package store\n", "store/-rf.go": "100644 package store\n", "store/\x1b[2J.go": "100644 package store\n"}, analyzed, false, "", "shop/store@1"},
		{"a huge Go file", map[string]string{"store/huge.go": "100644 package store\n" + strings.Repeat("/", 33<<20)}, analyzed, true, "store/huge.go", "//:repository@1"},
		{"a huge file that is not Go", map[string]string{"assets/huge.bin": "100644 " + strings.Repeat("x", 40<<20)}, analyzed, false, "", ""},
		{"a name .git", map[string]string{"store/.git/config": "100644 x\n"}, invalid, false, ".git", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, gomods, func(q *configuration.Queue) { q.Analysis.Adapter = configuration.AdapterGo })
			w.publish("bad", w.raw("bad", w.main, c.entries))
			w.admit("good", w.main, files{"docs/docs.go": "package docs // 2\n"})
			w.start("a")
			f := w.analysis("bad")
			if f.Outcome != c.outcome || f.Affected.GetAll() != c.all || !strings.Contains(f.Message, c.says) {
				t.Errorf("%v, all %v, %q; want %v, all %v, %q", f.Outcome, f.Affected.GetAll(), f.Message, c.outcome, c.all, c.says)
			}
			if got := fmt.Sprint(targetsOf(f.Affected)); !strings.Contains(got, c.touches) || c.touches == "" && got != "[]" {
				t.Errorf("it affects %s, want %q", got, c.touches)
			}
			check(t, "δ of the next one", targetsOf(w.analysis("good").Affected), []string{"shop/docs@1"})
		})
	}
}

// TestAnObjectThatTheRemoteLacksEndsInAFact: a commit is there, and what it consists of is not, as in a repository that
// was damaged, or pushed to from a clone without the objects.
func TestAnObjectThatTheRemoteLacksEndsInAFact(t *testing.T) {
	w := newWorld(t, gomods, func(q *configuration.Queue) { q.Analysis.Adapter = configuration.AdapterGo })
	w.start("a", func(o *Options) { o.Patience = time.Second })
	head := w.commit(w.main, files{"store/store.go": "package store // with an object that goes\n"}, "bad")
	w.git("push", "--quiet", "origin", head+":refs/heads/changes/bad")
	object := w.git("rev-parse", head+":store/store.go")
	if err := os.Remove(filepath.Join(w.dir, "remote.git", "objects", object[:2], object[2:])); err != nil {
		t.Fatal(err)
	}
	w.known["bad"] = &eventsv1.Admission{Queue: queueName, Change: "bad", Revision: 1, Mainline: w.main,
		LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: w.main}}}
	w.append(events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: w.known["bad"]})
	w.admit("good", w.main, files{"docs/docs.go": "package docs // 2\n"})
	f := w.analysis("bad")
	check(t, "all", f.Affected.GetAll(), true)
	if f.Message == "" {
		t.Error("it does not say why")
	}
	check(t, "δ of the next one", targetsOf(w.analysis("good").Affected), []string{"shop/docs@1"})
}

// TestAShallowRepositoryIsNoReasonToStandStill: the remote itself was cloned with a depth of one, so nothing before its
// mainline's head exists anywhere.
func TestAShallowRepositoryIsNoReasonToStandStill(t *testing.T) {
	w := newWorld(t, gomods, func(q *configuration.Queue) { q.Analysis.Adapter = configuration.AdapterGo })
	w.push(files{"docs/docs.go": "package docs // past\n"})
	shallow := filepath.Join(w.dir, "shallow.git")
	w.run(w.dir, "clone", "--quiet", "--bare", "--depth=1", "file://"+filepath.Join(w.dir, "remote.git"), shallow)
	repository := w.config.Repositories["code"]
	repository.URL = shallow
	w.config.Repositories["code"] = repository
	w.git("remote", "set-url", "origin", shallow)
	w.admit("change", w.main, files{"store/store.go": "package store // 2\n"})
	w.start("a")
	check(t, "δ", targetsOf(w.analysis("change").Affected), []string{"shop/app@1", "shop/store@1"})
}
