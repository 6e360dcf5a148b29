package builder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/sandbox"
	"landfall.build/services/builder/execution"
)

// needBazel skips a test where there is no Bazel. LANDFALL_TEST_BAZEL says that there has to be one.
func needBazel(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bazel"); err != nil {
		const missing = "there is no Bazel on this machine: run tools/bazel/install (Debian: apt-get install bazel-bootstrap)"
		if os.Getenv("LANDFALL_TEST_BAZEL") == "required" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
}

// newBazelSite is a site whose queue asks Bazel.
func newBazelSite(t testing.TB) *site {
	needBazel(t)
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	queue := s.config.Queues[queueName]
	queue.Analysis.Adapter, queue.PoolWorkers = configuration.AdapterBazel, 1
	queue.Steps.Environment.Path = "/usr/local/bin:/usr/bin:/bin"
	s.config.Queues[queueName] = queue
	return s
}

// serverOf is what a genrule does to say which Bazel server runs it: when that was started, in the kernel's ticks.
const serverOf = "for p in /proc/[0-9]*; do ! grep -qs A-server[.]jar $$p/cmdline || cut -d' ' -f22 $$p/stat; done"

// TestABazelServerLivesAsLongAsTheTreeThatItRunsIn has real groups of a real Bazel.
func TestABazelServerLivesAsLongAsTheTreeThatItRunsIn(t *testing.T) {
	s := newBazelSite(t)
	if err := execution.Available(t.Context(), sandbox.Outbound); err != nil {
		t.Skip(err)
	}
	build := "genrule(name = 'bad', outs = ['bad.out'], cmd = 'echo p/x.txt:7: no such currency >&2; exit 1', local = True)\n"
	for i := range 5 {
		build += fmt.Sprintf("genrule(name = 'r%d', srcs = ['x.txt'], outs = ['r%d.out'], cmd = \"(%s) | tee %s >$@\", local = True)\n", i, i, serverOf, s.outside(fmt.Sprint("server", i)))
	}
	base := s.commit("", map[string]string{"WORKSPACE": "", "p/BUILD": build, "p/x.txt": "1\n"})
	in := s.start("a", func(o *Options) { o.Workers = 1 })
	group := func(b *eventsv1.BuildScheduled, names ...string) map[string]*eventsv1.StepFinished {
		t.Helper()
		b.Targets = asked(names...)
		s.decide(b)
		if p := s.prepared(b.Build); len(p.Groups) != 1 || len(p.Groups[0].Versions) != len(names) {
			t.Fatalf("groups %v", p.Groups)
		}
		list := map[string]*eventsv1.StepFinished{}
		for name, ends := range s.ends(1, names...) {
			list[name] = ends[0]
			if ends[0].Group == "" || ends[0].Attempt != 1 {
				t.Errorf("%v", ends[0])
			}
		}
		return list
	}
	first := group(s.scheduled("b1", base), "//p:r0", "//p:r1")
	second := group(s.scheduled("b2", base), "//p:r2", "//p:r3")
	head := s.commit(base, map[string]string{"p/x.txt": "2\n"})
	changed := s.scheduled("b3", base)
	changed.Change = change("C", pick(base, head))
	third := group(changed, "//p:r0", "//p:r4")
	for _, f := range []*eventsv1.StepFinished{first["//p:r0"], first["//p:r1"], second["//p:r2"], second["//p:r3"], third["//p:r0"], third["//p:r4"]} {
		if f.Outcome != stepPassed {
			t.Errorf("%v", f)
		}
	}
	if one, other := s.appears("server1"), s.appears("server2"); one != other || strings.Count(one, "\n") != 1 {
		t.Errorf("two groups of one tree had the servers %q and %q", one, other)
	}
	if one, other := s.appears("server1"), s.appears("server4"); one == other || strings.Count(other, "\n") != 1 {
		t.Errorf("groups of two trees had the servers %q and %q", one, other)
	}
	if list := processesOf(t, in.dir); len(list) != 1 {
		t.Errorf("processes of the worker's Bazel: %q", list)
	}
	s.decide(s.scheduled("b4", base, asked("//p:bad", "//p:r4")...))
	if bad := s.finished("//p:bad"); bad.Group == "" || bad.Outcome != stepFailed || !strings.Contains(string(bad.OutputTail), "no such currency") {
		t.Errorf("%v", bad)
	}
	in.stop()
	if list := processesOf(t, in.dir); len(list) > 0 {
		t.Errorf("left of Bazel: %q", list)
	}
}

// processesOf returns the command lines of the Bazel servers that use the scratch folder of a builder.
func processesOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "A-server.jar") && strings.Contains(string(text), filepath.Join(dir, "scratch")) {
			list = append(list, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return list
}

// hostileTool stands for bazel build and bazel test: it runs the file "tool", for the labels $labels with the file of reports
// $reports.
const hostileTool = `#!/bin/sh
case " $* " in *" build "*|*" test "*) ;; *) exec bazel "$@";; esac
reports=/dev/null labels=
for word; do case $word in --build_event_json_file=*) reports=${word#*=};; //*) labels="$labels $word";; esac; done
report() { echo "{\"id\":{\"targetCompleted\":{\"label\":\"$1\"}},\"completed\":{\"success\":$2}}" >>$reports; }
. $OUTSIDE/tool
`

// newHostileSite is a site with a Bazel that does what a file says, a commit with six rules, and that of a change of them.
func newHostileSite(t *testing.T, tool string) (s *site, base, head string) {
	s = newBazelSite(t)
	if err := execution.Available(t.Context(), sandbox.Outbound); err != nil {
		t.Skip(err)
	}
	queue := s.config.Queues[queueName]
	bin := filepath.Join(s.dir, "bin")
	queue.Analysis.Bazel.Binary, queue.Steps.Read = filepath.Join(bin, "tool"), append(queue.Steps.Read, bin)
	s.config.Queues[queueName] = queue
	build := ""
	for i := range 6 {
		build += fmt.Sprintf("genrule(name = 'r%d', srcs = ['x.txt'], outs = ['r%d.out'], cmd = 'cp $< $@')\n", i, i)
	}
	base = s.commit("", map[string]string{"WORKSPACE": "", "p/BUILD": build, "p/x.txt": "1\n"})
	head = s.commit(base, map[string]string{"p/x.txt": "2\n"})
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(bin, "tool"): hostileTool, s.outside("tool"): tool} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s, base, head
}

// lurk leaves a process that goes on spoiling what a later step would see, and look says what there is of it. The process writes over
// files without emptying them first, so that look never finds an empty one.
const (
	lurk = `(trap '' TERM HUP; exec >/dev/null 2>&1; exec setsid sh -c 'echo $$ >/tmp/lurks; while :; do
	echo spoilt 1<>p/x.txt; echo spoilt 1<>"$HOME/.bazelrc"; echo spoilt 1<>"$HOME/../spoilt"; echo x >>$OUTSIDE/alive; sleep 0.01; done') &
	while [ ! -e /tmp/lurks ]; do sleep 0.01; done; `
	look = `{ kill -0 $(cat /tmp/lurks) && echo lurks; cat p/x.txt "$HOME/.bazelrc"; ls "$HOME/.."; } 2>/dev/null | tr '\n' ' ' >$OUTSIDE/found; `
	pass = `for l in $labels; do report $l true; done; `
)

// found waits until a step has looked, and returns what it saw.
func (s *site) found() string {
	s.t.Helper()
	text := s.appears("found")
	if err := os.Remove(s.outside("found")); err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// rests reports whether nobody makes a file longer.
func (s *site) rests(name string) bool {
	s.t.Helper()
	size := func() int64 {
		info, err := os.Stat(s.outside(name))
		if err != nil {
			s.t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	time.Sleep(300 * time.Millisecond)
	return size() == before
}

func TestWhatAStepLeavesRunningReachesNoOtherTree(t *testing.T) {
	s, base, head := newHostileSite(t, look+"[ -e /tmp/lurks ] || ! grep -q 1 p/x.txt || { "+lurk+"}; "+pass)
	in := s.start("a", func(o *Options) { o.Workers = 1 })
	b := func(name string, targets ...string) *eventsv1.BuildScheduled {
		return s.scheduled(name, base, asked(targets...)...)
	}
	s.decide(b("b1", "//p:r0", "//p:r1"))
	s.ends(1, "//p:r0", "//p:r1")
	if found := s.found(); found != "1 home tmp" {
		t.Errorf("the first group found %q", found)
	}
	s.decide(b("b2", "//p:r2", "//p:r3")) // the same code could have been in the same group
	s.ends(1, "//p:r2", "//p:r3")
	if found := s.found(); found != "lurks spoilt spoilt home spoilt tmp" {
		t.Errorf("the second group found %q", found)
	}
	other := b("b3", "//p:r0", "//p:r1")
	other.Change = change("C", pick(base, head))
	s.decide(other)
	s.ends(1, "//p:r0", "//p:r1")
	if found := s.found(); found != "2 home tmp" {
		t.Errorf("the group of another tree found %q", found)
	}
	if !s.rests("alive") {
		t.Error("the process of the tree before goes on")
	}
	// The tree is the first one again, but not the code that made it.
	back := s.commit(head, map[string]string{"p/x.txt": "1\n"})
	same := b("b4", "//p:r4", "//p:r5")
	same.Change, same.Assumed = change("D", pick(head, back)), []*eventsv1.AssumedChange{change("C", pick(base, head))}
	s.decide(same)
	s.ends(1, "//p:r4", "//p:r5")
	if found := s.found(); found != "1 home tmp" {
		t.Errorf("the group of other changes found %q", found)
	}
	in.stop()
	if !s.rests("alive") {
		t.Error("a process outlives its builder")
	}
}

func TestWhatHasFailedIsRunAgainWhereNothingWasLeft(t *testing.T) {
	s, base, _ := newHostileSite(t, look+"[ -e /tmp/lurks ] || { "+lurk+"report //p:r1 false; report //p:r0 true; exit 1; }; echo again >>$OUTSIDE/again; exit 1\n")
	s.policy.FailedRetries = 1
	s.start("a", func(o *Options) { o.Workers, o.serverIdle = 1, time.Hour })
	s.decide(s.scheduled("b1", base, asked("//p:r0", "//p:r1")...))
	first := await(s, func(f *eventsv1.StepFinished) bool { return f.Target == "//p:r1" })
	if found := s.found(); found != "1 home tmp" || first.Outcome != stepFailed {
		t.Errorf("%v found %q", first, found)
	}
	second := await(s, func(f *eventsv1.StepFinished) bool { return f.Target == "//p:r1" })
	if found := s.found(); found != "1 home tmp" || second.Attempt != 2 {
		t.Errorf("%v found %q", second, found)
	}
}

func TestABuildServerEndsOnceItIsIdleOrGaveNoResult(t *testing.T) {
	s, base, _ := newHostileSite(t, look+lurk+"[ ! -e $OUTSIDE/silent ] || exit 0; "+pass)
	s.start("a", func(o *Options) { o.Workers, o.serverIdle = 1, time.Second })
	s.decide(s.scheduled("b1", base, asked("//p:r0", "//p:r1")...))
	s.ends(1, "//p:r0", "//p:r1")
	if s.rests("alive") {
		t.Error("the server does not outlive its group")
	}
	eventually(t, "an idle server to end", func() bool { return s.rests("alive") })
	s.found()
	s.touch("silent")
	s.decide(s.scheduled("b2", base, asked("//p:r2", "//p:r3")...))
	for _, list := range s.ends(2, "//p:r2", "//p:r3") {
		for i, f := range list {
			if !f.Unreported || f.Attempt != uint32(i+1) {
				t.Errorf("%v", f)
			}
		}
	}
	// Of each group, the found of the last one is seen here: it began where nothing was left.
	if found := s.found(); strings.Contains(found, "lurks") {
		t.Errorf("a group after one without results found %q", found)
	}
}

func TestAGroupShowsNoFileByALinkInPlaceOfItsHome(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	s, base, _ := newHostileSite(t, `echo own >"$HOME/own"; show() { echo '{"id":{"actionCompleted":{"label":"//p:r0"}},"action":{"stdout":{"name":"stdout","uri":"file://'$1'"}}}' >>$reports; }
		show "$HOME/own"; sleep 0.5; mv "$HOME" "$HOME.away"; ln -s `+kept+` "$HOME"; show "$HOME/key"; sleep 0.5; report //p:r0 false; report //p:r1 true; exit 1`)
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "key"), []byte("kept from steps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked("//p:r0", "//p:r1")...))
	if f := s.finished("//p:r0"); string(f.OutputTail) != "own\n\n" {
		t.Errorf("shown %q", f.OutputTail)
	}
}

// BenchmarkBazelGroupOnAWarmServer has groups of 100 genrules of one tree, each followed by the same targets by hand on a warm
// server. The first of either starts its server and does not count.
func BenchmarkBazelGroupOnAWarmServer(b *testing.B) {
	const each, rounds = 100, 8
	s := newBazelSite(b)
	build, names := "", []string(nil)
	for i := range (rounds + 1) * each {
		build += fmt.Sprintf("genrule(name = 'r%d', srcs = ['x.txt'], outs = ['r%d.out'], cmd = 'cat $< >$@; echo %d >>$@')\n", i, i, i)
		names = append(names, fmt.Sprintf("//p:r%d", i))
	}
	base := s.commit("", map[string]string{"WORKSPACE": "", "p/BUILD": build, "p/x.txt": "x\n"})
	s.start("a", func(o *Options) { o.Workers, o.serverIdle = 1, time.Hour })
	hand, root := filepath.Join(s.dir, "hand"), "--output_user_root="+filepath.Join(s.dir, "output")
	s.command(s.dir, "clone", "--quiet", s.remote, hand)
	s.command(hand, "checkout", "--quiet", base)
	byHand := func(words ...string) {
		cmd := exec.Command("bazel", append([]string{root}, words...)...)
		cmd.Dir = hand
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	b.Cleanup(func() {
		byHand("shutdown")
		exec.Command("chmod", "-R", "u+w", s.dir).Run()
	})
	for b.Loop() {
		var took, hands, ratios []float64
		for i := range rounds + 1 {
			part := names[i*each : (i+1)*each]
			s.decide(s.scheduled(fmt.Sprint("b", b.N, i), base, asked(part...)...))
			s.prepared(fmt.Sprint("b", b.N, i))
			began := time.Now()
			for _, ends := range s.ends(1, part...) {
				if ends[0].Outcome != stepPassed || ends[0].Group == "" {
					b.Fatal(ends[0])
				}
			}
			group := time.Since(began).Seconds()
			began = time.Now()
			// The strategy that a sandbox leaves to Bazel, and a faster one than its default.
			byHand(append([]string{"build", "--keep_going", "--spawn_strategy=processwrapper-sandbox", "--"}, part...)...)
			if alone := time.Since(began).Seconds(); i > 0 {
				took, hands, ratios = append(took, group), append(hands, alone), append(ratios, group/alone)
			}
		}
		middle := func(list []float64) float64 { slices.Sort(list); return (list[(rounds-1)/2] + list[rounds/2]) / 2 }
		b.ReportMetric(middle(took), "s/group")
		b.ReportMetric(middle(hands), "s/by-hand")
		b.ReportMetric(middle(ratios), "ratio")
	}
}
