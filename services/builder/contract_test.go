package builder

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
)

// newContractSite is a site whose manifest has targets a:t, b:t, … with a group. together is the shell script of the group, and
// alone that of each target.
func newContractSite(t *testing.T, targets int, together, alone string) (*site, string, []string) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	queue := s.config.Queues[queueName]
	queue.PoolWorkers = 1
	s.config.Queues[queueName] = queue
	files := map[string]string{"landfall.yaml": "targets: []\n", "group.sh": "echo run >>$OUTSIDE/runs; cp $LANDFALL_GROUP_TARGETS $OUTSIDE/asked\n" + together, "alone.sh": alone}
	var names []string
	for i := range targets {
		folder := string(rune('a' + i))
		files[folder+"/landfall.yaml"] = "targets: [{name: t, sources: [\"**\"], steps: [{name: check, run: [sh, alone.sh], group: [sh, group.sh]}]}]\n"
		names = append(names, "//"+folder+":t")
	}
	return s, s.commit("", files), names
}

func said(outcome, folder string) string {
	return fmt.Sprintf("echo '%s //%s:t' >>$LANDFALL_GROUP_RESULTS\n", outcome, folder)
}

func TestAToolOfOnesOwnVerifiesManyTargets(t *testing.T) {
	s, base, names := newContractSite(t, 3, said("passed", "a")+said("passed", "c")+"echo b is broken: //b:t; echo //a:t is not\n"+
		said("failed", "b")+"while [ ! -e $OUTSIDE/seen ]; do sleep 0.02; done; exit 1\n", "exit 9")
	s.policy.FailedRetries = 1
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	// A failure counts as it comes, and what passed once the tool has ended as it should.
	b := s.finished(names[1])
	s.touch("seen")
	if b.Outcome != stepFailed || b.Group == "" || !strings.Contains(string(b.OutputTail), "//b:t") || strings.Contains(string(b.OutputTail), "//a:t") {
		t.Errorf("%v", b)
	}
	for name, list := range s.ends(1, names[0], names[2]) {
		if list[0].Outcome != stepPassed || list[0].Group != b.Group || list[0].StartedUs < b.FinishedUs {
			t.Errorf("%s: %v", name, list)
		}
	}
	if text := s.appears("asked"); text != strings.Join(names, "\n")+"\n" {
		t.Errorf("asked for %q", text)
	}
}

func TestAToolOfOnesOwnIsBelievedNoMoreThanItSays(t *testing.T) {
	for name, together := range map[string]string{
		"says nothing":               "exit 0\n",
		"lies by its exit code":      said("passed", "a") + said("passed", "b") + "exit 1\n",
		"dies":                       said("passed", "a") + said("passed", "b") + "kill -9 $$\n",
		"skips":                      said("skipped", "a") + said("skipped", "b"),
		"contradicts itself":         said("passed", "a") + said("skipped", "a") + said("passed", "b") + said("skipped", "b"),
		"names others":               said("passed", "A") + said("passed", "z") + "echo 'passed *' >>$LANDFALL_GROUP_RESULTS\n",
		"prints it":                  "cat $LANDFALL_GROUP_TARGETS | sed 's/^/passed /'\n",
		"makes a link of it":         "cat $LANDFALL_GROUP_TARGETS | sed 's/^/passed /' >$OUTSIDE/elsewhere; ln -s $OUTSIDE/elsewhere $LANDFALL_GROUP_RESULTS\n",
		"makes a pipe of it":         "mkfifo $LANDFALL_GROUP_RESULTS || python3 -c 'import os; os.mkfifo(os.environ[\"LANDFALL_GROUP_RESULTS\"])'\n",
		"makes a folder of it":       "mkdir $LANDFALL_GROUP_RESULTS\n",
		"takes the folder away":      "rm -rf ${LANDFALL_GROUP_RESULTS%/*}/* ; rmdir ${LANDFALL_GROUP_RESULTS%/*}; exit 0\n",
		"does not end its last line": "printf 'passed //a:t' >>$LANDFALL_GROUP_RESULTS\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base, names := newContractSite(t, 2, together, "exit 0\n")
			s.start("a", func(o *Options) { o.Workers = 1 })
			s.decide(s.scheduled("b1", base, asked(names...)...))
			// Twice nothing is believed, and then each runs alone.
			for name, list := range s.ends(3, names...) {
				for i, f := range list[:2] {
					if f.Outcome != stepAborted || !f.Unreported {
						t.Errorf("%s, attempt %d: %v", name, i+1, f)
					}
				}
				if f := list[2]; f.Outcome != stepPassed || f.Group != "" {
					t.Errorf("%s alone: %v", name, f)
				}
			}
			if runs := s.runs(); !slices.Equal(runs, []string{"run", "run"}) {
				t.Errorf("runs %q", runs)
			}
		})
	}
}

func TestWithoutGroupsEachTargetRunsByItself(t *testing.T) {
	s, base, names := newContractSite(t, 2, said("passed", "a")+said("passed", "b"), "exit 0\n")
	queue := s.config.Queues[queueName]
	queue.Steps.Groups = configuration.GroupsOff
	s.config.Queues[queueName] = queue
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	for name, list := range s.ends(1, names...) {
		if f := list[0]; f.Outcome != stepPassed || f.Group != "" {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestAGroupOfATargetWithSeveralStepsOrOtherCommandsIsNone(t *testing.T) {
	s := newSite(t, memory.Options{})
	step := func(group string) string { return "{name: " + group + ", run: [\"true\"], group: [sh, " + group + "]}" }
	base := s.commit("", map[string]string{
		"landfall.yaml": "targets: [{name: a, steps: [" + step("x") + "]}, {name: b, steps: [" + step("y") + "]}, {name: c, steps: [" + step("x") + ", " + step("y") + "]}]\n"})
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//:a", "//:b", "//:c")...))
	if p := s.prepared("b1"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED || len(p.Groups) != 0 {
		t.Errorf("%v", p)
	}
}

// suiteOf writes a report of JUnit's kind with one test of a target.
func suiteOf(folder, result string) string {
	return fmt.Sprintf("echo '<testsuite name=\"//%s:t\"><testcase name=\"adds\">%s</testcase></testsuite>' >$LANDFALL_GROUP_REPORTS/%s.xml\n", folder, result, folder)
}

// junitSite is newContractSite with a group that reports as JUnit does.
func junitSite(t *testing.T, targets int, together, alone string) (*site, string, []string) {
	s, base, names := newContractSite(t, targets, together, alone)
	files := map[string]string{}
	for i := range targets {
		files[string(rune('a'+i))+"/landfall.yaml"] = "targets: [{name: t, sources: [\"**\"], steps: [{name: check, run: [sh, alone.sh], group: [sh, group.sh], group_results: junit}]}]\n"
	}
	return s, s.commit(base, files), names
}

func TestAToolThatReportsAsJUnitDoesVerifiesManyTargets(t *testing.T) {
	s, base, names := junitSite(t, 3, suiteOf("a", "")+"mkdir $LANDFALL_GROUP_REPORTS/more; cd $LANDFALL_GROUP_REPORTS/more; "+
		`echo '<testsuites><testsuite name="x"><properties><property name="landfall.target" value="//b:t"/></properties><testcase name="sums"><failure message="want 3">sum_test.py:7</failure></testcase></testsuite></testsuites>' >b.xml; echo no report >c.txt; `+
		"echo '<testsuite name=\"//c:t\"><testcase name=\"left\"/></testsuite>' >c.xml; exit 1\n", "exit 9")
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	list := s.ends(1, names...)
	for _, name := range []string{names[0], names[2]} {
		if f := list[name][0]; f.Outcome != stepPassed || f.Group == "" {
			t.Errorf("%v", f)
		}
	}
	if f := list[names[1]][0]; f.Outcome != stepFailed || f.Group == "" || !strings.Contains(string(f.OutputTail), "sums failed: want 3\nsum_test.py:7") {
		t.Errorf("%v", f)
	}
	if text := s.appears("asked"); text != strings.Join(names, "\n")+"\n" {
		t.Errorf("asked for %q", text)
	}
}

func TestAReportOfJUnitsKindIsBelievedNoMoreThanItSays(t *testing.T) {
	both := suiteOf("a", "") + suiteOf("b", "")
	for name, together := range map[string]string{
		"leaves none":           "exit 0\n",
		"lies by its exit code": both + "exit 1\n",
		"dies":                  both + "kill -9 $$\n",
		"leaves a broken one":   both + "echo '<testsuite' >$LANDFALL_GROUP_REPORTS/c.xml\n",
		"leaves a link":         strings.ReplaceAll(both, "$LANDFALL_GROUP_REPORTS", "$OUTSIDE") + "ln -s $OUTSIDE/a.xml $OUTSIDE/b.xml $LANDFALL_GROUP_REPORTS\n",
		"leaves a pipe":         both + "mkfifo $LANDFALL_GROUP_REPORTS/c.xml\n",
		"leaves a link for it":  strings.ReplaceAll(both, "$LANDFALL_GROUP_REPORTS", "$OUTSIDE") + "rmdir $LANDFALL_GROUP_REPORTS; ln -s $OUTSIDE $LANDFALL_GROUP_REPORTS\n",
		"takes the folder away": "rmdir $LANDFALL_GROUP_REPORTS\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base, names := junitSite(t, 2, together, "exit 0\n")
			s.start("a", func(o *Options) { o.Workers = 1 })
			s.decide(s.scheduled("b1", base, asked(names...)...))
			for name, list := range s.ends(3, names...) {
				for i, f := range list[:2] {
					if f.Outcome != stepAborted || !f.Unreported {
						t.Errorf("%s, attempt %d: %v", name, i+1, f)
					}
				}
				if f := list[2]; f.Outcome != stepPassed || f.Group != "" {
					t.Errorf("%s alone: %v", name, f)
				}
			}
		})
	}
}
