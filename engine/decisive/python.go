package decisive

import (
	"regexp"
	"strings"
)

var (
	pyFrame     = regexp.MustCompile(`^\s*File "([^"]+)", line (\d+)`)
	pyException = regexp.MustCompile(`^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Failed|Group)?(?::|$)`)
	pySyntax    = regexp.MustCompile(`^(?:SyntaxError|IndentationError|TabError)\b`)

	pytestSection = regexp.MustCompile(`^=+ (.+?) =+$`)
	pytestBlock   = regexp.MustCompile(`^_{3,} (.+?) _{3,}$`)
	pytestPlace   = regexp.MustCompile(`^(\S[^:\s]*\.\w+):(\d+):(?: (.*))?$`)
	// pytestFixture says where a fixture is asked for that is not there.
	pytestFixture = regexp.MustCompile(`^file (\S.*), line (\d+)$`)
	// pyChain stands between an exception and the one that was raised while it was handled.
	pyChain     = regexp.MustCompile(`^(?:During handling of the above exception, another exception occurred|The above exception was the direct cause of the following exception):$`)
	pytestShort = regexp.MustCompile(`^(?:FAILED|ERROR) (\S+?\.\w+)(?:::(\S.*?))?(?: - (.*))?$`)
)

// pytest finds the tests that failed, in any of pytest's styles.
func pytest(lines []string, tree Tree) (found []finding) {
	section := ""
	var short []finding
	var b pytestFailure
	flush := func() {
		if f, is := b.finding(tree); is {
			found = append(found, f)
		}
		b = pytestFailure{}
	}
	for i, line := range lines {
		if next := pytestSectionOf(line); next != "" {
			flush()
			section = next
			continue
		}
		switch section {
		case "FAILURES", "ERRORS":
			if m := match(pytestBlock, line); m != nil && !strings.HasPrefix(line, "_ _") {
				flush()
				b = pytestFailure{name: m[1], at: i}
				continue
			}
			b.captured = b.captured || pytestCaptured(line)
			if b.name == "" { // --tb=line
				if m := match(pytestPlace, line); m != nil && m[3] != "" {
					found = append(found, finding{failedTest, i, joined(tree.first([]place{{m[1], m[2]}}), m[3])})
				}
				continue
			}
			b.read(line)
		case "short test summary info":
			if m := match(pytestShort, line); m != nil {
				file, _ := tree.locate(m[1], "")
				short = append(short, finding{failedTest, i, joined(file, m[2], m[3])})
			}
		}
	}
	flush()
	if len(found) == 0 {
		return short
	}
	return found
}

// pytestSectionOf returns the title of the section that a line begins, "" if it begins none.
func pytestSectionOf(line string) string {
	if !strings.HasPrefix(line, "=") || !strings.HasSuffix(line, "=") {
		return ""
	}
	if m := match(pytestSection, line); m != nil {
		return m[1]
	}
	return ""
}

// pytestCaptured reports whether what a test printed or logged follows.
func pytestCaptured(line string) bool {
	return strings.HasPrefix(line, "-") && strings.Contains(line, " Captured ")
}

// noTests finds where pytest ran no test, which fails. Where that has a cause, pytest complains of it.
func noTests(lines []string) (found []finding) {
	for i, line := range lines {
		if m := match(pytestSection, line); m != nil && strings.HasPrefix(m[1], "no tests ran in ") {
			found = append(found, finding{end, i, "pytest: no tests ran"})
		}
	}
	return found
}

// pytestFailure is the report of one test.
type pytestFailure struct {
	name     string
	at       int
	places   []place
	says     []string
	syntax   *place
	captured bool
	// example is what a doctest said last.
	example doctest
}

func (b *pytestFailure) read(line string) {
	if b.captured {
		return
	}
	if strings.HasPrefix(b.name, doctestName) {
		if m := match(doctestPlace, line); m != nil {
			b.places, b.says = []place{{m[1], m[2]}}, append(b.says, b.example.text())
			return
		}
		b.example.read(line)
		return
	}
	if pyChain.MatchString(line) { // the last exception failed the test
		b.places, b.says, b.syntax = nil, nil, nil
		return
	}
	if text, is := strings.CutPrefix(line, "E "); is {
		text = strings.TrimSpace(text)
		if m := match(pyFrame, text); m != nil {
			b.syntax = &place{m[1], m[2]}
		}
		b.says = append(b.says, text)
		return
	}
	for _, at := range []*regexp.Regexp{pytestPlace, pytestFixture} {
		if m := match(at, line); m != nil {
			b.places = append(b.places, place{m[1], m[2]})
		}
	}
}

func (b *pytestFailure) finding(tree Tree) (f finding, is bool) {
	if b.name == "" || len(b.says) == 0 {
		return f, false
	}
	f = finding{class: failedTest, at: b.at}
	name := b.name
	if strings.HasPrefix(name, "ERROR collecting ") {
		name, f.class = "", doesNotCompile
	}
	for _, text := range b.says {
		if pySyntax.MatchString(text) && b.syntax != nil {
			f.text = joined(tree.last(append(b.places, *b.syntax)), name, text)
			return f, true
		}
	}
	text := strings.TrimPrefix(b.says[0], "AssertionError: ")
	if len(b.says) > 1 && (strings.HasPrefix(b.says[1], "assert ") || strings.HasPrefix(b.says[1], "+ ")) {
		text = joined(text, b.says[1])
	}
	f.text = joined(tree.last(b.places), strings.TrimPrefix(name, doctestName), text)
	return f, true
}

// doctestName begins the name that pytest gives to a doctest.
const doctestName = "[doctest] "

var (
	doctestPlace = regexp.MustCompile(`^(.+?):(\d+): (?:DocTestFailure|UnexpectedException)$`)
	doctestHead  = regexp.MustCompile(`^File "([^"]+)", line (\d+), in (\S+)$`)
)

// doctest holds the lines of a failed example of Python's doctest: what it expected and got, or the exception that ended it.
type doctest struct {
	part, want, got, raised string
}

func (d *doctest) read(line string) {
	text := strings.TrimSpace(line)
	switch {
	case text == "Expected:", text == "Got:", strings.HasPrefix(text, "Traceback ("):
		d.part = text
	case text == "Expected nothing":
		d.want = "nothing"
	case d.part == "Expected:" && d.want == "":
		d.want = text
	case d.part == "Got:" && d.got == "":
		d.got = text
	case strings.HasPrefix(d.part, "Traceback (") && pyException.MatchString(text):
		d.raised = text
	}
}

func (d doctest) text() string {
	if d.raised != "" || d.want == "" && d.got == "" { // reported as a diff
		return d.raised
	}
	return "expected " + d.want + ", got " + d.got
}

// doctests finds the examples that failed in what Python's doctest prints by itself.
func doctests(lines []string, tree Tree) (found []finding) {
	for i := 1; i+1 < len(lines) && len(found) < enough; i++ {
		m := match(doctestHead, lines[i])
		if m == nil || !strings.HasPrefix(lines[i-1], "*****") || lines[i+1] != "Failed example:" {
			continue
		}
		f := finding{class: failedTest, at: i}
		var d doctest
		for i++; i < len(lines) && !strings.HasPrefix(lines[i], "*****"); i++ {
			d.read(lines[i])
		}
		f.text = joined(tree.first([]place{{m[1], m[2]}}), m[3], d.text())
		found = append(found, f)
	}
	return found
}

var unittestHead = regexp.MustCompile(`^(?:FAIL|ERROR): (\S+)`)

// unittest finds the tests that failed in Python's own framework.
func unittest(lines []string, tree Tree) (found []finding) {
	for i := 1; i+2 < len(lines) && len(found) < enough; i++ {
		if !headsUnittest(lines, i) {
			continue
		}
		for at := i + 1; at < min(len(lines), i+6); at++ {
			t, end := traceback(lines, at)
			if end == 0 {
				continue
			}
			for end+4 < len(lines) && pyChain.MatchString(lines[end+2]) { // the last exception failed the test
				next, its := traceback(lines, end+4)
				if its == 0 {
					break
				}
				t, end = next, its
			}
			f := t.finding(tree, match(unittestHead, lines[i])[1])
			if f.at = i; f.class != doesNotCompile || !strings.Contains(lines[i], "_FailedTest") { // a module that does not load
				f.class = failedTest
			}
			found = append(found, f)
			break
		}
	}
	return found
}

// headsUnittest reports whether a line names a test that failed.
func headsUnittest(lines []string, at int) bool {
	return at > 0 && strings.HasPrefix(lines[at-1], "======") && unittestHead.MatchString(lines[at])
}

// tracebacks finds what ended a Python program.
func tracebacks(lines []string, tree Tree) (found []finding) {
	tries := 0 // one without an end is read for nothing
	for i := 0; i < len(lines) && len(found) < enough && tries < 4*enough; i++ {
		if strings.HasPrefix(lines[i], "Traceback") {
			tries++
		}
		if t, end := traceback(lines, i); end > 0 {
			found = append(found, t.finding(tree, ""))
			i = end
			continue
		}
		// A program that does not compile has no traceback.
		if m := match(pyFrame, lines[i]); m != nil && i+3 < len(lines) && strings.HasPrefix(lines[i], "  File ") {
			for _, line := range lines[i+1 : min(len(lines), i+5)] {
				if pySyntax.MatchString(line) {
					found = append(found, finding{tree.classOf(m[1]), i, joined(tree.first([]place{{m[1], m[2]}}), line)})
					break
				}
			}
		}
	}
	return found
}

// raised is an exception with the places that it passed.
type raised struct {
	at     int
	frames []place
	says   string
}

// traceback reads the one that begins at a line; end is its last line, 0 if there is none.
func traceback(lines []string, at int) (t raised, end int) {
	if !strings.HasPrefix(lines[at], "Traceback (most recent call last)") {
		return t, 0
	}
	t.at = at
	const most = 120 // lines of one
	for i := at + 1; i < min(len(lines), at+most); i++ {
		line := lines[i]
		if m := match(pyFrame, line); m != nil {
			t.frames = append(t.frames, place{m[1], m[2]})
			continue
		}
		if line != "" && !strings.HasPrefix(line, " ") && pyException.MatchString(line) {
			t.says = line
			return t, i
		}
	}
	return t, 0
}

func (t raised) finding(tree Tree, test string) finding {
	f := finding{class: crash, at: t.at}
	if pySyntax.MatchString(t.says) {
		if f.class = elsewhere; len(t.frames) > 0 {
			f.class = tree.classOf(t.frames[len(t.frames)-1].file)
		}
	}
	f.text = joined(tree.last(t.frames), test, strings.TrimPrefix(t.says, "AssertionError: "))
	return f
}
