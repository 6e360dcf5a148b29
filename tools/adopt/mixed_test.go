package adopt_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/client/clienttest"
)

// TestAMixedRepositoryLandsWhatIsGreenAndNamesWhatIsNot: changes of all kinds are asked for at once. Every commit that landed
// passes the tools of all its parts, run here and not by the queue, and what people read of every rejection has the right
// file and line in its first three lines. LANDFALL_TEST_SLOW lands all 40 changes.
func TestAMixedRepositoryLandsWhatIsGreenAndNamesWhatIsNot(t *testing.T) {
	need(t, "go", "node", "npm", "python3")
	changes := slices.Clone(mixedChanges)
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		changes = slices.DeleteFunc(changes, func(c mixedChange) bool { return !c.small })
	}
	m := newMixed(t)
	first := m.run(m.clone, "git", "rev-parse", "main")
	for _, c := range changes {
		m.ask(c)
	}
	said, err := m.init("--yes")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Log(said)
	queue := m.up(t, func(q *configuration.Queue) {
		ownCache(t)(q)
		q.Workers = 4
	})
	for _, c := range changes {
		body := api.LandBody{Change: c.name}
		for i := range c.commits {
			body.Entries = append(body.Entries, api.LandEntry{Ref: part(c, i)})
		}
		if reply, err := clienttest.Land(t.Context(), queue, "shop", body); err != nil || reply.Outcome != api.OutcomeAdmitted {
			t.Fatalf("land %s: %+v, %v", c.name, reply, err)
		}
	}
	landed := map[string]int{} // by rival
	for _, c := range changes {
		ended := m.end(queue, c.name)
		switch {
		case ended.State == view.StateLanded && (c.path == "" || c.rival != ""):
			landed[c.rival]++
		case ended.State == view.StateRejected && c.path != "":
			m.names(ended, c)
		default:
			t.Errorf("%s is %s: %s", c.name, ended.State, ended.Why)
		}
	}
	for rival, n := range landed {
		if rival != "" && n != 1 {
			t.Errorf("of the rivals %s %d landed", rival, n)
		}
	}
	m.audit(first)
}

// mixed is the mixed repository on this machine.
type mixed struct {
	*repository
	tools string // has pytest
}

func newMixed(t *testing.T) *mixed {
	t.Helper()
	tools := filepath.Join(t.TempDir(), "tools")
	fetch(t, "", "python3", "-m", "venv", tools)
	fetch(t, "", filepath.Join(tools, "bin", "pip"), "install", "--quiet", "pytest")
	t.Setenv("PATH", filepath.Join(tools, "bin")+":"+os.Getenv("PATH"))
	m := &mixed{newRepository(t), tools}
	m.commit("The shop", mixedFiles)
	fetch(t, filepath.Join(m.clone, "web"), "npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
	m.commit("Lock", nil)
	m.push()
	return m
}

// part is the branch of a commit of a change.
func part(c mixedChange, i int) string {
	if i == len(c.commits)-1 {
		return c.name
	}
	return fmt.Sprintf("%s-%d", c.name, i+1)
}

// ask pushes the branches of a change.
func (m *mixed) ask(c mixedChange) {
	m.Helper()
	m.run(m.clone, "git", "checkout", "-q", "--detach", "main")
	for i, edits := range c.commits {
		m.edit(c.name, edits)
		m.run(m.clone, "git", "branch", "-q", part(c, i))
		m.run(m.clone, "git", "push", "-q", "origin", part(c, i))
	}
	m.run(m.clone, "git", "checkout", "-q", "main")
}

// edit commits edits in the clone.
func (m *mixed) edit(message string, edits []mixedEdit) {
	m.Helper()
	now := files{}
	for _, e := range edits {
		text := e.new
		if e.old != "" {
			before, edited := now[e.path]
			if !edited {
				before = m.read(e.path)
			}
			if strings.Count(before, e.old) != 1 {
				m.Fatalf("%s: %s does not hold %q once", message, e.path, e.old)
			}
			text = strings.Replace(before, e.old, e.new, 1)
		}
		now[e.path] = text
	}
	m.commit(message, now)
}

// end waits until a change has left the queue, and returns its explanation.
func (m *mixed) end(queue *client.Client, change string) view.Explanation {
	m.Helper()
	soon := time.After(15 * time.Minute)
	for {
		e, err := queue.Explain(m.Context(), "shop", change, false)
		if err == nil && e.Position == 0 && e.State != view.StateWaiting {
			return e
		}
		select {
		case <-soon:
			m.Fatalf("%s is %s: %s (%v)", change, e.State, e.Why, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// names checks that the first three lines of what people read have the file and line at fault.
func (m *mixed) names(ended view.Explanation, c mixedChange) {
	m.Helper()
	var out strings.Builder
	client.WriteExplanation(&out, time.Now(), ended)
	lines := strings.SplitN(out.String(), "\n", 4)
	head := strings.Join(lines[:min(3, len(lines))], "\n")
	place := m.place(c)
	if !strings.Contains(head+"\n", place) {
		m.Errorf("%s: the first three lines do not name %s:\n%s", c.name, place, out.String())
	}
	m.Logf("%s\n%s", place, head)
}

// place returns file and line at fault of a change: on its branch, or on that of its rival.
func (m *mixed) place(c mixedChange) string {
	m.Helper()
	for _, of := range mixedChanges {
		if of.name != c.name && (c.rival == "" || of.rival != c.rival) {
			continue
		}
		cmd := exec.Command("git", "show", of.name+":"+c.path)
		cmd.Dir = m.clone
		text, err := cmd.Output()
		if err != nil {
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, c.line) {
				return fmt.Sprintf("%s:%d", c.path, i+1)
			}
		}
	}
	m.Fatalf("%s: no line of %s has %q", c.name, c.path, c.line)
	return ""
}

// audit checks out each commit of the mainline since one, and runs the tools of all its parts.
func (m *mixed) audit(since string) {
	m.Helper()
	m.run(m.clone, "git", "fetch", "-q", "origin")
	commits := strings.Fields(m.run(m.clone, "git", "rev-list", "--reverse", "--first-parent", since+"..origin/main"))
	if len(commits) == 0 {
		m.Fatal("nothing landed")
	}
	tree := filepath.Join(m.TempDir(), "audit")
	m.run(m.clone, "git", "worktree", "add", "-q", "--detach", tree, since)
	m.run(filepath.Join(tree, "web"), "npm", "ci", "--silent", "--no-audit", "--no-fund")
	lock := m.run(tree, "git", "rev-parse", "HEAD:web/package-lock.json")
	for _, commit := range append([]string{since}, commits...) {
		m.run(tree, "git", "checkout", "-q", commit)
		m.run(tree, "git", "clean", "-q", "-d", "--force", "-x", "--exclude=node_modules")
		if now := m.run(tree, "git", "rev-parse", "HEAD:web/package-lock.json"); now != lock {
			m.Fatalf("%s changes the lock file, and the modules are those of another", commit)
		}
		for _, argv := range [][]string{
			{".", "go", "build", "./..."}, {".", "go", "vet", "./..."}, {".", "go", "test", "-count=1", "./..."},
			{"web", "npm", "run", "--silent", "build", "-w", "client"}, {"web", "npm", "run", "--silent", "build", "-w", "app"},
			{"web", "npm", "test", "--silent", "-w", "app", "-w", "words"},
			{"py", filepath.Join(m.tools, "bin", "python"), "-m", "pytest", "-q"}, {".", "python3", "db/check.py"},
		} {
			cmd := exec.Command(argv[1], argv[2:]...)
			cmd.Dir = filepath.Join(tree, argv[0])
			cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(tree, "py"), "GOWORK=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				m.Errorf("%s landed and is red: %s: %v\n%s", commit, strings.Join(argv[1:], " "), err, out)
			}
		}
	}
	m.Logf("%d commits of the mainline are green", len(commits))
}
