package decisive

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Requirements that cannot be met: of packages of npm's and of modules of Go's. The tools name the package, and neither the file nor
// the line that asks for it.

var (
	// npmAsks matches npm's error of a package that it cannot get: the name and the version asked for.
	npmAsks = regexp.MustCompile(`^(?:404 +(?:The requested resource )?'(@?[^@\s]+)@([^']*)' |notarget No matching version found for (@?[^@\s]+)@(.*?)\.?(?: with a date before .*)?$|` +
		`Missing: (@?[^@\s]+)@(\S*) from lock file|Invalid: lock file's \S+ does not satisfy (@?[^@\s]+)@(\S*))`)
	// npmPeer matches the line after npmUnresolved: the requirement, and the package that has it.
	npmPeer = regexp.MustCompile(`^(?:\w+ )?(@?[^@\s]+)@"([^"]*)" from (?:(@?[^@\s]+)@\S*|the root project)$`)
	// npmAltered matches npm's error of a package whose checksum is not that of the lock file.
	npmAltered    = regexp.MustCompile(`^\S+ (integrity checksum failed when using \w+: wanted (\S+).*? but got .*?)\.?(?: \(\d+ bytes\))?$`)
	npmLocked     = regexp.MustCompile(`"([^"\n]+)"\s*:\s*\{`)
	npmUnresolved = "Could not resolve dependency:"
	npmKind       = regexp.MustCompile(`^(?:404|notarget) +`)
)

// npmInstalls finds why npm does not install: the requirements that cannot be met, or that the lock file does not have.
func npmInstalls(lines []string, tree Tree) (found []finding) {
	outOfStep, has := "", ""
	for i, line := range lines {
		m := match(npmError, line)
		switch {
		case m == nil:
			continue
		case m[1] == "Usage:" || len(found) >= Most:
			return found
		case strings.HasPrefix(m[1], "`npm ci` can only install"):
			outOfStep = m[1]
		case strings.HasPrefix(m[1], "Found: "):
			has = "found " + strings.TrimPrefix(m[1], "Found: ")
		case m[1] == npmUnresolved && i+1 < len(lines):
			if says := match(npmError, lines[i+1]); says != nil {
				if peer := match(npmPeer, says[1]); peer != nil {
					at := tree.requirement(peer[3], "")
					if peer[3] == "" || !placed.MatchString(at+":") {
						at = tree.requirement(peer[1], peer[2])
					}
					found = append(found, finding{crash, i, joined(at, npmUnresolved[:len(npmUnresolved)-1], says[1], has)})
				}
			}
		case npmAltered.MatchString(m[1]):
			found = append(found, finding{crash, i, tree.altered(match(npmAltered, m[1]))})
		default:
			asks := slices.DeleteFunc(match(npmAsks, m[1]), func(group string) bool { return group == "" })
			if len(asks) < 2 {
				continue
			}
			name, wanted := asks[1], strings.Join(asks[2:], "")
			found = append(found, finding{crash, i, joined(tree.requirement(name, wanted), npmKind.ReplaceAllString(m[1], ""))})
			if outOfStep != "" { // which command mends it
				found, outOfStep = append(found, finding{crash, i, outOfStep}), ""
			}
		}
	}
	return found
}

// requirement returns the line of a package.json, in the folder of the command and below, that asks for a package: the line that asks
// for what is wanted, else one that may come to it. Of what another package asks for it is the line of the lock file. If none does, it
// is the package.json of the folder, without a line.
func (t Tree) requirement(name, wanted string) string {
	manifest := path.Join(t.Dir, "package.json")
	if t.Has == nil || !t.Has(manifest) {
		return ""
	}
	best, most, several := "", 0, false
	for _, file := range append([]string{manifest}, t.below("package.json")...) {
		line, fits := asksFor(t.read(file), name, wanted)
		if several = several || fits == 1 && most == 1; fits > most {
			best, most = file+":"+strconv.Itoa(line), fits
		}
	}
	if most > 1 || most == 1 && !several {
		return best
	}
	lock := path.Join(t.Dir, "package-lock.json")
	if line, fits := asksFor(t.read(lock), name, wanted); fits == 3 {
		return lock + ":" + strconv.Itoa(line)
	}
	return manifest
}

// altered returns the decisive line of a package whose checksum is not that of the lock file, by what npmAltered matched: with the line
// of the checksum, and the package.
func (t Tree) altered(says []string) string {
	for _, name := range []string{"npm-shrinkwrap.json", "package-lock.json"} {
		lock := path.Join(t.Dir, name)
		content := t.read(lock)
		at := bytes.Index(content, []byte(says[2]))
		if at < 0 {
			continue
		}
		of := ""
		if entries := npmLocked.FindAllSubmatch(content[:at], -1); len(entries) > 0 {
			names := strings.Split(string(entries[len(entries)-1][1]), "node_modules/")
			of = names[len(names)-1]
		}
		return joined(lock+":"+strconv.Itoa(lineAt(content, at)), of, says[1])
	}
	return says[1]
}

// asksFor returns the line of a JSON file that asks for a package, and how well: 3 in the words of what is wanted, 2 for a version of
// the same first number, 1 for any, 0 if none does.
func asksFor(content []byte, name, wanted string) (line, fits int) {
	first := func(version string) string {
		version, _, _ = strings.Cut(strings.TrimLeft(version, "^~>=v "), ".")
		return version
	}
	key := []byte(strconv.Quote(name))
	for at := 0; ; at += len(key) {
		next := bytes.Index(content[at:], key)
		if next < 0 {
			return line, fits
		}
		at += next
		value, is := bytes.CutPrefix(bytes.TrimLeft(content[at+len(key):], " \t\r\n"), []byte(":"))
		value, isText := bytes.CutPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte(`"`))
		text, _, ends := strings.Cut(string(value[:min(len(value), MaxBytes)]), `"`)
		if !is || !isText || !ends {
			continue
		}
		fit := 1
		if text == wanted {
			fit = 3
		} else if wanted != "" && first(text) == first(wanted) {
			fit = 2
		}
		if fit > fits {
			line, fits = lineAt(content, at), fit
		}
	}
}

var (
	// goAsks matches what go says of a module, goPackage of a package, in whatever module it is.
	goAsks    = regexp.MustCompile(`^(?:verifying )?([\w.~-]+(?:/[\w.~-]+)*)@(v[^\s:]+)(?::| requires$)`)
	goPackage = regexp.MustCompile(`^missing go\.sum entry for module providing package ([^\s;]+)`)
	goReplace = regexp.MustCompile(`: replacement directory (\S+) does not exist`)
	goTooNew  = regexp.MustCompile(`^go\.(?:mod|work) requires go >= (\S+) `)
	// goFile matches a mistake in one of go's own files, goSelf what it says without a file.
	goFile = regexp.MustCompile(`^(\S*go\.(?:mod|work|sum)):(\d+)(?::\d+)?: (.+)$`)
	goSelf = regexp.MustCompile(`^(?:go: )?((?:verifying )?[\w.~/-]+@v\S+: .+|[\w.~/-]+@v\S+ requires|updates to go\.(?:mod|work) needed.*|go\.(?:mod|work) requires go >= .+)$`)
)

// goModules finds go's errors about modules that name no source file.
func goModules(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if len(found) >= Most {
			break
		}
		if m := match(goFile, line); m != nil {
			file, own := tree.locate(m[1], "")
			if own {
				found = append(found, finding{crash, i, joined(file+":"+m[2], m[3])})
			}
		} else if m := match(goSelf, line); m != nil && (strings.HasPrefix(line, "go: ") || strings.HasPrefix(line, "verifying ")) {
			text := m[1]
			for _, next := range lines[i+1 : min(len(lines), i+5)] {
				if !strings.HasPrefix(next, "\t") {
					break
				}
				text += " " + strings.TrimSpace(next)
			}
			found = append(found, finding{crash, i, joined(tree.module(m[1], tree.Dir), text)})
		}
	}
	return found
}

// module returns the line of the go.mod or go.sum that causes an error of go about a module, "" if there is none. It looks in a folder and
// those above it, then in the other modules.
func (t Tree) module(text, dir string) string {
	name, wants := goWants(text)
	if name == "" {
		return ""
	}
	var files []string
	for at := dir; t.Has != nil && len(files) == 0; at = path.Dir(at) {
		if file := path.Join(at, name); t.Has(file) {
			files = append(files, file)
		}
		if at == "" || at == "." || at == "/" {
			break
		}
	}
	if wants == nil {
		return strings.Join(files, "")
	}
	for _, file := range append(files, t.below(name)...) {
		line, most := 0, 0
		for n, text := range strings.Split(string(t.read(file)), "\n") {
			text, _, _ = strings.Cut(text, "//")
			if fits := wants(strings.Fields(text)); fits > most {
				line, most = n+1, fits
			}
		}
		if line > 0 {
			return file + ":" + strconv.Itoa(line)
		}
	}
	return ""
}

// goWants returns the file that an error of go about a module concerns, "" if it concerns none, and a function that returns how well the
// words of a line fit. The function is nil if the error concerns the whole file.
func goWants(text string) (file string, wants func(words []string) int) {
	is := func(holds bool) int {
		if holds {
			return 1
		}
		return 0
	}
	asks, needs, replaced, newer := match(goAsks, text), match(goPackage, text), match(goReplace, text), match(goTooNew, text)
	switch {
	case strings.HasPrefix(text, "updates to go.mod needed"):
		return "go.mod", nil
	case newer != nil:
		return "go.mod", func(words []string) int { return is(slices.Equal(words, []string{"go", newer[1]})) }
	case replaced != nil:
		return "go.mod", func(words []string) int {
			return is(slices.Contains(words, "=>") && strings.Trim(words[len(words)-1], "\"`") == replaced[1])
		}
	case asks != nil:
		if file = "go.mod"; strings.HasPrefix(text, "verifying ") {
			file = "go.sum"
		}
		return file, func(words []string) int {
			at := slices.Index(words, asks[1])
			return is((at == 0 || at == 1) && len(words) > at+1 && words[at+1] == asks[2])
		}
	case needs != nil:
		return "go.mod", func(words []string) int {
			if len(words) > 2 && words[0] == "require" {
				words = words[1:]
			}
			if len(words) == 2 && strings.HasPrefix(needs[1]+"/", words[0]+"/") {
				return len(words[0])
			}
			return 0
		}
	}
	return "", nil
}

var (
	uvFails = regexp.MustCompile(`^(?:error: |\s*× )No solution found when resolving dependencies`)
	uvCause = regexp.MustCompile(`^\s+(?:cause: |╰─▶ )(Because .*)$`)
	uvAsks  = regexp.MustCompile(`(?i)depends? on ([a-z0-9][\w.-]*)([^\s,]*)`)
	pyAsks  = regexp.MustCompile(`(?i)["']([a-z0-9][\w.-]*)([^"']*)["']`)
	pyPlain = strings.NewReplacer("_", "-", ".", "-")
)

// uvResolves finds why uv can choose no versions: the requirement that the cause names.
func uvResolves(lines []string, tree Tree) (found []finding) {
	for i, line := range lines {
		if i+1 == len(lines) || !uvFails.MatchString(line) {
			continue
		}
		if m := match(uvCause, lines[i+1]); m != nil {
			end := blockEnd(lines, i+2, func(l string) bool { return !strings.HasPrefix(l, "    ") })
			cause := strings.Join(strings.Fields(m[1]+" "+strings.Join(lines[i+2:end], " ")), " ")
			return []finding{{crash, i, joined(tree.pyRequirement(cause), cause)}}
		}
	}
	return nil
}

// pyRequirement returns the line of a pyproject.toml, in the folder of the command and below, that asks for what a cause names: in its
// words, else by its name.
func (t Tree) pyRequirement(cause string) (best string) {
	plain := func(name string) string { return strings.ToLower(pyPlain.Replace(name)) }
	wanted := map[string]string{}
	for _, asks := range uvAsks.FindAllStringSubmatch(cause, -1) {
		wanted[plain(asks[1])] = asks[2]
	}
	most := 0
	for _, file := range append([]string{path.Join(t.Dir, "pyproject.toml")}, t.below("pyproject.toml")...) {
		content := t.read(file)
		for _, at := range pyAsks.FindAllSubmatchIndex(content, -1) {
			of, is := wanted[plain(string(content[at[2]:at[3]]))]
			if !is {
				continue
			}
			fits := 1
			if strings.ReplaceAll(string(content[at[4]:at[5]]), " ", "") == of {
				fits += len(of)
			}
			if fits > most {
				best, most = file+":"+strconv.Itoa(lineAt(content, at[0])), fits
			}
		}
	}
	return best
}
