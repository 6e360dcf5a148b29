package builder

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/journal/memory"
)

func TestAFailedStepNamesTheTestsOfTheReportsThatItLeft(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	one := s.config.Queues[queueName]
	one.Steps.Reports = []string{"**/junit*.xml"}
	s.config.Queues[queueName] = one
	const report = `<testsuites><testsuite><testcase classname="shop" name="adds" file="deep/a.txt" line="7"><failure message="want 3"/></testcase></testsuite></testsuites>`
	outside := s.outside("junit.xml")
	if err := os.MkdirAll(filepath.Dir(outside), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(outside, []byte(strings.ReplaceAll(report, "want 3", "not the tree's")), 0o644); err != nil {
		t.Fatal(err)
	}
	// What no step can write is not read, even if its output names it and it looks as if the step had made it.
	elsewhere := t.TempDir()
	one.Steps.Environment.Variables["ELSEWHERE"] = elsewhere
	later := time.Now().Add(time.Hour)
	for _, name := range []string{"testlogs/x/test.xml", "testlogs/x/test.log", "source.txt"} {
		path := filepath.Join(elsewhere, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(report), 0o644), os.Chtimes(path, later, later)); err != nil {
			t.Fatal(err)
		}
	}
	base := s.commit("", scripts(map[string]string{
		"deep":      `mkdir -p out/x; echo '` + report + `' >out/x/junit-shop.xml; echo '1 failed'; exit 1`,
		"named":     `echo '` + report + `' >junit.xml; echo 'deep/a.txt:3:5: error: no such currency'; exit 1`,
		"stale":     `echo '` + report + `' >junit.xml; touch -d '2001-01-01' junit.xml; echo quite wrong; exit 1`,
		"links":     `ln -s "$OUTSIDE/junit.xml" junit.xml; mkfifo junit-pipe.xml; ln -s / junit-all.xml; echo quite wrong; exit 1`,
		"lies":      `echo "FAIL: //x:y (see $OUTSIDE/testlogs/x/test.log)"; exit 1`,
		"elsewhere": `echo "FAIL: //x:y (see $ELSEWHERE/testlogs/x/test.log)"; exit 1`,
		"away":      `mkdir -p testlogs; ln -s "$ELSEWHERE/testlogs/x" testlogs/x; echo "FAIL: //x:y (see $PWD/testlogs/x/test.log)"; exit 1`,
		"pipe":      `mkdir -p testlogs/x; mkfifo testlogs/x/test.xml; ln -s "$ELSEWHERE/testlogs/x/test.log" testlogs/x/test.log; echo "FAIL: //x:y (see $PWD/testlogs/x/test.log)"; exit 1`,
		"linked":    `ln -s "$ELSEWHERE" else; echo 'else/source.txt:3: error: no such currency'; exit 1`,
		"fine":      `echo '` + report + `' >junit.xml`,
	}))
	s.start("a")
	for i, c := range []struct {
		target string
		want   []string
	}{
		{"deep", []string{"deep/a.txt:7: shop.adds: want 3"}},
		{"named", []string{"deep/a.txt:3: no such currency"}},
		{"stale", []string{"ended with exit code 1: quite wrong"}},
		{"links", []string{"ended with exit code 1: quite wrong"}},
		{"lies", []string{"//x:y failed"}},
		{"elsewhere", []string{"//x:y failed"}},
		{"away", []string{"//x:y failed"}},
		{"pipe", []string{"//x:y failed"}},
		{"linked", []string{"else/source.txt:3: no such currency"}},
		{"fine", nil},
	} {
		target := "//" + c.target + ":t"
		s.decide(s.scheduled(fmt.Sprint("b", i), base, asked(target)...))
		if f := s.finished(target); !slices.Equal(f.Decisive, c.want) {
			t.Errorf("%s: decisive lines %q, want %q", c.target, f.Decisive, c.want)
		}
	}
}

// TestAFailedTestOfBazelsIsNamedByItsOwnOutput: Bazel prints where that is, and no more.
func TestAFailedTestOfBazelsIsNamedByItsOwnOutput(t *testing.T) {
	if _, err := exec.LookPath("bazel"); err != nil {
		const missing = "there is no Bazel on this machine: run tools/bazel/install (Debian: apt-get install bazel-bootstrap)"
		if os.Getenv("LANDFALL_TEST_BAZEL") == "required" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	const bazel = `bazel --batch --output_user_root="$OUTSIDE/bazel" --host_jvm_args=-XX:+UseSerialGC --host_jvm_args=-XX:TieredStopAtLevel=1`
	files := scripts(map[string]string{"b": `cd w; chmod +x money/*.sh; PATH=/usr/bin:/bin ` + bazel + ` test --spawn_strategy=local --override_repository=remote_coverage_tools="$PWD/../coverage" //money:all`})
	for name, text := range map[string]string{
		"coverage/WORKSPACE": "", "coverage/BUILD": "filegroup(name = 'coverage_report_generator', visibility = ['//visibility:public'])\n",
		"w/WORKSPACE": "", "w/BUILD": "",
		"w/check.bzl": `def _check_test(ctx):
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = ctx.file.src, is_executable = True)
    return [DefaultInfo(executable = program)]

check_test = rule(implementation = _check_test, test = True, attrs = {"src": attr.label(allow_single_file = True)})
`,
		"w/money/BUILD":   "load('//:check.bzl', 'check_test')\ncheck_test(name = 'adds', src = 'adds.sh')\ncheck_test(name = 'own', src = 'own.sh')\n",
		"w/money/adds.sh": "#!/bin/sh\necho 'total is 3, but 4 was expected: mismatch'\nexit 1\n",
		"w/money/own.sh":  "#!/bin/sh\necho '<testsuite><testcase name=\"sums\" file=\"money/own.sh\" line=\"2\"><failure message=\"want 3\"/></testcase></testsuite>' >\"$XML_OUTPUT_FILE\"\nexit 1\n",
	} {
		files["b/"+name] = text
	}
	base := s.commit("", files)
	t.Cleanup(func() { exec.Command("chmod", "-R", "u+w", s.outside("")).Run() })
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//b:t")...))
	f := s.finished("//b:t")
	got := slices.Sorted(slices.Values(f.Decisive))
	if want := []string{"//money:adds: total is 3, but 4 was expected: mismatch", "b/w/money/own.sh:2: sums: want 3"}; !slices.Equal(got, want) {
		t.Errorf("decisive lines %q, want %q\n%s", got, want, f.OutputTail)
	}
}
