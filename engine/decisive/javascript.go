package decisive

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	jsFrame     = regexp.MustCompile(`^\s*(?:at|❯) (?:.*[( ])?((?:file://)?[^\s():]+\.\w+):(\d+):\d+\)?$`)
	jsStack     = regexp.MustCompile(`\(?((?:file://)?[^\s():']+\.\w+):(\d+):\d+\)?'?$`)
	jsException = regexp.MustCompile(`^(?:Uncaught )?(?:[A-Z]\w*)?(?:Error|Exception)\b.*`)
	jsExpected  = regexp.MustCompile(`^\s*(?:Expected|Received)\b.*: `)
)

// blockEnd returns the first line from a place on that satisfies a condition, at most some lines further.
func blockEnd(lines []string, from int, ends func(string) bool) int {
	const most = 120
	end := from
	for end < min(len(lines), from+most) && !ends(lines[end]) {
		end++
	}
	return end
}

// jsFrames returns the places that a block's stack names.
func jsFrames(block []string) (of []place) {
	for _, line := range block {
		if m := match(jsFrame, line); m != nil {
			of = append(of, place{m[1], m[2]})
		}
	}
	return of
}

// nodeDiff begins the difference that node prints of two values: "+ 2" and "- 3" below it are lines of them. nodeValue is one of
// the two, of a short value.
var (
	nodeDiff  = regexp.MustCompile(`^\+ actual - expected\b`)
	nodeValue = regexp.MustCompile(`^(actual|expected): (.+?),?$`)
)

// assertion returns what a block of a JavaScript runner says: its first line, what completes it, and the values that differ.
func assertion(block []string) string {
	text, complete, differs := "", false, false
	differing, values := map[string]string{}, map[string]string{}
	for _, line := range block {
		line = strings.TrimSpace(line)
		value := match(nodeValue, line)
		switch {
		case line == "" || strings.HasPrefix(line, "at ") || strings.HasPrefix(line, "❯ "):
		case text == "":
			text, _, _ = strings.Cut(line, " // ")
			complete = !strings.HasSuffix(text, ":")
		case nodeDiff.MatchString(line):
			complete, differs = true, true
		case differs && differing[line[:1]] == "" && (strings.HasPrefix(line, "+ ") || strings.HasPrefix(line, "- ")):
			differing[line[:1]] = strings.TrimSuffix(strings.TrimSpace(line[1:]), ",")
		case value != nil:
			values[value[1]] = strings.TrimSuffix(value[2], " {")
		case jsExpected.MatchString(line):
			text += "; " + line
		case !complete:
			text, complete = text+" "+line, true
		}
	}
	if len(differing) > 0 {
		return text + " " + actualAndExpected(differing["+"], differing["-"])
	}
	actual, expected := values["actual"], values["expected"]
	if actual == expected || strings.HasPrefix(actual, "|") || strings.HasPrefix(expected, "|") || strings.Contains(text, unquoted(actual)) || strings.Contains(text, unquoted(expected)) {
		return text // it says them, or they say nothing
	}
	return text + "; " + actualAndExpected(actual, expected)
}

// actualAndExpected returns those of two values that there are, in words.
func actualAndExpected(actual, expected string) string {
	switch {
	case actual == "":
		return "expected " + expected
	case expected == "":
		return "actual " + actual
	}
	return "actual " + actual + ", expected " + expected
}

var jestTitle = regexp.MustCompile(`^  ● (.+)$`)

// jestConsole is the title above what the tests of a suite have printed.
const jestConsole = "Console"

// jest finds the tests that failed, and the suites that do not load.
func jest(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		m := match(jestTitle, line)
		if m == nil || m[1] == jestConsole {
			continue
		}
		end := blockEnd(lines, i+1, func(l string) bool {
			return l != "" && !strings.HasPrefix(l, "    ") || strings.HasPrefix(l, "  ●")
		})
		block := lines[i+1 : end]
		f := finding{class: failedTest, at: i}
		if m[1] == "Test suite failed to run" {
			m[1], f.class = "", doesNotCompile
		}
		at, text := jsFrames(block), assertion(block)
		if types := match(tscSays, text); types != nil { // ts-jest's
			at, text = []place{{types[1], types[2] + types[3]}}, types[4]
		}
		f.text = joined(tree.first(at), m[1], text)
		found = append(found, f)
	}
	return found
}

var vitestTitle = regexp.MustCompile(`^ FAIL  (?:\|\S+\| )?(\S+)(?: \[ \S+ \]| > (.+))$`)

// vitest finds the tests that failed.
func vitest(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		m := match(vitestTitle, line)
		if m == nil {
			continue
		}
		end := blockEnd(lines, i+1, func(l string) bool { return strings.HasPrefix(l, "⎯⎯") })
		block := lines[i+1 : end]
		at, _ := tree.locate(m[1], "")
		for _, frame := range jsFrames(block) {
			if file, own := tree.locate(frame.file, ""); own {
				at = file + ":" + frame.line
				break
			}
		}
		f := finding{failedTest, i, joined(at, m[2], assertion(block))}
		if m[2] == "" {
			f.class = doesNotCompile
		}
		found = append(found, f)
	}
	return found
}

var (
	mochaCount = regexp.MustCompile(`^  \d+ failing$`)
	mochaTitle = regexp.MustCompile(`^  \d+\) (.+)$`)
)

// mocha finds the tests that failed, behind their count.
func mocha(lines []string, tree Tree) (found []finding) {
	counted := false
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		counted = counted || mochaCount.MatchString(line)
		m := match(mochaTitle, line)
		if !counted || m == nil {
			continue
		}
		title, at := strings.TrimSuffix(m[1], ":"), i+1
		if !strings.HasSuffix(m[1], ":") {
			for at < min(len(lines), i+10) && !strings.HasSuffix(lines[at-1], ":") {
				title += " › " + strings.TrimSuffix(strings.TrimSpace(lines[at]), ":")
				at++
			}
		}
		end := blockEnd(lines, at, func(l string) bool { return mochaTitle.MatchString(l) })
		block := lines[at:end]
		found = append(found, finding{failedTest, i, joined(tree.first(jsFrames(block)), title, assertion(block))})
	}
	return found
}

var (
	tapTitle = regexp.MustCompile(`^(\s*)not ok \d+(?: - (.*))?$`)
	tapField = regexp.MustCompile(`^\s*(location|error|failureType|at): *(.*)$`)
)

// tap finds the tests that failed in TAP, as node prints it.
func tap(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		m := match(tapTitle, line)
		if m == nil || strings.Contains(m[2], "# TODO") || strings.Contains(m[2], "# SKIP") {
			continue
		}
		end := blockEnd(lines, i+1, func(l string) bool {
			l = strings.TrimSpace(l)
			return l == "..." || strings.HasPrefix(l, "not ok ") || strings.HasPrefix(l, "ok ")
		})
		f, own := tapFinding(lines[i+1:end], m[2], tree)
		if !own {
			continue
		}
		if thrown := tapThrown(lines[:i], m[2], tree); thrown.text != "" {
			f = thrown
		}
		f.at = i
		found = append(found, f)
	}
	return found
}

// tapThrown returns what ended a file of tests before it told of any: node prints it as comments above the file's title. The text is
// "" if nothing did.
func tapThrown(before []string, title string, tree Tree) (f finding) {
	last := len(before) - 2
	if last < 0 || before[last+1] != "# Subtest: "+title || !strings.HasPrefix(before[last], "# Node.js v") {
		return f
	}
	const most = 60
	var says []string
	for i := max(0, last-most); i < last; i++ {
		comment, is := strings.CutPrefix(before[i], "# ")
		if !is {
			says = nil
			continue
		}
		says = append(says, comment)
	}
	if thrown := nodeThrows(says, tree); len(thrown) > 0 {
		f = thrown[len(thrown)-1]
		f.class = min(f.class, failedTest)
	}
	return f
}

// unquoted returns a value of YAML without the quotes around it.
func unquoted(value string) string {
	if len(value) < 2 || value[0] != '\'' && value[0] != '"' || value[len(value)-1] != value[0] || strings.IndexByte(value[1:len(value)-1], value[0]) >= 0 {
		return value
	}
	return value[1 : len(value)-1]
}

// tapFinding reads what follows a title. It is false for a test that failed because one within it did.
func tapFinding(block []string, title string, tree Tree) (f finding, own bool) {
	var stack, location []place
	var says []string
	field := ""
	for _, line := range block {
		if m := match(tapField, line); m != nil {
			field = m[1]
			value := unquoted(m[2])
			switch field {
			case "failureType":
				if value == "subtestsFailed" {
					return f, false
				}
			case "location", "at":
				if at := match(jsStack, value); at != nil {
					location = append(location, place{at[1], at[2]})
				}
			case "error":
				if !strings.HasPrefix(value, "|") {
					says = append(says, value)
				}
			}
			continue
		}
		text := strings.TrimSpace(line)
		if at := match(jsStack, text); at != nil {
			stack = append(stack, place{at[1], at[2]})
		} else if field == "error" && (!strings.Contains(text, ": '") || strings.HasPrefix(text, "+ ") || strings.HasPrefix(text, "- ") || nodeValue.MatchString(text)) {
			says = append(says, text)
		}
	}
	return finding{class: failedTest, text: joined(tree.first(ownFirst(append(stack, location...), tree)), title, assertion(says))}, true
}

var (
	nodeSpecAt    = regexp.MustCompile(`^test at (\S+):(\d+):\d+$`)
	nodeSpecTitle = regexp.MustCompile(`^\s*✖ (.+?)(?: \([\d.]+ms\))?$`)
)

// nodeSpec finds the tests that failed in what node prints for people.
func nodeSpec(lines []string, tree Tree) (found []finding) {
	for i := 0; i+1 < len(lines) && len(found) < enough; i++ {
		at, title := match(nodeSpecAt, lines[i]), match(nodeSpecTitle, lines[i+1])
		if at == nil || title == nil {
			continue
		}
		end := blockEnd(lines, i+2, func(l string) bool { return nodeSpecAt.MatchString(l) })
		block := lines[i+2 : end]
		says := assertion(block)
		if strings.HasSuffix(says, "failed'") || strings.HasSuffix(says, "subtests failed") || says == "" {
			continue
		}
		where := tree.first(ownFirst(append(jsFrames(block), place{at[1], at[2]}), tree))
		found = append(found, finding{failedTest, i, joined(where, title[1], says)})
	}
	return found
}

// nodeSource matches the first line of node's report of a file that it cannot parse, also as mocha prints it.
var nodeSource = regexp.MustCompile(`^(?: Exception during run: )?((?:file://)?/\S+\.\w+):(\d+)$`)

// nodeMissing matches node's error of a missing module: its name, and for an ES module the file that imports it.
var nodeMissing = regexp.MustCompile(`^Error(?: \[\w+\])?: (Cannot find (?:module|package) '([^']+)')(?: imported from (\S+))?$`)

// importOf returns the line of a file that asks for a module: the one that a stack names, else the first that has its name in quotes.
func (t Tree) importOf(module, file string, stack []place) string {
	for _, p := range stack {
		if p.file == file {
			return t.first([]place{p})
		}
	}
	file, _ = t.locate(file, "")
	name := regexp.QuoteMeta(module)
	if path.IsAbs(module) { // of a relative import; only the end is as the file has it
		name = `[^'"\x60\n]*/` + regexp.QuoteMeta(path.Base(module))
	}
	at := regexp.MustCompile(`['"\x60]` + name + `['"\x60/]`).FindIndex(t.read(file))
	if at == nil {
		return file
	}
	return file + ":" + strconv.Itoa(lineAt(t.read(file), at[0]))
}

// nodeThrows finds what ended a program that node ran.
func nodeThrows(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if !jsException.MatchString(line) {
			continue
		}
		first := i + 1
		if first < len(lines) && lines[first] == "Require stack:" {
			first = blockEnd(lines, first+1, func(l string) bool { return !strings.HasPrefix(l, "- ") })
		}
		if first >= len(lines) || !strings.HasPrefix(strings.TrimSpace(lines[first]), "at ") {
			continue
		}
		f := finding{class: crash, at: i}
		var places []place
		for _, before := range lines[max(0, i-6):i] {
			if m := match(nodeSource, before); m != nil {
				places = append(places, place{m[1], m[2]})
			}
		}
		if strings.HasPrefix(line, "SyntaxError") {
			if f.class = elsewhere; len(places) > 0 { // else of data rather than of a source
				f.class = tree.classOf(places[0].file)
			}
		}
		end := blockEnd(lines, first, func(l string) bool { return !strings.HasPrefix(strings.TrimSpace(l), "at ") })
		places = append(places, jsFrames(lines[first:end])...)
		f.text = joined(tree.first(places), line)
		if m := match(nodeMissing, line); m != nil {
			var asking []string
			for _, below := range lines[min(i+2, first):first] {
				asking = append(asking, strings.TrimPrefix(below, "- "))
			}
			if asking = append(asking, m[3]); asking[0] != "" {
				own := slices.IndexFunc(asking, func(file string) bool { _, own := tree.locate(file, ""); return own })
				f.text = joined(tree.importOf(m[2], asking[max(own, 0)], places), m[1])
			}
		}
		found = append(found, f)
	}
	return found
}

var (
	eslintFile = regexp.MustCompile(`^(\S.*\.\w+)$`)
	eslintLine = regexp.MustCompile(`^\s+(\d+):\d+\s+error\s+(.+)$`)
)

// eslint finds the errors of its usual style: a line with the file, and one for each problem.
func eslint(lines []string, tree Tree) (found []finding) {
	file := ""
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if m := match(eslintLine, line); m != nil && file != "" {
			found = append(found, finding{tree.classOf(file), i, joined(tree.first([]place{{file, m[1]}}), m[2])})
		} else if line == "" {
			file = ""
		} else if strings.HasPrefix(line, "/") && eslintFile.MatchString(line) {
			file = line
		}
	}
	return found
}
