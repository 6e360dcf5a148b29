package decisive

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// says is "FILE:LINE:COLUMN: error: MESSAGE", with or without a column, as most compilers print it.
	says = regexp.MustCompile(`^([^\s:][^:]*):(\d+)(:\d+)?: (?:fatal |catastrophic )?[Ee]rror(?:\[\w+\])?: ?(.*)$`)
	// goSays is what Go's compiler, vet and most linters print: the column is always there.
	goSays = regexp.MustCompile(`^(?:vet: )?(\S+\.(?:go|s|py)):(\d+):\d+: (.+)$`)
	// shellSays is what bash and dash say of a script that they cannot read.
	shellSays = regexp.MustCompile(`^(?:(?:ba|da)?sh: )?(\S+): (?:line )?(\d+): ([Ss]yntax error.*)$`)
	// tscSays is TypeScript's, plain and pretty.
	tscSays = regexp.MustCompile(`^(\S[^(:]*)(?:\((\d+),\d+\):|:(\d+):\d+ -) error (TS\d+: .*)$`)
	goHead  = regexp.MustCompile(`^# [\w./~-]+(?: \[[^\]]+\])?$`)
	// linked matches the object that the linker's next lines are about, unlinked a complaint there about a source, with its line or without.
	linked   = regexp.MustCompile("^(?:\\S*ld(?:\\.\\w+)?: )?(\\S+\\.o): in function [`'](.+)'")
	unlinked = regexp.MustCompile(`^(?:\S*ld(?:\.\w+)?: )?([^\s:(]+\.\w+):(?:(\d+):)?(?:\([^)]*\):)? (.+)$`)
	linker   = regexp.MustCompile(`undefined reference to |undefined symbol|multiple definition of |duplicate symbol`)
)

// compilers finds what does not compile, of languages whose compilers name a file and a line on one line.
func compilers(lines []string, tree Tree) (found []finding) {
	put := func(at int, file, line, text string) {
		found = append(found, finding{tree.classOf(file), at, joined(tree.first([]place{{file, line}}), text)})
	}
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if !strings.Contains(line, ": ") && !strings.HasPrefix(line, "# ") {
			continue
		}
		next := func(n int) string {
			if i+n < len(lines) {
				return strings.TrimSpace(lines[i+n])
			}
			return ""
		}
		if m := match(goSays, line); m != nil {
			if strings.HasPrefix(m[3], "note: ") { // a C compiler's, of C in a Go file
				continue
			}
			text := strings.TrimPrefix(m[3], "error: ")
			for n := 1; n < 4 && i+n < len(lines) && strings.HasPrefix(lines[i+n], "\t"); n++ {
				text += " " + next(n)
			}
			put(i, m[1], m[2], text)
			if file, own := tree.locate(m[1], ""); own && strings.HasSuffix(file, ".go") {
				if at := tree.module(text, path.Dir(file)); at != "" { // an import cannot help what a go.mod asks for
					found[len(found)-1].text = joined(at, text)
				}
			}
			if strings.HasPrefix(text, "warning: ") { // a C compiler's, which go prints though it builds
				found[len(found)-1].class = complaint
			}
		} else if m := match(says, line); m != nil {
			text := m[4]
			if text == "" {
				text = next(1)
			}
			if put(i, m[1], m[2], text); m[3] == "" { // so log lines look
				found[len(found)-1].class = complaint
			}
		} else if m := match(shellSays, line); m != nil {
			put(i, m[1], m[2], m[3])
		} else if m := match(tscSays, line); m != nil {
			put(i, m[1], m[2]+m[3], m[4])
		} else if goHead.MatchString(line) && next(1) != "" && !strings.HasPrefix(next(1), "#") && strings.Contains(next(1), ": ") && !namesMore(lines[i+1:]) {
			found = append(found, finding{doesNotCompile, i, next(1)}) // the linker names no line
		} else if linker.MatchString(line) && !strings.HasPrefix(line, " ") {
			found = append(found, finding{doesNotCompile, i, notLinked(lines[:i+1], tree)})
		}
	}
	return found
}

// notLinked returns the decisive line of a linker error, the last of some lines. The linker names a source without its folder. That is
// the object's folder, or the one that an earlier command named. What cgo makes of a Go file is told as that file.
func notLinked(lines []string, tree Tree) string {
	line := lines[len(lines)-1]
	m := match(unlinked, line)
	if m == nil {
		return line
	}
	name, at, function := m[1], m[2], ""
	made, ofGo := strings.CutSuffix(path.Base(name), ".cgo2.c")
	if ofGo {
		name, at = made+".go", ""
	}
	file, own := tree.locate(name, "")
	for i := len(lines) - 2; i >= 0 && function == ""; i-- {
		if of := match(linked, lines[i]); of != nil {
			if function = of[2]; !own {
				file, own = tree.locate(name, path.Dir(of[1]))
			}
		} else if match(unlinked, lines[i]) == nil {
			break
		}
	}
	for i := len(lines) - 2; i >= 0 && !own && tree.Has != nil; i-- {
		for _, word := range strings.Fields(lines[i]) {
			if strings.HasSuffix(word, "/"+name) && !own {
				if found, is := tree.locate(word, ""); is {
					file, own = found, true
				}
			}
		}
	}
	if !own && tree.Ending != nil {
		if all := tree.Ending(name); len(all) == 1 {
			file = all[0]
		}
	}
	if ofGo {
		return joined(file, m[3])
	}
	if at != "" {
		file += ":" + at
	}
	return joined(file, function, m[3])
}

// namesMore reports whether what go prints of a package, behind its head, names a line, or what the linker does not find.
func namesMore(lines []string) bool {
	for _, line := range lines[:blockEnd(lines, 0, func(line string) bool { return line == "" || strings.HasPrefix(line, "# ") })] {
		if goSays.MatchString(line) || says.MatchString(line) || linker.MatchString(line) && !strings.HasPrefix(line, " ") {
			return true
		}
	}
	return false
}

var (
	rustSays  = regexp.MustCompile(`^error(?:\[\w+\])?: (.+)$`)
	rustArrow = regexp.MustCompile(`^\s*--> ([^:]+):(\d+):\d+$`)
	// rustDoc begins what a documentation test printed, whose panics name a line of the program that was made of it.
	rustDoc   = regexp.MustCompile(`^---- (\S+) - (?:(\S.*) )?\(line (\d+)\) stdout ----$`)
	rustPanic = regexp.MustCompile(`^\s*thread '([^']+)'(?: \(\d+\))? panicked at (?:'(.*)', )?([^:]+):(\d+):\d+:?$`)
)

// rustc finds the errors of Rust's compiler.
func rustc(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		m := match(rustSays, line)
		if m == nil {
			continue
		}
		f := finding{class: report, at: i, text: line + hint(lines[i+1:])}
		block := lines[i+1 : blockEnd(lines, i+1, rustSays.MatchString)]
		for _, below := range block { // what a macro of the tree panicked with
			if message, is := strings.CutPrefix(strings.TrimSpace(below), "= help: message: "); is {
				line += ": " + message
				break
			}
		}
		for _, below := range block[:min(len(block), 3)] {
			if at := match(rustArrow, below); at != nil {
				f.class, f.text = tree.classOf(at[1]), joined(tree.first([]place{{at[1], at[2]}}), line)
				break
			}
		}
		found = append(found, f)
	}
	return found
}

// hint returns what uv says next to an error, such as the command that brings a lock file up to date, with a space before it; "" if
// it says nothing.
func hint(next []string) string {
	for _, line := range next[:min(len(next), 2)] {
		if strings.HasPrefix(line, "hint: ") {
			return " " + line
		}
		if line != "" {
			break
		}
	}
	return ""
}

// rustPanics finds what a Rust program or test panicked with.
func rustPanics(lines []string, tree Tree) (found []finding) {
	var doc []string
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if strings.HasPrefix(line, "---- ") || line == "failures:" {
			doc = match(rustDoc, line)
		}
		m := match(rustPanic, line)
		if m == nil {
			continue
		}
		text := m[2]
		for n := 1; text == "" || n < 5; n++ {
			below := ""
			if i+n < len(lines) {
				below = strings.TrimSpace(lines[i+n]) // cargo indents what a build script prints
			}
			if below == "" || strings.HasPrefix(below, "stack backtrace:") || strings.HasPrefix(below, "note: ") {
				break
			}
			if text == "" {
				text = below
			} else {
				text += "; " + below
			}
		}
		test := m[1]
		if test == "main" {
			test = ""
		}
		at := place{m[3], m[4]}
		if doc != nil {
			if test = doc[2]; at.file == doc[1] {
				at.line = doc[3]
			}
		}
		found = append(found, finding{failedTest, i, joined(tree.first([]place{at}), test, text)})
	}
	return found
}

var (
	bazelAt   = regexp.MustCompile(`^ERROR: (\S+?):(\d+):\d+: (.*)$`)
	bazelTest = regexp.MustCompile(`^(?:FAIL|TIMEOUT): (//\S+|@\S+)`)
	// bazelGoesOn matches what Bazel says behind the output of an action that failed.
	bazelGoesOn = regexp.MustCompile(`^(?:Target |ERROR:|WARNING:|INFO:|FAILED:|Analyzing:|Loading:|\[[\d,]+ / [\d,]+\])`)
	bazelLog    = regexp.MustCompile(`^=+ Test output for (\S+):$`)
)

// bazel finds what Bazel complains of. What an action prints says more than Bazel does, and is found by others.
func bazel(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if m := match(bazelAt, line); m != nil {
			f := finding{class: doesNotCompile, at: i}
			text := m[3]
			if failed := strings.Index(text, " failed"); failed >= 0 {
				f.class = report
				if code := strings.Index(text, ")"); code >= 0 {
					text = text[:code+1]
				}
				// What the action printed follows its command, which is indented.
				output := slices.Clone(lines[i+1 : blockEnd(lines, i+1, bazelGoesOn.MatchString)])
				for n, line := range output {
					if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "Use --") {
						output[n] = ""
					}
				}
				if said := append(mentions(output), lastLines(output)...); len(said) > 0 {
					text = joined(text, said[0].text)
				}
			}
			f.text = joined(tree.first([]place{{m[1], m[2]}}), text)
			found = append(found, f)
		} else if m := match(bazelTest, line); m != nil {
			found = append(found, finding{report, i, m[1] + " failed"})
		} else if m := match(bazelLog, line); m != nil {
			end := blockEnd(lines, i+1, func(l string) bool { return strings.HasPrefix(l, "=====") })
			inner := append(mentions(lines[i+1:end]), lastLines(lines[i+1:end])...)
			for n := range inner {
				if n < Most && inner[n].class == inner[0].class {
					found = append(found, finding{report, i, joined(m[1], inner[n].text)})
				}
			}
		}
	}
	return found
}

var (
	makeSays = regexp.MustCompile(`^\S*make(?:\[\d+\])?: \*\*\* .*`)
	// makeStarts matches the error of make for a program that is not found: "make: go: No such file or directory".
	makeStarts = regexp.MustCompile(`^make(?:\[\d+\])?: [^\s:]+: (?:No such file or directory|Permission denied)$`)
)

// makes finds what make gave up on, behind the last line of the command that failed.
func makes(lines []string, _ Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= enough {
			break
		}
		if !makeSays.MatchString(line) {
			continue
		}
		for at := i - 1; at >= 0 && len(found) == 0; at-- {
			if lines[at] != "" && (!strings.HasPrefix(lines[at], "make") || makeStarts.MatchString(lines[at])) {
				found = append(found, finding{report, at, lines[at]})
			}
		}
		found = append(found, finding{report, i, line})
	}
	return found
}

var (
	complains = regexp.MustCompile(`(?i)\b(?:errors?|fail(?:ed|ure|ures|s)?|fatal|panic|exception|not found|cannot|can't|denied|no such|no module named|undefined|unexpected|mismatch|differs?|(?:bad|unknown|invalid|unrecognized) (?:options?|flags?|arguments?|commands?))\b`)
	harmless  = regexp.MustCompile(`(?i)^npm (?:err!|error|warn)|^warning\b`)
	// none matches a count of failures that is zero: "0 tests failed", "no errors", "# fail 0", "Failures: 0,".
	none = regexp.MustCompile(`(?i)(?:^|[^\w.])(?:0|no) (?:tests? )?(?:errors?|problems?|fail(?:ed|ing|ures?|s)?)\b|\b(?:errors?|fail(?:ed|ures?|s)?)(?:\s*[:=]\s*|\s+)0(?:[,;)|\]]|\.?\s*$|\.\s)`)
	// compares matches a line that says what was expected, which may be a count.
	compares = regexp.MustCompile(`(?i)\b(?:expect(?:ed|s)?|want(?:ed)?|got|but|should|must|instead|thrown|raised)\b`)
)

// isClean reports whether a line is a summary that counts no failure.
func isClean(line string) bool {
	return none.MatchString(line) && !compares.MatchString(line) && !complains.MatchString(none.ReplaceAllString(line, ""))
}

// warns is the first line of a warning; indented lines below it belong to it.
var warns = regexp.MustCompile(`(?i)^warning: `)

// withoutWarnings returns lines with those of warnings empty.
func withoutWarnings(lines []string) []string {
	lines, within := slices.Clone(lines), false
	for i, line := range lines {
		within = warns.MatchString(line) || within && strings.HasPrefix(line, " ")
		if within {
			lines[i] = ""
		}
	}
	return lines
}

// mentions returns the last lines that speak of something wrong.
func mentions(lines []string) (found []finding) {
	for i := len(lines) - 1; i >= 0 && len(found) < Most; i-- {
		if complains.MatchString(lines[i]) && !harmless.MatchString(lines[i]) && !isClean(lines[i]) {
			found = append([]finding{{mention, i, announced(lines, i)}}, found...)
		}
	}
	return found
}

// announced returns a line and, as long as it ends with a colon, what follows: the next lines that are not empty.
func announced(lines []string, i int) string {
	text := strings.TrimSpace(lines[i])
	for _, next := range lines[i+1 : min(len(lines), i+8)] {
		if !strings.HasSuffix(text, ":") {
			break
		}
		if next = strings.TrimSpace(next); next != "" {
			text += " " + next
		}
	}
	return text
}

var (
	npmError = regexp.MustCompile(`^npm (?i:err!|error) +(.*\S)`)
	// npmNoise is what npm prints about itself: where it ran, how to call it, and where its own log is.
	npmNoise = regexp.MustCompile(`^(?:(?:code|errno|path|workspace|location|command) |A complete log of this run|Run "npm help)`)
)

// npm returns the first sentences of npm's own complaint, such as a lock file that does not fit. Where a script failed, what
// the script printed says more, and npm's lines are not asked.
func npm(lines []string) (found []finding) {
	for i, line := range lines {
		m := match(npmError, line)
		if m != nil && m[1] == "Usage:" {
			break
		}
		if m != nil && !npmNoise.MatchString(m[1]) && len(found) < enough {
			found = append(found, finding{mention, i, m[1]})
		}
	}
	return found
}

// lastOf returns the last lines of the command, also those of a warning if there are no others, else of what services have printed,
// with their names.
func lastOf(lines, service []string) (found []finding) {
	command := len(lines)
	if i := slices.IndexFunc(service, func(name string) bool { return name != "" }); i >= 0 {
		command = i
	}
	if found = running(lines[:command]); len(found) > 0 {
		return found
	}
	if found = lastLines(withoutWarnings(lines[:command])); len(found) == 0 {
		found = lastLines(lines[:command])
	}
	if len(found) == 0 {
		found = lastLines(lines)
		for i, f := range found {
			found[i].text = service[f.at] + " | " + f.text
		}
	}
	return found
}

// lastLines returns the last lines that are not empty, without summaries that count no failure, what npm prints before it runs a
// script, lines that only name the folder entered, and headers and counters of tools.
func lastLines(lines []string) (found []finding) {
	for i := len(lines) - 1; i >= 0 && len(found) < Most; i-- {
		if strings.TrimSpace(lines[i]) != "" && !isClean(lines[i]) && !announces(lines, i) && !enters.MatchString(lines[i]) && !noise.MatchString(lines[i]) {
			found = append([]finding{{end, i, lines[i]}}, found...)
		}
	}
	return found
}

// announces reports whether a line is one of the two by which npm, between empty lines, announces a script.
func announces(lines []string, i int) bool {
	at := func(i int) string {
		if i < 0 || i >= len(lines) {
			return ""
		}
		return lines[i]
	}
	is := func(first int) bool {
		return at(first-1) == "" && npmScript.MatchString(at(first)) && strings.HasPrefix(at(first+1), "> ") && at(first+2) == ""
	}
	return is(i) || is(i-1)
}

// npmScript is what npm runs: "> @shop/cart@1.0.0 test", or "> test" of a package without a version.
var npmScript = regexp.MustCompile(`^> (?:@?[\w./-]+@\S+ )?[\w:.-]+$`)
