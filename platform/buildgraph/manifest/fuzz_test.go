package manifest

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"landfall.build/platform/buildgraph/glob"
)

// FuzzParseFile: whatever the bytes, parsing ends, in a result or in problems
// that can be shown, and gives the same again.
func FuzzParseFile(f *testing.F) {
	for path, content := range sample {
		if strings.HasSuffix(path, FileName) {
			f.Add(content)
		}
	}
	for _, text := range sampleTexts {
		f.Add("targets:\n  - name: a\n    sources: [" + text + "]\n    deps:\n    - " + text + "\n")
	}
	f.Add("a: \"\\u00e9\\x41\\UFFFFFFFF\"\r\n- [{a: b}, [c]]\n")
	f.Fuzz(func(t *testing.T, content string) {
		for _, path := range []string{FileName, "lib/" + FileName, "a:b/" + FileName} {
			file := parseFile(path, []byte(content))
			checkParsed(t, file)
			again := parseFile(path, []byte(content))
			if len(again.problems) != len(file.problems) || len(again.targets) != len(file.targets) {
				t.Fatal("parsing again gives something else")
			}
			for i, target := range file.targets {
				if !bytes.Equal(target.normal, again.targets[i].normal) {
					t.Fatal("parsing again gives another definition")
				}
			}
		}
	})
}

// checkParsed checks what the rest of the package relies on.
func checkParsed(t *testing.T, file *parsedFile) {
	t.Helper()
	for _, p := range file.problems {
		if p.File != file.path || p.Line < 0 || len(p.String()) > 2000 || !utf8.ValidString(p.Message) || strings.ContainsAny(p.Message, "\n\x00\x1b") {
			t.Fatalf("problem %q", p)
		}
	}
	if len(file.problems) > 0 {
		return
	}
	for _, target := range file.targets {
		if !strings.HasPrefix(target.name, "//") || !isName(target.kind) {
			t.Fatalf("target %q of kind %q", target.name, target.kind)
		}
		for _, s := range target.sources {
			if len(s.Pattern) == 0 || len(s.Pattern) > glob.MaxSegments || strings.HasPrefix(s.text, "/") {
				t.Fatalf("source %q", s.text)
			}
			for _, seg := range s.Pattern {
				if seg.Text == "" || seg.Text == "." || seg.Text == ".." || strings.Contains(seg.Text, "/") {
					t.Fatalf("source %q has the part %q", s.text, seg.Text)
				}
			}
		}
		for _, step := range target.steps {
			if step.Name == "" || len(step.Argv) == 0 || step.Argv[0] == "" || strings.HasPrefix(step.Dir, "/") || strings.HasPrefix(step.Dir, "..") && len(step.Dir) == 2 {
				t.Fatalf("step %+v", step)
			}
		}
	}
}

// FuzzPattern: a pattern that is accepted selects the same by walking a tree and
// by matching its paths.
func FuzzPattern(f *testing.F) {
	for _, pattern := range modelPatterns {
		f.Add("a", pattern, "a/b/x.go", "a/data/in")
	}
	f.Add("a[b", "[[]*/**/?", "a[b/[c/d", "x")
	f.Fuzz(func(t *testing.T, folder, pattern, file1, file2 string) {
		p, err := parsePattern(strings.Trim(folder, "/"), pattern)
		if err != nil {
			return
		}
		tree := memoryTree{}
		for _, file := range []string{file1, file2} {
			if isCleanPath(file) && !strings.HasPrefix(file1, file+"/") && !strings.HasPrefix(file2, file+"/") {
				tree[file] = "x"
			}
		}
		walked := walkedFiles(t, tree, p)
		for file := range tree {
			_, name := split(file)
			if name == FileName {
				continue
			}
			found := false
			for _, w := range walked {
				found = found || w == file
			}
			if found != p.MatchesFile(file) {
				t.Fatalf("%q: %q walking %v, matching %v", p.text, file, found, !found)
			}
		}
	})
}

// isCleanPath reports whether git could hold the path.
func isCleanPath(file string) bool {
	for name := range strings.SplitSeq(file, "/") {
		if name == "" || name == "." || name == ".." || strings.ContainsRune(name, 0) {
			return false
		}
	}
	return true
}

func TestHostileFilesAreReadWithinTheirBounds(t *testing.T) {
	// A stack that grows with the file would end the process; this much is plenty
	// for the nesting that is allowed.
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	const size = 1 << 17
	for _, start := range []string{"", "[", "{", "a: [", "- [", "a:\n  - ", "a: \"", "a: '", "a: |\n", "a: >\n  ", "targets:\n- name: x\n  sources: ["} {
		for _, unit := range []string{
			"a", "[", "{", "]", "}", "\"", "'", ":", ",", "- ", "-\n", "a: ", "a:\n", "a: b\n", "[]", "{}", "[a: ", "{a: ", "- a: ", "a: - ", "\"a\": ", "a,", "{a: b},",
			"\n", "\r\n", "\r", " ", "\t", "# c\n", " x\n", "&a ", "*a ", "!a ", "? ", "<<: ", "---\n", "%a\n", "|", "~: ", "é", "\\u0041", "''", "\"\",", "*", "**/", "../", "[*],",
		} {
			content := start + strings.Repeat(unit, size/len(unit))
			checkParsed(t, parseFile(FileName, []byte(content)))
		}
	}
	deep := strings.Builder{}
	for indent := 0; deep.Len() < size; indent++ {
		deep.WriteString(strings.Repeat(" ", indent) + "a:\n")
	}
	if file := parseFile(FileName, []byte(deep.String())); len(file.problems) == 0 {
		t.Error("a deep file has no problems")
	}
}
