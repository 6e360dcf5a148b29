package decisive

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"regexp"
	"slices"
	"strings"
)

// MaxReport is how much of a report is read.
const MaxReport = 4 << 20

// maxDepth is how deep elements of a report are nested: suites in suites.
const maxDepth = 100

// maxBody is how much of a failure's text is read, and of what a test has printed.
const maxBody = 64 << 10

var (
	xmlPlace = regexp.MustCompile(`([^\s"'():]+\.\w+):(\d+)\b`)
	// bazelsOwn is what Bazel says of a test that writes no report itself.
	bazelsOwn = regexp.MustCompile(`^exited with error code \d+$`)
	// empty is a message that says nothing: the text of the failure does.
	empty = regexp.MustCompile(`(?i)^\s*(?:failed|failure|error)?\s*$`)
	// bazelHead is what stands above the output of a test that Bazel ran.
	bazelHead = regexp.MustCompile(`Executing tests from (\S+)\n-{20,}\n`)
)

// maxHead is how many bytes are at most above bazelHead. In the expression they would take half a megabyte, and every step starts this
// program again.
const maxHead = 1000

// bazelFile is where Bazel says that the output of a test which failed is.
var bazelFile = regexp.MustCompile(`(/[^\s()]+/testlogs/[^\s()]+/)test\.log\b`)

// BazelReports returns the folders of tests that failed, as Bazel's output names them, at most so many: each has a test.xml,
// a test.log, or both. They are paths of the machine on which Bazel ran.
func BazelReports(output []byte, most int) (folders []string) {
	for _, line := range clean(output) {
		if m := match(bazelFile, line); m != nil && len(folders) < most && !slices.Contains(folders, m[1]) {
			folders = append(folders, m[1])
		}
	}
	return folders
}

// junit finds the tests that failed in a report of JUnit's kind, which a step has printed.
func junit(lines []string, tree Tree) []finding {
	for i, line := range lines {
		if at := strings.Index(line, "<testsuite"); at >= 0 {
			return failuresOf(line[at:]+"\n"+strings.Join(lines[i+1:], "\n"), tree, i)
		}
	}
	return nil
}

// reported finds the tests that failed in a file: a report of JUnit's kind, or the log of a test that Bazel ran.
func reported(report []byte, tree Tree) []finding {
	report = report[:min(len(report), MaxReport)]
	if at := bytes.Index(report, []byte("<testsuite")); at >= 0 {
		return failuresOf(string(report[at:]), tree, 0)
	}
	return printed("", string(report), tree, 0)
}

// reader is how far a report is read.
type reader struct {
	tree          Tree
	at            int
	found         []finding
	test, failure map[string]string
	// inBazel is the test whose output follows, as it wrote no report itself.
	inBazel map[string]string
	body    strings.Builder
	keeps   bool
}

// failuresOf reads a report as far as it can be read. Entities that it defines are not followed.
func failuresOf(report string, tree Tree, at int) []finding {
	decoder := xml.NewDecoder(strings.NewReader(report))
	decoder.Strict = false
	r := &reader{tree: tree, at: at}
	depth := 0
	for len(r.found) < enough && depth < maxDepth {
		token, err := decoder.Token()
		if err != nil { // the end, or what follows the report
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			r.begin(t)
		case xml.CharData:
			if r.keeps {
				r.body.Write(t[:min(len(t), maxBody-min(maxBody, r.body.Len()))])
			}
		case xml.EndElement:
			depth--
			r.end(t.Name.Local)
		}
	}
	return r.found
}

func (r *reader) begin(e xml.StartElement) {
	switch e.Name.Local {
	case "testsuite":
		r.inBazel = nil
	case "testcase":
		r.test = attributes(e)
	case "failure", "error":
		r.failure, r.keeps = attributes(e), true
		r.body.Reset()
	case "system-out":
		r.keeps = r.inBazel != nil
		r.body.Reset()
	}
}

func (r *reader) end(name string) {
	switch {
	case r.failure != nil && (name == "failure" || name == "error"):
		if bazelsOwn.MatchString(r.failure["message"]) && strings.TrimSpace(r.body.String()) == "" {
			r.inBazel = r.test
		} else {
			r.found = append(r.found, finding{failedTest, r.at, junitText(r.test, r.failure, r.body.String(), r.tree)})
		}
		r.failure, r.keeps = nil, false
	case r.inBazel != nil && name == "system-out":
		r.found = append(r.found, printed("//"+r.inBazel["name"], strings.TrimPrefix(r.body.String(), "\n"), r.tree, r.at)...)
		r.inBazel, r.keeps = nil, false
	}
}

// printed finds why a test of Bazel's failed in what it has printed, name being its label where that does not say so.
func printed(name, output string, tree Tree, at int) (found []finding) {
	if head := bazelHead.FindStringSubmatchIndex(output); head != nil && head[0] <= maxHead {
		name, output = output[head[2]:head[3]], output[head[1]:]
	}
	lines := clean([]byte(output))
	for _, f := range recognised(lines, tree) {
		if f.class <= failedTest {
			found = append(found, finding{failedTest, at, f.text})
		}
	}
	if len(found) > 0 {
		return found
	}
	inner := mentions(lines)
	if len(inner) == 0 {
		inner = lastLines(lines)
	}
	for _, f := range inner {
		found = append(found, finding{failedTest, at, joined(name, f.text)})
	}
	return found
}

func attributes(e xml.StartElement) map[string]string {
	of := map[string]string{}
	for _, a := range e.Attr {
		of[a.Name.Local] = a.Value
	}
	return of
}

func junitText(test, failure map[string]string, body string, tree Tree) string {
	name := test["name"]
	if class := test["classname"]; class != "" && !strings.Contains(name, class) {
		name = class + "." + name
	}
	says := failure["message"]
	if empty.MatchString(says) {
		// Go's runners have the package there.
		for _, f := range recognised(clean([]byte(body+"\nFAIL\t"+test["classname"]+"\t0s\n")), tree) {
			if f.class <= failedTest {
				return f.text
			}
		}
	}
	where := ""
	for _, m := range xmlPlace.FindAllStringSubmatch(body, 50) {
		if file, own := tree.locate(m[1], ""); own {
			where = file + ":" + m[2]
			break
		}
	}
	if file := cmp.Or(test["file"], failure["file"]); where == "" && file != "" {
		where, _ = tree.locate(file, "")
		if line := cmp.Or(test["line"], failure["line"]); line != "" {
			where += ":" + line
		}
	}
	if empty.MatchString(says) {
		says = strings.TrimSpace(body)
		says, _, _ = strings.Cut(says, "\n")
	}
	return joined(where, name, strings.ReplaceAll(says, "\n", " "))
}
