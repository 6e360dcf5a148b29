package stack_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/tools/client"
	"landfall.build/tools/shadow"
)

// apart runs a test beside others, but on no Kafka: a shadow has a log of its own.
func apart(t *testing.T) {
	t.Helper()
	if os.Getenv(kafkatest.Variable) != "" {
		t.Skip("landfall up keeps no shadow on the brokers of a configuration")
	}
	t.Parallel()
}

// asShadow makes the queue a shadow of the repository's mainline.
func asShadow(c *configuration.Configuration) *configuration.Configuration {
	q := c.Queues[queue]
	q.Shadow = configuration.On
	c.Queues[queue] = q
	return c
}

// startShadow starts a stack whose queue is a shadow.
func startShadow(t *testing.T, of *configuration.Configuration, last int) (c *client.Client, shadowed string, stop func()) {
	t.Helper()
	again := *of
	config := &again // Prepare puts the shadow in place of the repository
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	followers, err := shadow.Prepare(t.Context(), shadow.Options{Configuration: config, Logger: logger, Last: last})
	if err != nil {
		t.Fatal(err)
	}
	s, c := start(t, config)
	unfollow := shadow.Follow(context.Background(), followers, s.Backend())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			unfollow()
			s.Close()
			shadow.Close(followers)
		}
	}
	t.Cleanup(stop)
	return c, config.RepositoryOf(config.Queues[queue]).URL, stop
}

// pushed puts a commit onto the mainline, as others do, and returns the change that it is in the shadow.
func (r *repository) pushed(title string, files map[string]string) string {
	r.t.Helper()
	for path, text := range files {
		r.write(path, text)
	}
	r.commit(title)
	r.git("push", "-q", "origin", "main")
	return r.git("rev-parse", "--short=12", "HEAD")
}

// sameFiles waits until the shadow has the files of the mainline, and nothing is left to decide.
func (r *repository) sameFiles(shadowed string) {
	r.t.Helper()
	want := r.run(r.bare, "git", "rev-parse", "main^{tree}")
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got := r.run(shadowed, "git", "rev-parse", "main^{tree}")
		open := r.run(shadowed, "git", "for-each-ref", "refs/shadow/open")
		if got == want && open == "" {
			return
		}
		if time.Since(began) > patience {
			r.t.Fatalf("the shadow's files are %s, the mainline's %s, and open are %q", got, want, open)
		}
	}
}

// TestAShadowDecidesWhatOthersLandAndPushesNothing has a mainline with a red commit, the commit that repairs it, a merge and a renamed
// file, and a restart.
func TestAShadowDecidesWhatOthersLandAndPushesNothing(t *testing.T) {
	apart(t)
	r := newRepository(t)
	config := asShadow(configured(t, r, t.TempDir()))
	before := r.pushed("before the last one", map[string]string{"f0/z.txt": "z\n"})
	want := map[string]string{r.pushed("the last one", map[string]string{"f0/y.txt": "y\n"}): "landed"}
	c, shadowed, stop := startShadow(t, config, 1)

	want[r.pushed("one", map[string]string{"f0/b.txt": "b\n"})] = "landed"
	want[r.pushed("red", map[string]string{"f1/a.txt": "a bug\n", "f1/new.txt": "new\n"})] = "rejected"
	r.sameFiles(shadowed)
	if queues, err := c.Queues(t.Context()); err != nil || len(queues) != 1 || !queues[0].Shadow {
		t.Errorf("the queues are %+v, %v", queues, err)
	}
	// What lands on a red mainline in the same target cannot be judged there.
	onRed := r.pushed("on red", map[string]string{"f1/other.txt": "other\n"})
	if v := settled(t, c, onRed); v.State != "cancelled" || !strings.Contains(v.Why, "the mainline is red in //f1") {
		t.Errorf("on a red mainline the change is %s: %s", v.State, v.Why)
	}
	want[r.pushed("repaired", map[string]string{"f1/a.txt": "fine again\n"})] = "landed"
	r.git("checkout", "-q", "-b", "side", "HEAD~3")
	r.write("f2/b.txt", "1\n")
	r.commit("side 1")
	r.write("f2/b.txt", "2\n")
	r.commit("side 2")
	r.git("checkout", "-q", "main")
	r.git("merge", "-q", "--no-ff", "-m", "merged", "side")
	r.git("push", "-q", "origin", "main")
	want[r.git("rev-parse", "--short=12", "HEAD")] = "landed"
	r.git("mv", "f3/a.txt", "f3/c.txt")
	want[r.pushed("renamed", map[string]string{"f3/b.txt": "b\n"})] = "landed"
	check := func() {
		t.Helper()
		for change, state := range want {
			if v := settled(t, c, change); v.State != state {
				t.Errorf("%s (%s) is %s, want %s: %s; %+v %+v", change, v.Title, v.State, state, v.Why, v.Analysis, v.Timeline)
			} else if state == "rejected" && (v.Rejection == nil || len(v.Rejection.Failed) == 0 || v.Rejection.Failed[0].Target != "//f1") {
				t.Errorf("the rejection names %+v", v.Rejection)
			}
		}
		r.sameFiles(shadowed)
	}
	check()
	if v, err := c.Change(t.Context(), queue, before); err == nil {
		t.Errorf("what landed before is %+v", v)
	}
	stop()

	want[r.pushed("while it was away", map[string]string{"f2/c.txt": "c\n"})] = "landed"
	c, _, stop = startShadow(t, config, 0)
	check()
	stop()
	if refs := strings.Fields(r.run(r.bare, "git", "for-each-ref", "--format=%(refname)")); len(refs) != 1 {
		t.Errorf("the repository has %v", refs)
	}
	if got, want := r.run(r.bare, "git", "rev-parse", "main"), r.git("rev-parse", "HEAD"); got != want {
		t.Errorf("the mainline is at %s, and was put to %s", got, want)
	}
}

// TestAShadowTakesARevertAfterWhatItReverts, although it changes nothing before that is decided, and so a commit that reverts some of it.
func TestAShadowTakesARevertAfterWhatItReverts(t *testing.T) {
	apart(t)
	r := newRepository(t)
	c, shadowed, _ := startShadow(t, asShadow(configured(t, r, t.TempDir())), 0)
	// They are pushed at once, so that all of them are there when the first is handed over.
	r.write("f1/a.txt", "a bug\n")
	r.commit("red")
	red := r.git("rev-parse", "--short=12", "HEAD")
	r.git("revert", "--no-edit", "HEAD")
	reverted := r.git("rev-parse", "--short=12", "HEAD")
	r.write("f2/a.txt", "other\n")
	r.write("f2/b.txt", "a bug\n")
	r.commit("red too")
	redToo := r.git("rev-parse", "--short=12", "HEAD")
	r.git("rm", "-q", "f2/b.txt")
	partly := r.pushed("partly reverted", map[string]string{"f3/b.txt": "b\n"})
	for change, state := range map[string]string{red: "rejected", reverted: "landed", redToo: "rejected", partly: "landed"} {
		if v := settled(t, c, change); v.State != state {
			t.Errorf("%s (%s) is %s, want %s: %s", change, v.Title, v.State, state, v.Why)
		}
	}
	r.sameFiles(shadowed)
	// Each is as it was handed over: nothing was taken past the queue but what it rejected.
	subjects := strings.Split(r.run(shadowed, "git", "log", "--first-parent", "--reverse", "--format=%s", "main"), "\n")
	at := func(subject string) int { return slices.Index(subjects, subject) }
	if len(subjects) != 5 || at("red") < 0 || at(`Revert "red"`) < at("red") || at("red too") < 0 || at("partly reverted") < at("red too") {
		t.Errorf("the shadow has %q", subjects)
	}
}

// TestAShadowFollowsAMainlineThatIsRewritten by taking its files as they are.
func TestAShadowFollowsAMainlineThatIsRewritten(t *testing.T) {
	apart(t)
	r := newRepository(t)
	r.pushed("dropped", map[string]string{"f0/b.txt": "b\n"})
	c, shadowed, _ := startShadow(t, asShadow(configured(t, r, t.TempDir())), 0)
	r.git("reset", "-q", "--hard", "HEAD~1")
	r.write("f1/b.txt", "b\n")
	r.commit("instead")
	r.git("push", "-q", "-f", "origin", "main")
	r.sameFiles(shadowed)
	if v := settled(t, c, r.pushed("after it", map[string]string{"f2/b.txt": "b\n"})); v.State != "landed" {
		t.Errorf("it is %s: %s", v.State, v.Why)
	}
	r.sameFiles(shadowed)
}

// TestAShadowNeedsNoRightToPush, as it only reads.
func TestAShadowNeedsNoRightToPush(t *testing.T) {
	apart(t)
	r := newRepository(t)
	config := asShadow(configured(t, r, t.TempDir()))
	c, _, _ := startShadow(t, config, 0)
	change := r.pushed("one", map[string]string{"f0/b.txt": "b\n"})
	r.hook("pre-receive", "#!/bin/sh\nexit 1\n")
	if v := settled(t, c, change); v.State != "landed" {
		t.Errorf("it is %s: %s", v.State, v.Why)
	}
}
