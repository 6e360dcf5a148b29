package decisive

import (
	"regexp"
	"slices"
	"strings"
)

var (
	goEnter  = regexp.MustCompile(`^\s*=== (?:RUN|CONT|NAME|PAUSE)\s+(\S+)`)
	goEnded  = regexp.MustCompile(`^(\s*)--- (FAIL|PASS|SKIP): (\S+)`)
	goLogged = regexp.MustCompile(`^(\s+)(\S+\.go):(\d+): ?(.*)$`)
	goFailed = regexp.MustCompile(`^FAIL\t(\S+)`)
	// accuses are words that set the line that fails a test apart from what it logged before.
	accuses = regexp.MustCompile(`(?i)\b(?:want|wanted|got|expect\w*|fail\w*|error\w*|unexpected|mismatch|not|cannot|panic\w*|missing|invalid|timed? ?out)\b|!=|<nil>`)
)

// goTest is a test of a package, with what it logged.
type goTest struct {
	name   string
	at     int
	failed bool
	logged []goLine
	// printed is what it printed besides, or what an example did.
	printed []string
}

type goLine struct {
	place
	text string
}

// goTests finds the tests that failed in the output of `go test`, with and without -v.
func goTests(lines []string, tree Tree) (found []finding) {
	tests := map[string]*goTest{}
	var order []*goTest
	var current *goTest
	depth := 0
	test := func(name string, at int) *goTest {
		if tests[name] == nil {
			tests[name] = &goTest{name: name, at: at}
			order = append(order, tests[name])
		}
		return tests[name]
	}
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "FAIL\t"), strings.HasPrefix(line, "ok  \t"):
			if m := match(goFailed, line); m != nil {
				found = append(found, goFindings(order, m[1], tree)...)
			}
			clear(tests)
			order, current = nil, nil
		case strings.Contains(line, "=== "):
			if m := match(goEnter, line); m != nil {
				current, depth = test(m[1], i), 0
			}
		case strings.Contains(line, "--- "):
			if m := match(goEnded, line); m != nil {
				current, depth = test(m[3], i), len(m[1])
				current.at, current.failed = i, m[2] == "FAIL"
			}
		case current == nil:
		case line == "FAIL", line == "PASS", strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "), strings.HasPrefix(line, "====="):
			current = nil
		default:
			current.log(line, depth)
		}
	}
	return append(found, goFindings(order, "", tree)...)
}

func (t *goTest) log(line string, depth int) {
	const most = 2048 // lines of one test
	if len(t.logged)+len(t.printed) >= most {
		return
	}
	if m := match(goLogged, line); m != nil && len(m[1]) > depth {
		t.logged = append(t.logged, goLine{place{m[2], m[3]}, m[4]})
		return
	}
	text := strings.TrimSpace(line)
	if n := len(t.logged); n > 0 && strings.HasPrefix(line, "    ") {
		if l := &t.logged[n-1]; len(l.text) < MaxBytes && !strings.HasPrefix(text, "Error Trace:") && !strings.HasPrefix(text, "Test:") {
			l.text += " " + strings.TrimSpace(strings.TrimPrefix(text, "Error:"))
		}
		return
	}
	if text != "" {
		t.printed = append(t.printed, text)
	}
}

// goFindings returns a line for each test of a package that failed by itself.
func goFindings(tests []*goTest, in string, tree Tree) (found []finding) {
	for _, t := range tests {
		if len(found) >= enough {
			break
		}
		within := func(sub *goTest) bool { return sub.failed && strings.HasPrefix(sub.name, t.name+"/") }
		if !t.failed || slices.ContainsFunc(tests, within) && len(t.logged) == 0 {
			continue
		}
		f := finding{class: failedTest, at: t.at}
		switch l, is := t.decisive(); {
		case is && strings.Contains(l.text, "race detected during execution of test"):
			continue
		case is:
			file, _ := tree.locate(l.file, in)
			f.text = joined(file+":"+l.line, t.name, l.text)
		case len(t.printed) > 0:
			f.text = joined(in, t.name, strings.Join(t.printed[:min(len(t.printed), 8)], " "))
		default:
			f.class, f.text = report, joined(in, t.name+" failed")
		}
		found = append(found, f)
	}
	return found
}

// decisive returns what a test logged that failed it: the first line that speaks of something wrong, else the last.
func (t *goTest) decisive() (l goLine, is bool) {
	if len(t.logged) == 0 {
		return l, false
	}
	if i := slices.IndexFunc(t.logged, func(l goLine) bool { return accuses.MatchString(l.text) }); i >= 0 {
		return t.logged[i], true
	}
	return t.logged[len(t.logged)-1], true
}

var (
	goFrame    = regexp.MustCompile(`^\s+(\S+\.go):(\d+)(?: \+0x[0-9a-f]+)?$`)
	goFunction = regexp.MustCompile(`\.((?:Test|Fuzz|Benchmark|Example)\w*)[.(]`)
)

// goPanics finds what ended a Go program, in the first own frame of its stack.
func goPanics(lines []string, tree Tree) (found []finding) {
	for i := 0; i < len(lines) && len(found) < enough; i++ {
		line := lines[i]
		if !strings.HasPrefix(line, "panic: ") && !strings.HasPrefix(line, "fatal error: ") {
			continue
		}
		const most = 200 // lines of stacks
		var frames []place
		test, end := "", min(len(lines), i+most)
		at := i + 1
		for ; at < end && !strings.HasPrefix(lines[at], "FAIL\t") && !strings.HasPrefix(lines[at], "exit status "); at++ {
			switch m := match(goFrame, lines[at]); {
			case m != nil:
				frames = append(frames, place{m[1], m[2]})
			case strings.HasPrefix(lines[at], "panic("):
				frames = nil // what recovered it, and failed the test
			case strings.HasPrefix(lines[at], "\tpanic: "):
				line = strings.TrimSpace(lines[at]) // raised again
			case test == "":
				if m := match(goFunction, lines[at]); m != nil {
					test = m[1]
				}
			}
		}
		if len(frames) == 0 {
			continue
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, " [recovered]"), " [recovered, repanicked]")
		found = append(found, finding{failedTest, i, joined(tree.first(ownFirst(frames, tree)), test, line)})
		i = at
	}
	return found
}

// ownFirst returns the frames that are the tree's own, or all if none is.
func ownFirst(frames []place, tree Tree) []place {
	own := slices.DeleteFunc(slices.Clone(frames), func(p place) bool { _, is := tree.locate(p.file, ""); return !is })
	if len(own) == 0 {
		return frames
	}
	return own
}

// goRaces finds the reports of the race detector: the two places that race.
func goRaces(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if line != "WARNING: DATA RACE" {
			continue
		}
		const most = 200 // lines of one report
		var of [2][]place
		side := 0
		for _, l := range lines[i+1 : min(len(lines), i+most)] {
			if strings.HasPrefix(l, "Goroutine ") || strings.HasPrefix(l, "=====") {
				break
			}
			if strings.HasPrefix(l, "Previous ") {
				side = 1
			}
			if m := match(goFrame, l); m != nil {
				of[side] = append(of[side], place{m[1], m[2]})
			}
		}
		text := joined(tree.first(of[0]), "data race")
		if other := tree.first(of[1]); other != "" {
			text += " with " + other
		}
		found = append(found, finding{failedTest, i, text})
	}
	return found
}

// goVendor matches what go says of a vendor folder that does not fit, before each thing that does not.
var goVendor = regexp.MustCompile(`^go: inconsistent vendoring in .*:$`)

// goVendors finds the first thing for which a vendor folder does not fit, and the command that mends it.
func goVendors(lines []string, _ Tree) (found []finding) {
	i := slices.IndexFunc(lines, goVendor.MatchString)
	if i < 0 || i+1 == len(lines) {
		return nil
	}
	found = append(found, finding{doesNotCompile, i, "go: inconsistent vendoring: " + strings.TrimSpace(lines[i+1])})
	for n, line := range lines[i+1 : blockEnd(lines, i+1, func(l string) bool { return l != "" && !strings.HasPrefix(l, "\t") })] {
		if strings.HasPrefix(line, "\tTo sync ") {
			found = append(found, finding{doesNotCompile, i + 1 + n, announced(lines, i+1+n)})
		}
	}
	return found
}
