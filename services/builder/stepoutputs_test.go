package builder

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
)

// makes is a repository in which //app:t depends on //lib:t, which depends on //gen:t. The first two leave outputs. Each script is given.
func makes(gen, lib, app string) map[string]string {
	of := func(folder, deps, outputs string) string {
		return "targets: [{name: t, sources: [check.sh], deps: [" + deps + "], steps: [{name: check, run: [sh, check.sh], dir: " + folder + ", outputs: [" + outputs + "]}]}]\n"
	}
	return map[string]string{
		"landfall.yaml":     "targets: []\n",
		"gen/landfall.yaml": of("gen", "", "out"), "gen/check.sh": gen,
		"lib/landfall.yaml": of("lib", "//gen:t", "bin/lib"), "lib/check.sh": lib,
		"app/landfall.yaml": of("app", "//lib:t", ""), "app/check.sh": app,
	}
}

const (
	genScript = "echo run >>$OUTSIDE/gen.runs; mkdir -p out/deep; echo generated >out/deep/a; ln -s deep/a out/link; echo rubbish >rubbish\n"
	libScript = "echo run >>$OUTSIDE/lib.runs; test ! -e ../gen/rubbish || exit 7; mkdir bin; { echo '#!/bin/sh'; echo echo lib of $(cat ../gen/out/link); } >bin/lib; chmod +x bin/lib\n"
	appScript = "test ! -e ../gen/rubbish || exit 7; test -h ../gen/out/link && ../lib/bin/lib >$OUTSIDE/app.said\n"
)

func (s *site) ran(name string) int {
	content, _ := os.ReadFile(s.outside(name + ".runs"))
	return strings.Count(string(content), "\n")
}

func (in *running) text(t testing.TB, f *eventsv1.StepFinished) string {
	t.Helper()
	content, err := os.ReadFile(in.log(f))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// passes builds targets at the mainline, and returns the end of the last.
func (s *site) passes(build, base string, names ...string) (last *eventsv1.StepFinished) {
	s.t.Helper()
	s.decide(s.scheduled(build, base, asked(names...)...))
	for range names {
		last = await(s, func(*eventsv1.StepFinished) bool { return true })
		if last.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			s.t.Fatalf("%s: %v: %s\n%s", last.Target, last.Outcome, last.Reason, last.OutputTail)
		}
	}
	return last
}

func TestAStepIsGivenWhatTheTargetsBelowHaveLeft(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", makes(genScript, libScript, appScript))
	in := s.start("a")
	f := s.passes("b1", base, "//gen:t")
	if text := in.text(t, f); !strings.Contains(text, "outputs: 2 files, 10 bytes, kept") {
		t.Errorf("the log does not say what is kept:\n%s", text)
	}
	if o := f.Outputs; o.GetFiles() != 2 || o.GetBytes() != 10 || !o.GetKept() || f.OutputsGiven != 0 {
		t.Errorf("the record does not say what is kept: %v", o)
	}
	s.passes("b2", base, "//lib:t")
	text := in.text(t, s.passes("b3", base, "//app:t"))
	if s.ran("gen") != 1 || s.ran("lib") != 1 {
		t.Errorf("gen ran %d times, lib %d times", s.ran("gen"), s.ran("lib"))
	}
	if said := s.appears("app.said"); said != "lib of generated\n" {
		t.Errorf("the program says %q", said)
	}
	if !strings.Contains(text, "given the outputs of //gen:t: 2 files, 10 bytes") || !strings.Contains(text, "given the outputs of //lib:t: 1 file, ") {
		t.Errorf("the log does not say what was given:\n%s", text)
	}
}

// TestWhatIsSaidBeforeAStepRunsIsNotItsOutput: what it was given, and what steps print that are run again for it.
func TestWhatIsSaidBeforeAStepRunsIsNotItsOutput(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	base := s.commit("", makes("echo '3 passed in 0.1s'\n"+genScript, libScript, "echo fine"))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//app:t")...))
	if f := s.finished("//app:t"); f.OutputsMade != 2 || f.Tests != 0 {
		t.Errorf("%d outputs are made, and %d tests of others are counted", f.OutputsMade, f.Tests)
	}
	s.decide(s.scheduled("b2", s.commit(base, map[string]string{"app/check.sh": "echo tick 1; exit 3"}), asked("//app:t")...))
	if got, want := s.finished("//app:t").Decisive, []string{"ended with exit code 3: tick 1"}; !slices.Equal(got, want) {
		t.Errorf("decisive lines %q, want %q", got, want)
	}
}

// Were a dependent started on an idle worker, it would make what its dependencies are about to leave.
func TestAStepWaitsForThoseWhoseOutputsItIsGiven(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", makes(until("go")+genScript, libScript, appScript))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//app:t", "//gen:t", "//lib:t")...))
	p := s.prepared("b1")
	if len(p.Needs) != 3 || !p.Needs[0].Given || p.Needs[1].Given || !p.Needs[2].Given {
		t.Errorf("needs: %v", p.Needs)
	}
	s.appears("go.runs")
	s.touch("go")
	for _, want := range []string{"//gen:t", "//lib:t", "//app:t"} {
		f := await(s, func(*eventsv1.StepFinished) bool { return true })
		if f.Target != want || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.OutputsMade != 0 {
			t.Errorf("%s, want %s: %v, %s, made %d", f.Target, want, f.Outcome, f.Reason, f.OutputsMade)
		}
	}
	if s.ran("gen") != 1 || s.ran("lib") != 1 {
		t.Errorf("gen ran %d times, lib %d times", s.ran("gen"), s.ran("lib"))
	}
}

func TestOutputsThatAreGoneOrCorruptAreMadeAgain(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"all gone":       func(t *testing.T, dir string) { each(t, dir, os.Remove) },
		"files gone":     func(t *testing.T, dir string) { each(t, filepath.Join(dir, "files"), os.Remove) },
		"files cut":      func(t *testing.T, dir string) { each(t, filepath.Join(dir, "files"), cut) },
		"files altered":  func(t *testing.T, dir string) { each(t, filepath.Join(dir, "files"), alter) },
		"entries cut":    func(t *testing.T, dir string) { each(t, filepath.Join(dir, "entries"), cut) },
		"entries forged": func(t *testing.T, dir string) { each(t, filepath.Join(dir, "entries"), alter) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, memory.Options{})
			base := s.commit("", makes(genScript, libScript, appScript))
			in := s.start("a")
			s.passes("b1", base, "//gen:t")
			s.passes("b2", base, "//lib:t")
			spoil(t, filepath.Join(in.dir, "outputs"))
			f := s.passes("b3", base, "//app:t")
			text := in.text(t, f)
			if f.OutputsGiven != 2 || f.OutputsMade != 2 || f.Outputs != nil {
				t.Errorf("given %d, made %d, left %v", f.OutputsGiven, f.OutputsMade, f.Outputs)
			}
			if s.ran("gen") != 2 || s.ran("lib") != 2 {
				t.Errorf("gen ran %d times, lib %d times\n%s", s.ran("gen"), s.ran("lib"), text)
			}
			if said := s.appears("app.said"); said != "lib of generated\n" {
				t.Errorf("the program says %q", said)
			}
			if !strings.Contains(text, "the outputs of //lib:t are not kept: its steps are run for them") {
				t.Errorf("the log does not say what was made again:\n%s", text)
			}
		})
	}
}

// Whoever runs the dependent may have to run its dependency.
func TestADependentTakesWhatThoseTakeWhoseOutputsItIsGiven(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.config.Builder.Resources = map[string]int{"memory_gb": 8}
	files := makes("echo x >out\n", libScript, appScript)
	files["gen/landfall.yaml"] = strings.Replace(files["gen/landfall.yaml"], "dir: gen,", "dir: gen, exclusive: [db], resources: {memory_gb: 3},", 1)
	base := s.commit("", files)
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//app:t")...))
	p := s.prepared("b1")
	if len(p.Claims) != 1 || p.Claims[0].Version != 0 || !slices.Equal(p.Claims[0].Exclusive, []string{"db"}) || p.Claims[0].Resources[0].GetAmount() != 3 {
		t.Errorf("it takes %v", p.Claims)
	}
}

// webStore takes whatever it is given.
func webStore(t *testing.T) *httptest.Server {
	var mu sync.Mutex
	kept := map[string][]byte{}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPut {
			kept[r.URL.Path], _ = io.ReadAll(r.Body)
		} else if content, there := kept[r.URL.Path]; there {
			_, _ = w.Write(content)
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(store.Close)
	return store
}

// bucketStore is a service with the bucket shop.
func bucketStore(t *testing.T) *httptest.Server {
	backend := s3mem.New()
	if err := backend.CreateBucket("shop"); err != nil {
		t.Fatal(err)
	}
	store := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(store.Close)
	return store
}

// Two builders with a folder each share a store: the second one runs no step of a dependency again. Steps do not see its secrets.
func TestBuildersFindEachOthersOutputsInASharedStore(t *testing.T) {
	for name, share := range map[string]func(t *testing.T, o *configuration.SharedOutputs){
		"HTTP": func(t *testing.T, o *configuration.SharedOutputs) { o.URL = webStore(t).URL },
		"S3": func(t *testing.T, o *configuration.SharedOutputs) {
			o.URL, o.S3.Endpoint = "s3://shop/outputs", bucketStore(t).URL
			o.User, o.Password.File = "ada", o.Seal.File
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, memory.Options{})
			o := &s.config.Builder.Outputs
			o.Seal.File = filepath.Join(s.dir, "seal")
			if err := os.WriteFile(o.Seal.File, []byte("a key that is long enough\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			share(t, o)
			base := s.commit("", makes("test ! -e "+o.Seal.File+" || exit 9\n"+genScript, libScript, appScript))
			one := s.start("a")
			s.passes("b1", base, "//gen:t")
			s.passes("b2", base, "//lib:t")
			one.stop()
			s.start("b")
			if f := s.passes("b3", base, "//app:t"); f.OutputsGiven != 2 || f.OutputsMade != 0 || s.ran("gen") != 1 {
				t.Errorf("given %d, made %d; gen ran %d times", f.OutputsGiven, f.OutputsMade, s.ran("gen"))
			}
			if said := s.appears("app.said"); said != "lib of generated\n" {
				t.Errorf("the program says %q", said)
			}
		})
	}
}

func each(t *testing.T, dir string, do func(path string) error) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		return do(path)
	})
	if err != nil || n == 0 {
		t.Fatalf("%d files: %v", n, err)
	}
}

func cut(path string) error { return os.Truncate(path, 3) }

// alter changes a byte, and not the size.
func alter(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[len(content)-2] ^= 1
	return os.WriteFile(path, content, 0o600)
}

func TestAStepThatLeavesWhatMayNotBeKeptHasFailed(t *testing.T) {
	for script, want := range map[string]string{
		"true":      "did not leave gen/out",
		"mkdir out": "left no file in gen/out",
		"mkdir out; head -c 3000 /dev/zero >out/a; head -c 3000 /dev/zero >out/b": "left more than 5.1 kB in gen/out (steps.outputs.max_size)",
		"ln -s /etc/passwd out":                                  `left gen/out, a link to "/etc/passwd", which leads out of the output gen/out`,
		"mkdir out; ln -s ../check.sh out/a":                     `left gen/out/a, a link to "../check.sh", which leads out of the output gen/out`,
		"mkdir out; ln -s x/../../check.sh out/a; ln -s . out/x": `left gen/out/a, a link to "x/../../check.sh", which leads out of the output gen/out`,
		"mkdir out; ln -s nothing out/a":                         `left gen/out/a, a link to "nothing", where there is nothing`,
		"ln -s out out":                                          `left gen/out, a link to "out", where there is nothing`,
		"mkdir out; mkfifo out/a":                                "left gen/out/a, which is neither file nor folder but a pipe",
		"mkdir real; echo x >real/x; cd ..; mv gen elsewhere; ln -s elsewhere gen; mkdir gen/out; echo x >gen/out/x": "left gen/out below gen, which is no folder but a link",
		"echo x >out; echo failed; exit 3": `Command "check" ended with exit code 3`,
	} {
		t.Run(want, func(t *testing.T) {
			s := newSite(t, memory.Options{})
			queue := s.config.Queues[queueName]
			queue.Steps.Outputs = configuration.OutputBounds{MaxSize: 5 * configuration.KiB, MaxTotal: 8 * configuration.KiB}
			s.config.Queues[queueName] = queue
			s.policy.FailedRetries = 0
			base := s.commit("", makes(script, libScript, appScript))
			in := s.start("a")
			s.decide(s.scheduled("b1", base, asked("//gen:t")...))
			f := s.finished("//gen:t")
			if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED || f.FailedCommand != "check" || !strings.Contains(f.Reason, want) {
				t.Errorf("%v, command %q: %s", f.Outcome, f.FailedCommand, f.Reason)
			}
			if entries, _ := filepath.Glob(filepath.Join(in.dir, "outputs", "entries", "*", "*")); len(entries) > 0 {
				t.Errorf("kept: %v", entries)
			}
		})
	}
}

// What a dependency does is not held against who depends on it.
func TestADependencyThatFailsWhenItIsMadeAgainIsNotHeldAgainstItsDependent(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", makes("echo run >>$OUTSIDE/gen.runs; test -e $OUTSIDE/works && echo x >out\n", libScript, "cat ../gen/out\n"))
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//app:t")...))
	f := s.finished("//app:t")
	want := "The step was not run: the outputs of //gen:t, on which it depends, were not kept, and could not be made again: "
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.HasPrefix(f.Reason, want) {
		t.Errorf("%v: %s", f.Outcome, f.Reason)
	}
	if text := in.text(t, f); !strings.Contains(text, want) || s.ran("gen") != 2 { // with one retry
		t.Errorf("gen ran %d times\n%s", s.ran("gen"), text)
	}
}

// The outputs of a target with the version of the mainline come of the mainline's files alone, whatever its step reads.
func TestOutputsAreMadeWithoutTheFilesOfChangesThatHaveNotLanded(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", makes("cat ../undeclared* >out\n", "cat ../gen/out; mkdir bin; cp ../gen/out bin/lib\n", "cp ../lib/bin/lib $OUTSIDE/app.said\n"))
	base = s.commit(base, map[string]string{"undeclared.txt": "mainline\n"})
	head := s.commit(base, map[string]string{"undeclared.txt": "forged\n", "app/check.sh": "cp ../lib/bin/lib $OUTSIDE/app.said; cat ../undeclared.txt\n"})
	s.start("a")
	b := s.scheduled("b1", base, asked("//app:t")...)
	b.Change = change("c", pick(base, head))
	s.admit("c")
	s.decide(b)
	if f := s.finished("//app:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || string(f.OutputTail) != "forged\n" {
		t.Fatalf("%v: %s\n%s", f.Outcome, f.Reason, f.OutputTail)
	}
	if said := s.appears("app.said"); said != "mainline\n" {
		t.Errorf("the outputs are of %q", said)
	}
}

func TestAStepDoesNotSeeWhereOutputsAreKept(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", makes("ls "+filepath.Join(s.dir, "builder-a", "outputs")+" >$OUTSIDE/seen 2>/dev/null; echo x >out\n", libScript, appScript))
	s.start("a")
	s.passes("b1", base, "//gen:t")
	if content, err := os.ReadFile(s.outside("seen")); err != nil || len(content) > 0 {
		t.Errorf("it sees %q, %v", content, err)
	}
}

func TestOutputsAreDeletedByAgeAndMadeAgain(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.retaining().Outputs.Age = 10 * time.Hour
	base := s.commit("", makes(genScript, libScript, appScript))
	in := s.start("a")
	s.passes("b1", base, "//gen:t")
	kept, _ := filepath.Glob(filepath.Join(in.dir, "outputs", "files", "*", "*"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	madeOld(t, kept[0], 11*time.Hour)
	eventually(t, "an output is deleted", func() bool { return !isThere(kept[0]) })
	s.passes("b2", base, "//lib:t")
	if s.ran("gen") != 2 {
		t.Errorf("gen ran %d times", s.ran("gen"))
	}
}
