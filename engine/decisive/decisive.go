// Package decisive finds the lines of a failed step's output that say why it failed: where, in which test, and what was
// expected. It knows what the compilers and test runners of Go, Python, JavaScript, TypeScript, Rust and C print, Bazel's, ctest's and
// make's and Maven's complaints, and JUnit's XML; of anything else it takes the last lines that speak of an error.
package decisive

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Most is how many lines there are at most, MaxBytes how long one is.
const (
	Most     = 3
	MaxBytes = 300
)

// Tree is what the step was run in. The zero value knows nothing, and paths are then shown as they were printed.
type Tree struct {
	// Root is the absolute path of the tree's root on the worker. It is left out of the lines.
	Root string
	// Dir is the folder, below Root, in which the failed command ran. Paths that its output names are relative to it.
	Dir string
	// Has reports whether the tree has a file; its argument is relative to Root. A nil Has knows of no file.
	Has func(name string) bool
	// Ending returns the files of the tree whose paths end in a slash and its argument, or of "*.sql", say, in what follows the star. A
	// nil Ending knows of none.
	Ending func(name string) []string
	// Read returns what a file of the tree holds, nil if that is not known. A nil Read knows of none.
	Read func(name string) []byte
	// Command is what was run, in the words of its arguments.
	Command []string
	// Ended is how the command ended, as in "ended with exit code 3". It comes before the end of an output that names no error and no
	// place; "" if that is not known.
	Ended string

	// entered are the folders that the output says it went to, last first.
	entered []string
}

// class is how much a line says; a smaller one says more. Only lines of one class are shown together.
type class int

const (
	// elsewhere is of a file that the tree does not have, and so may be a test's. It becomes doesNotCompile, or if a test failed, a
	// complaint.
	elsewhere class = iota
	doesNotCompile
	failedTest
	complaint
	crash
	report
	mention
	end
)

// enough findings of one kind end the search for more: what fails a thousand times was decided by the first.
const enough = 64

type finding struct {
	class class
	// at is the number of the line of the output.
	at   int
	text string
}

// Lines returns at most three lines, most decisive first: what does not compile, in a file that the tree has and outside of what
// tests print, else the tests that failed, else what ended the program. Each stands by itself, as "FILE:LINE: TEST: MESSAGE" where these are known, with FILE relative to the tree's
// root. It is valid UTF-8 without control characters, at most MaxBytes long. Reports are JUnit reports that the step has left,
// or logs of Bazel's tests. They are read if the output names neither an error of a compiler nor a test.
func Lines(output []byte, tree Tree, reports ...[]byte) []string {
	lines := clean(output)
	found := recognised(lines, tree)
	if !slices.ContainsFunc(found, func(f finding) bool { return f.class <= failedTest }) {
		for _, r := range reports {
			if found = append(found, reported(r, tree)...); len(found) > enough {
				break
			}
		}
	}
	for _, fallback := range []func([]string) []finding{mentions, npm, noTests} {
		if len(found) == 0 {
			found = fallback(withoutWarnings(lines))
		}
	}
	if len(found) == 0 {
		found = lastOf(lines, ofServices(output))
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.at, b.at))
	})
	var out []string
	for _, f := range found {
		if len(out) == Most || f.class != found[0].class {
			break
		}
		text := f.text
		if f.class >= report {
			text = tree.fromRoot(text)
		}
		if f.class == end && len(out) == 0 && !placed.MatchString(text) {
			text = joined(tree.Ended, text)
		}
		if text = shorten(tree.withinFile(tree.withoutRoot(text))); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// withinFile returns a text that begins with a line of a file as it is, unless the file of the tree ends before that line: tools that
// miss something at the end count one line more. Without the line if it is further, as of a file that was made from the tree's.
func (t Tree) withinFile(text string) string {
	m := placed.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	if source := t.sourceOf(m[1]); source != "" {
		return source + ":" + text[len(m[0]):]
	}
	content := t.read(m[1])
	line, err := strconv.Atoi(m[2])
	last := lineAt(content, len(bytes.TrimRight(content, "\r\n")))
	switch {
	case len(content) == 0 || err == nil && line <= bytes.Count(content, []byte("\n")) || err == nil && line <= last:
		return text
	case err == nil && line == bytes.Count(content, []byte("\n"))+1:
		return m[1] + ":" + strconv.Itoa(last) + ":" + text[len(m[0]):]
	}
	return m[1] + ":" + text[len(m[0]):]
}

// compiledTo is a file that may have been compiled.
var compiledTo = regexp.MustCompile(`^(\S+)\.([cm]?)jsx?$`)

// made is a folder that compilers of TypeScript write to.
var made = regexp.MustCompile(`(?:^|[._-])(?:out|output|dist|build|built|lib|compiled)(?:$|[._-])`)

// sourceOf returns the only file of TypeScript that a file in a folder of compiled ones may be made of; "" if none is.
func (t Tree) sourceOf(file string) (source string) {
	m := match(compiledTo, file)
	if m == nil || t.Has == nil || path.IsAbs(file) {
		return ""
	}
	parts := strings.Split(m[1], "/")
	for i, part := range parts[:len(parts)-1] {
		if !made.MatchString(part) {
			continue
		}
		for _, in := range [][]string{nil, {"src"}} {
			stem := strings.Join(slices.Concat(parts[:i], in, parts[i+1:]), "/")
			for _, name := range []string{stem + "." + m[2] + "ts", stem + "." + m[2] + "tsx"} {
				switch {
				case !t.Has(name):
				case source != "":
					return ""
				default:
					source = name
				}
			}
		}
	}
	return source
}

// lineAt returns the line of the byte at an offset.
func lineAt(content []byte, offset int) int { return 1 + bytes.Count(content[:offset], []byte("\n")) }

// read returns what a file holds, nil if that is not known.
func (t Tree) read(file string) []byte {
	if t.Read == nil || t.Has == nil || path.IsAbs(file) || strings.HasPrefix(file, "../") || !t.Has(file) {
		return nil
	}
	return t.Read(file)
}

// below returns the files of a name in the folders below the one of the command, in order.
func (t Tree) below(name string) []string {
	if t.Ending == nil {
		return nil
	}
	files := slices.Clone(t.Ending(name))
	slices.Sort(files)
	return slices.DeleteFunc(files, func(file string) bool {
		return t.Dir != "" && !strings.HasPrefix(file, t.Dir+"/") || file == path.Join(t.Dir, name) || toolsOwn(file)
	})
}

// placed is a line that begins with a line of a file.
var placed = regexp.MustCompile(`^(\S+):(\d+):`)

// recognised returns all that is recognised in an output.
func recognised(lines []string, tree Tree) (found []finding) {
	tree.entered = tree.entries(lines)
	for _, recognise := range []func([]string, Tree) []finding{
		goTests, goPanics, goRaces, goVendors, pytest, unittest, doctests, jest, vitest, mocha, tap, nodeSpec, rustPanics, bazel, junit, makes, cTests, maven, npmInstalls, uvResolves, goModules, sqlFiles,
	} {
		found = append(found, recognise(lines, tree)...)
	}
	blocks := ctestBlocks(lines)
	found = append(found, ctest(lines, tree, blocks, found)...)
	outside := withoutPrints(lines)
	for _, b := range blocks {
		clear(outside[b.from:b.to])
	}
	for _, recognise := range []func([]string, Tree) []finding{compilers, eslint, rustc, pythonBuilds, poetry} {
		found = append(found, recognise(outside, tree)...)
	}
	for _, recognise := range []func([]string, Tree) []finding{tracebacks, nodeThrows} {
		for _, f := range recognise(lines, tree) {
			if outside[f.at] == "" { // printed by a test, or what ended the run
				f.class = max(f.class, crash)
			}
			found = append(found, f)
		}
	}
	of := doesNotCompile
	if slices.ContainsFunc(found, func(f finding) bool { return f.class == failedTest }) {
		of = complaint
	}
	for i := range found {
		if found[i].class == elsewhere {
			found[i].class = of
		}
	}
	return found
}

// shorten makes one line of a text, at most MaxBytes long.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.Map(printable, strings.ToValidUTF8(text, ""))), " ")
	if len(text) <= MaxBytes {
		return text
	}
	most := MaxBytes - len("…")
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// execroot is where Bazel runs actions, and below it the files of a test.
var execroot = regexp.MustCompile(`/[^\s"'(]*/execroot/[^/\s]+/(?:bazel-out/[^\s"'(]*?\.runfiles/[^/\s]+/|bazel-out/[^/\s]+/bin/)?`)

// withoutRoot removes the root of the tree wherever a text names it, and the folders in which Bazel has the tree.
func (t Tree) withoutRoot(text string) string {
	if strings.Contains(text, "/execroot/") {
		text = execroot.ReplaceAllString(text, "")
	}
	if root := strings.TrimRight(t.Root, "/"); root != "" {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "file://"+root+"/", ""), root+"/", "")
	}
	return text
}

// named is what may be a path in a line that no recogniser has read, behind what comes before one.
var named = regexp.MustCompile(`(^|[\s"'(\x60=])([\w@+][\w@+./-]*\w)(:\d+)?`)

// fromRoot puts the folder that a command ran in before the paths below it that a text names.
func (t Tree) fromRoot(text string) string {
	if t.Dir == "" || t.Has == nil {
		return text
	}
	return named.ReplaceAllStringFunc(text, func(found string) string {
		m := match(named, found)
		if below := path.Join(t.Dir, m[2]); (m[3] != "" || strings.ContainsAny(m[2], "./")) && !toolsOwn(m[2]) && t.Has(below) {
			return m[1] + below + m[3]
		}
		return found
	})
}

// locate returns the path of a file relative to the root of the tree, and whether it is the tree's own. A tree that knows no
// file has those that are not a tool's. In is the folder that the output was about, "" if it did not say: of a Go package
// the import path.
func (t Tree) locate(name, in string) (string, bool) {
	name = t.withoutRoot(strings.TrimPrefix(name, "file://"))
	name = strings.TrimPrefix(name, "./")
	if t.Has == nil {
		return name, !toolsOwn(name)
	}
	candidates := []string{path.Join(t.Dir, name), name}
	for rest := in; rest != ""; {
		candidates = append(candidates, path.Join(rest, name))
		_, rest, _ = strings.Cut(rest, "/")
	}
	if in != "" { // the longest that exists: a package below is meant rather than one of the same name at the root
		candidates = append(candidates[2:], candidates[:2]...)
		for rest := in; rest != ""; {
			candidates = slices.Insert(candidates, 0, path.Join(t.Dir, rest, name))
			_, rest, _ = strings.Cut(rest, "/")
		}
		slices.SortStableFunc(candidates, func(a, b string) int { return cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")) })
	}
	var entered []string
	for _, dir := range t.entered {
		entered = append(entered, path.Join(dir, name))
	}
	if in == "" {
		candidates = append(entered, candidates...)
	} else {
		candidates = append(candidates, entered...)
	}
	for _, c := range candidates {
		if !path.IsAbs(c) && !strings.HasPrefix(c, "../") && !toolsOwn(c) && t.Has(c) {
			return c, true
		}
	}
	if t.Ending != nil && !toolsOwn(name) && !path.IsAbs(name) && !strings.HasPrefix(name, "../") {
		if fit := t.Ending(name); len(fit) == 1 && !toolsOwn(fit[0]) {
			return fit[0], true // of a workspace's member, whose folder the tool went to
		}
	}
	return name, false
}

// classOf returns the class of a line of a compiler or linter about a file.
func (t Tree) classOf(file string) class {
	if _, own := t.locate(file, ""); t.Has != nil && !own {
		return elsewhere
	}
	return doesNotCompile
}

// enters is what make, ninja, and the steps of JavaScript print where they go to a folder.
var enters = regexp.MustCompile("^(?:\\S+: )?Entering directory ['`\"](.+)['\"]$")

// entries returns the folders that lines of output say they are about, relative to the root, last first.
func (t Tree) entries(lines []string) (dirs []string) {
	for _, line := range slices.Backward(lines) {
		m := match(enters, line)
		if m == nil {
			continue
		}
		dir := t.withoutRoot(m[1])
		if dir == m[1] && !path.IsAbs(dir) {
			dir = path.Join(t.Dir, dir)
		}
		if dir != "" && !path.IsAbs(dir) && !slices.Contains(dirs, dir) && len(dirs) < enough {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

var toolsFolders = []string{"node_modules/", ".pnp.cjs", ".pnp.loader.mjs", "site-packages/", "dist-packages/", "/lib/python", "/rustc/", "/.cargo/registry/", "/go/src/", "/pkg/mod/", "importlib"}

// toolsOwn reports whether a file is a part of a tool or of a library rather than of the tree.
func toolsOwn(name string) bool {
	return name == "" || strings.HasPrefix(name, "node:") || strings.HasPrefix(name, "<") || strings.HasPrefix(name, "internal/") || name == "_testmain.go" ||
		slices.ContainsFunc(toolsFolders, func(f string) bool { return strings.Contains(name, f) })
}

// place is a line of a file.
type place struct{ file, line string }

// first returns the first place that is the tree's own, else the first one.
func (t Tree) first(of []place) string {
	best := ""
	for _, p := range of {
		file, own := t.locate(p.file, "")
		if own {
			return file + ":" + p.line
		}
		if best == "" {
			best = file + ":" + p.line
		}
	}
	return best
}

// last is like first, from the end.
func (t Tree) last(of []place) string {
	of = slices.Clone(of)
	slices.Reverse(of)
	return t.first(of)
}

// joined puts the parts that are there into one line.
func joined(parts ...string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return strings.TrimSpace(p) == "" })
	return strings.Join(parts, ": ")
}

// match returns the groups of a pattern that a line matches, nil if it does not.
func match(pattern *regexp.Regexp, line string) []string { return pattern.FindStringSubmatch(line) }
