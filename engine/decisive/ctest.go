package decisive

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// cAsserts is what the C library's assert prints, behind the program's name.
	cAsserts = regexp.MustCompile("^(?:[^\\s:]+: )?([^\\s:]+):(\\d+): (.*Assertion [`'].+' failed\\.?)$")
	// cChecks is the first line of a failed check of GoogleTest or Catch2. What was expected follows.
	cChecks = regexp.MustCompile(`^([^\s:]+):(\d+): (?:Failure|FAILED:)$`)
)

// cTests finds the assertions and checks of tests in C and C++ that failed.
func cTests(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		var file, number, text string
		if !strings.Contains(line, ":") {
			continue
		} else if m := match(cAsserts, line); m != nil {
			file, number, text = m[1], m[2], m[3]
		} else if m := match(cChecks, line); m != nil {
			end := blockEnd(lines, i+1, func(l string) bool { return l == "" || strings.HasPrefix(l, "[") })
			file, number, text = m[1], m[2], strings.Join(lines[i+1:min(end, i+7)], " ")
		} else {
			continue
		}
		f := finding{failedTest, i, joined(tree.first([]place{{file, number}}), text)}
		if tree.classOf(file) == elsewhere {
			f.class = crash
		}
		found = append(found, f)
	}
	return found
}

var (
	// ctestFails matches ctest's line about a failed test. With --output-on-failure the test's output follows.
	ctestFails = regexp.MustCompile(`^\s*\d+/\d+ Test +#\d+: (.+?) \.+ *([^.*]*)\*\*\*(.+?) +\d+\.\d+ sec$`)
	ctestGoes  = regexp.MustCompile(`^\s*(?:Start +\d+: |\d+/\d+ Test +#\d+: |\d+% tests passed, )`)
	ctestPlace = regexp.MustCompile(`^([^\s:]+):(\d+):(?:\d+:)? (.+)$`)
)

// ctestBlock is the output of a failed test: lines from up to, without, to.
type ctestBlock struct {
	name, how string
	from, to  int
}

func ctestBlocks(lines []string) (blocks []ctestBlock) {
	for i, line := range lines {
		if len(blocks) >= enough {
			break
		}
		if !strings.Contains(line, "***") {
			continue
		}
		if m := match(ctestFails, line); m != nil {
			how := m[2]
			if how == "" {
				how = m[3]
			}
			blocks = append(blocks, ctestBlock{m[1], how, i + 1, blockEnd(lines, i+1, ctestGoes.MatchString)})
		}
	}
	return blocks
}

// ctest finds why each test that ctest ran failed, unless found has it already: a line that begins with a place in the
// tree, the first that speaks of an error or else the last; where there is none, one that speaks of an error, or the last one.
func ctest(lines []string, tree Tree, blocks []ctestBlock, found []finding) (more []finding) {
	for _, b := range blocks {
		if slices.ContainsFunc(found, func(f finding) bool { return f.class == failedTest && f.at >= b.from && f.at < b.to }) {
			continue
		}
		f := finding{crash, b.from, joined(b.name, b.how)}
		if said := mentions(lines[b.from:b.to]); len(said) > 0 {
			f.text = joined(b.name, said[0].text)
		} else if last := lastLines(lines[b.from:b.to]); len(last) > 0 {
			f.text = joined(b.name, last[len(last)-1].text)
		}
		for i, line := range lines[b.from:b.to] {
			m := match(ctestPlace, line)
			if m == nil || tree.classOf(m[1]) == elsewhere {
				continue
			}
			f = finding{failedTest, b.from + i, joined(tree.first([]place{{m[1], m[2]}}), b.name, m[3])}
			if len(mentions([]string{line})) > 0 {
				break
			}
		}
		more = append(more, f)
	}
	return more
}
