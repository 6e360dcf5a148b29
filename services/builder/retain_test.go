package builder

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/retention"
)

// retaining sets bounds that nothing reaches, and looks all the time.
func (s *site) retaining() *configuration.Retention {
	r := &s.config.Retention
	r.Every = 10 * time.Millisecond
	return r
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come about that %s", what)
		}
	}
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (in *running) log(f *eventsv1.StepFinished) string {
	return filepath.Join(LogDir(in.dir), filepath.FromSlash(f.Log))
}

// madeOld lets a file look as if it had been written some time ago.
func madeOld(t testing.TB, path string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// look waits until all logs have been looked at that are there now: until one that is too old is gone.
func (in *running) look(t testing.TB) {
	t.Helper()
	for i := range 2 {
		// A bait is old before it is among the logs: it could be deleted while it is made old.
		made := filepath.Join(t.TempDir(), "bait")
		if err := os.WriteFile(made, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		madeOld(t, made, 100000*time.Hour)
		bait := filepath.Join(LogDir(in.dir), queueName, "bait-"+strconv.Itoa(i)+".log")
		if err := os.Rename(made, bait); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an old log is deleted", func() bool { return !isThere(bait) })
	}
}

func TestLogsAreDeletedByAgeAndThoseOfFailuresLater(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	bounds := &s.retaining().Logs
	bounds.Age, bounds.FailedAge = 10*time.Hour, 30*time.Hour
	base := s.commit("", scripts(map[string]string{"good": "echo fine", "bad": "echo broken; exit 3"}))
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//good:t")...))
	good := s.finished("//good:t")
	s.decide(s.scheduled("b2", base, asked("//bad:t")...))
	bad := s.finished("//bad:t")
	madeOld(t, in.log(good), 9*time.Hour)
	madeOld(t, in.log(bad), 20*time.Hour)
	if in.look(t); !isThere(in.log(good)) || !isThere(in.log(bad)) {
		t.Fatal("a log is gone before its time")
	}
	madeOld(t, in.log(good), 11*time.Hour)
	eventually(t, "the log of a step that passed is deleted", func() bool { return !isThere(in.log(good)) })
	if in.look(t); !isThere(in.log(bad)) {
		t.Fatal("the log of a failure went with the others")
	}
	madeOld(t, in.log(bad), 31*time.Hour)
	eventually(t, "the log of a failure is deleted", func() bool { return !isThere(in.log(bad)) })
	file, err := os.Open(filepath.Join(filepath.Dir(in.log(bad)), retention.DeletionsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if d, found := retention.FindDeletion(file, filepath.Base(in.log(bad))); !found || d.Bound != "older than 30h (retention.logs.failed_age)" {
		t.Errorf("it is remembered as %v, %v", d, found)
	}
}

func TestLogsAreDeletedBySizeTheOldestFirst(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.retaining().Logs.Size = 40 << 10
	base := s.commit("", scripts(map[string]string{
		"one": "head -c 16384 /dev/zero", "two": "head -c 16384 /dev/zero", "three": "head -c 16384 /dev/zero",
	}))
	in := s.start("a")
	var logs []string
	for i, name := range []string{"one", "two", "three"} {
		s.decide(s.scheduled("b"+name, base, asked("//"+name+":t")...))
		logs = append(logs, in.log(s.finished("//"+name+":t")))
		madeOld(t, logs[i], time.Duration(10-i)*time.Minute)
	}
	eventually(t, "the oldest log is deleted", func() bool { return !isThere(logs[0]) })
	if in.look(t); !isThere(logs[1]) || !isThere(logs[2]) {
		t.Error("more was deleted than had to be")
	}
}

func TestALogToWhichAPendingChangeRefersIsKept(t *testing.T) {
	s := newSite(t, memory.Options{})
	bounds := &s.retaining().Logs
	bounds.Age, bounds.FailedAge, bounds.Size = time.Hour, time.Hour, 1
	base := s.commit("", scripts(map[string]string{"x": "echo x"}))
	head := s.commit(base, map[string]string{"x/more.txt": "more\n"})
	in := s.start("a")
	s.admit("c")
	s.restOnLog()
	b := s.scheduled("b1", base, asked("//x:t")...)
	b.Change = change("c", pick(base, head))
	s.decide(b)
	log := in.log(s.finished("//x:t"))
	madeOld(t, log, 1000*time.Hour)
	if in.look(t); !isThere(log) {
		t.Fatal("the log is gone")
	}
	in.stop()
	in = s.start("a") // reads again what refers to what
	if in.look(t); !isThere(log) {
		t.Fatal("the log is gone after a start")
	}
	s.append(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.ChangeCancelled{Change: "c", Revision: 1})
	eventually(t, "the log is deleted once the change has left", func() bool { return !isThere(log) })
}

func TestARunningStepKeepsItsLogAndItsWorktree(t *testing.T) {
	s := newSite(t, memory.Options{})
	r := s.retaining()
	r.Logs.Age, r.Logs.Size, r.Worktrees.Age, r.Worktrees.Size = time.Nanosecond, 1, time.Nanosecond, 1
	base := s.commit("", scripts(map[string]string{"slow": until("end") + "test -e check.sh && echo whole"}))
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//slow:t")...))
	s.appears("end.runs")
	in.look(t)
	s.touch("end")
	f := s.finished("//slow:t")
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || !strings.Contains(string(f.OutputTail), "whole") {
		t.Fatal(f)
	}
	trees := filepath.Join(in.dir, "worktrees", "a", repository)
	eventually(t, "its worktree is removed when it has ended", func() bool {
		list, _ := os.ReadDir(trees)
		return !slices.ContainsFunc(list, os.DirEntry.IsDir)
	})
	s.decide(s.scheduled("b2", s.commit(base, map[string]string{"slow/more": "m"}), asked("//slow:t")...))
	if f := s.finished("//slow:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		t.Error(f)
	}
}

func TestWorktreesAndScratchOfBuildersThatAreGoneAreRemoved(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.retaining().Worktrees.Age = 10 * time.Hour
	dir := filepath.Join(s.dir, "builder-a")
	var old, kept []string
	for _, instance := range []string{"gone", "alive", "recent"} {
		for _, path := range []string{filepath.Join("worktrees", instance, repository, "1"), filepath.Join("scratch", instance, "1")} {
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Join(path, "locked"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(path, "locked"), 0); err != nil {
				t.Fatal(err)
			}
			if instance != "recent" {
				madeOld(t, path, 11*time.Hour)
				madeOld(t, filepath.Dir(path), 11*time.Hour)
			}
			if instance == "gone" {
				old = append(old, path)
			} else {
				kept = append(kept, path)
			}
		}
	}
	// What a worktree makes beside itself on its way is nobody's worktree.
	probe := filepath.Join(dir, "worktrees", "gone", repository, ".landfall-mode-1-0")
	if err := os.Mkdir(probe, 0o755); err != nil {
		t.Fatal(err)
	}
	madeOld(t, probe, 11*time.Hour)
	kept = append(kept, probe)
	unlock, err := lockInstance(t.Context(), filepath.Join(dir, "instances"), "alive")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	unlockTree, err := retention.TryLock(filepath.Join(dir, "worktrees", "alive", repository, "1.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlockTree()
	in := s.start("a")
	for _, path := range old {
		eventually(t, path+" is removed", func() bool { return !isThere(path) })
	}
	if err := os.MkdirAll(filepath.Join(LogDir(in.dir), queueName), 0o755); err != nil {
		t.Fatal(err)
	}
	in.look(t)
	for _, path := range kept {
		if !isThere(path) {
			t.Errorf("%s is gone", path)
		}
	}
}

// Trees that a build was given long ago may have been pruned since.
func TestTreesOfLongAgoAreMadeAgain(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"x": "echo x"}))
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: s.remote, Dir: filepath.Join(s.dir, "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	b := New(Options{Log: s.log, Configuration: s.config, Repo: func(context.Context, string) (*gitrepo.Repo, error) { return repo, nil }})
	of := &session{Builder: b, shared: newShared(), assemblies: map[string]*assembly{}}
	get := func() *assembly {
		a, err := of.assembled(t.Context(), s.scheduled("b1", base))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := get()
	if get() != a {
		t.Error("they are made again at once")
	}
	a.made = a.made.Add(-gitrepo.MinAge)
	if again := get(); again == a || again.whole != a.whole {
		t.Errorf("of long ago: %+v, then %+v", a, again)
	}
}

// TestAFolderThatCannotBeReadDelaysNobody: what cannot be searched is left, the rest is deleted, and steps run.
func TestAFolderThatCannotBeReadDelaysNobody(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.retaining()
	base := s.commit("", scripts(map[string]string{"x": "echo x"}))
	logs := LogDir(filepath.Join(s.dir, "builder-a"))
	if err := os.MkdirAll(filepath.Join(logs, queueName), 0o755); err != nil {
		t.Fatal(err)
	}
	// A file where a folder of worktrees belongs, and a folder named as a log.
	if err := os.MkdirAll(filepath.Join(logs, queueName, "folder.log"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(logs, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(logs, queueName, retention.DeletionsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	in := s.start("a")
	in.look(t)
	s.decide(s.scheduled("b1", base, asked("//x:t")...))
	if f := s.finished("//x:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		t.Error(f)
	}
}
