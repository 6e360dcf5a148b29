package nodegraph

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// climb is a folder above that a file may go through with all below it.
type climb struct {
	spec string // dots alone
	// fromRun: it is seen from the folder in which scripts of the package run, else from the file's.
	fromRun bool
}

// walking are words of code that goes through folders, or starts programs that may.
var walking = []string{
	"readdir", "readDir", "opendir", "scandir", "walk", "Walk", "Glob", "fdir", "klaw", "child_process", "execa", "execSync", "execFile", "spawn", "shelljs", "zx",
}

// globbing is glob where it does not begin global.
var globbing = regexp.MustCompile(`glob(?:[^a]|$)`)

// goesThroughFolders reports whether a script may go through folders.
func goesThroughFolders(content []byte) bool {
	return holdsAny(content, walking) || globbing.Match(content)
}

func holdsAny(content []byte, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(content, []byte(word)) })
}

// dots are two dots as the names of a path, with what a pattern or a computed name begins with behind them.
var dots = regexp.MustCompile(`\.\.(?:/\.\.)*(?:/(?:[*?\[]|[\w@.-]*(?:\*|\$\{))?)?`)

// assigned matches a name and the = by which it is given a value.
var assigned = regexp.MustCompile(`([A-Za-z_$][\w$]*)\s*=(?:[^=>]|$)`)

// maxLineBytes bounds how much of a line is looked at before a text.
const maxLineBytes = 400

const quotes = "\"'`"

// walked returns the folders above that a file may go through: those of patterns and of computed paths, and, if it goes through folders,
// those that a text of dots alone stands for, unless a name is given to it that only begins longer paths: path.join(root, "data").
func (s *scanner) walked(l language, walks bool) []climb {
	found := map[climb]bool{}
	named := map[string][]climb{}
	given := map[int]bool{} // where names stand that are given a value
	done := 0
	for _, at := range dots.FindAllIndex(s.text, -1) {
		begin, end := at[0], at[1]
		if begin < done || begin == 0 {
			continue
		}
		before := s.text[begin-1]
		isQuoted := strings.IndexByte(quotes, before) >= 0
		if !isQuoted && before != '/' && (l == script || before != ' ' && before != '=') {
			continue
		}
		spec, isPattern, isComputed := string(s.text[begin:end]), false, false
		switch i := strings.IndexAny(spec, "*?[$"); {
		case i >= 0:
			isPattern, isComputed = true, spec[i] == '$'
			if isComputed && !walks && s.tail(begin+i) != "" {
				continue // It names manifests, which all count.
			}
			spec = withoutWildcards(spec)
		case l != script || end == len(s.text) || strings.IndexByte(quotes, s.text[end]) < 0:
			continue
		default:
			whole, after := s.joined(spec, end)
			if walks {
				done = after
			}
			isComputed = strings.Contains(whole, "*") && s.makesPath(end) || isQuoted && s.isAdded(spec, begin-1, end)
			if isPattern = isComputed; isComputed && !walks && namesManifests(whole) {
				continue
			}
			spec = withoutWildcards(whole)
		}
		isImported := isQuoted && l == script && s.importsModule(begin-1)
		if !isClimb(spec) || isImported && !isComputed {
			continue
		}
		climbs := []climb{{spec: path.Clean(spec)}}
		if l != script || !isImported && s.isFromRun(begin, isQuoted) {
			climbs = append(climbs, climb{climbs[0].spec, true})
		}
		name, where := "", 0
		if !isPattern {
			name, where = s.nameOfValue(begin)
		}
		for _, c := range climbs {
			if name == "" {
				found[c] = found[c] || walks || isPattern
			} else if !slices.Contains(named[name], c) {
				named[name] = append(named[name], c)
			}
		}
		given[where] = name != ""
	}
	for i := 0; i < len(s.text) && len(named) > 0; i++ {
		if !isWord(s.text[i]) {
			continue
		}
		begin := i
		for i < len(s.text) && isWord(s.text[i]) {
			i++
		}
		if climbs := named[string(s.text[begin:i])]; climbs != nil && !given[begin] && (walks && !s.beginsPath(begin, i) || s.beginsComputed(begin, i)) {
			for _, c := range climbs {
				found[c] = true
			}
		}
	}
	maps.DeleteFunc(found, func(_ climb, counts bool) bool { return !counts })
	climbs := make([]climb, 0, len(found))
	for c := range found {
		climbs = append(climbs, c)
	}
	slices.SortFunc(climbs, func(x, y climb) int {
		if x.fromRun != y.fromRun {
			return map[bool]int{false: -1, true: 1}[x.fromRun]
		}
		return strings.Compare(x.spec, y.spec)
	})
	return slices.Clip(climbs)
}

// importsModule reports whether the text that begins at i is a module that is imported: resolve is path.resolve, too.
func (s *scanner) importsModule(i int) bool {
	if s.left < 0 || !s.isImported(i) {
		return false
	}
	at := s.back(i)
	if at > 0 && s.text[at-1] == '(' {
		word := s.word(s.back(at - 1))
		return word != "resolve" && word != "url"
	}
	return true
}

// isFromRun reports whether dots that begin at i may count from the folder in which the file is run: they come first in what a
// function is given, or after that folder.
func (s *scanner) isFromRun(i int, isQuoted bool) bool {
	if !isQuoted {
		return bytes.HasSuffix(s.text[:i], []byte("cwd()}/"))
	}
	at := s.back(i - 1)
	if at == 0 || s.left < 0 {
		return true
	}
	switch s.text[at-1] {
	case '(':
		return s.word(s.back(at-1)) != "URL"
	case ',':
		return bytes.HasSuffix(s.text[:at-1], []byte("cwd()"))
	}
	return s.text[at-1] != '+'
}

// nameOfValue returns the name that is given a value on the line before i, and where it stands; empty if there is none.
func (s *scanner) nameOfValue(i int) (name string, at int) {
	begin := max(0, i-maxLineBytes)
	line := s.text[begin:i]
	if end := bytes.LastIndexByte(line, '\n'); end >= 0 {
		begin, line = begin+end+1, line[end+1:]
	}
	if s.left -= len(line); s.left < 0 {
		return "", 0
	}
	all := assigned.FindAllSubmatchIndex(line, -1)
	if len(all) == 0 {
		return "", 0
	}
	last := all[len(all)-1]
	return string(line[last[2]:last[3]]), begin + last[2]
}

// beginsPath reports whether a name is used as the beginning of a longer path: join(root, "x"), `${root}/x` or root + "/x".
func (s *scanner) beginsPath(begin, end int) bool {
	if s.left < 0 {
		return false
	}
	rest := s.text[end:]
	if bytes.HasPrefix(rest, []byte("}/")) {
		return begin > 1 && string(s.text[begin-2:begin]) == "${" && len(rest) > 2 && (isWord(rest[2]) && rest[2] != '$' || rest[2] == '@')
	}
	next := s.skipSpace(end)
	if next == len(s.text) || s.text[next] != ',' && s.text[next] != '+' {
		return false
	}
	if s.text[next] == ',' {
		at := s.back(begin)
		if at == 0 || s.text[at-1] != '(' {
			return false
		}
		if word := s.word(s.back(at - 1)); word != "join" && word != "resolve" {
			return false
		}
	}
	text := s.skipSpace(next + 1)
	if text == len(s.text) || strings.IndexByte(quotes, s.text[text]) < 0 {
		return false
	}
	name, _, ok := s.literal(text)
	name = strings.TrimPrefix(name, "/")
	return ok && name != "" && (isWord(name[0]) || name[0] == '@')
}

// beginsComputed reports whether a name is used as the beginning of a path that goes on computed, to other files than manifests:
// join(root, name), `${root}/${name}` or root + "/" + name. It notes manifests.
func (s *scanner) beginsComputed(begin, end int) bool {
	if s.left < 0 {
		return true
	}
	if bytes.HasPrefix(s.text[end:], []byte("}/${")) {
		return begin > 1 && string(s.text[begin-2:begin]) == "${" && s.tail(end+2) == ""
	}
	next := s.skipSpace(end)
	switch {
	case next < len(s.text) && s.text[next] == ',':
		whole, _ := s.joined("..", end-1)
		isComputed := strings.HasPrefix(whole, "../*")
		s.manifests = s.manifests || isComputed && namesManifests(whole)
		return isComputed && !namesManifests(whole)
	case next < len(s.text) && s.text[next] == '+':
		at := s.skipSpace(next + 1)
		if at == len(s.text) || strings.IndexByte(quotes, s.text[at]) < 0 {
			return false
		}
		text, after, ok := s.literal(at)
		return ok && text == "/" && s.isAdded(text, at, after)
	}
	return false
}

// everythingIn makes a node depend on all files of a folder and below it, in packages or not.
func (a *assembler) everythingIn(v viewpoint, at string) {
	a.define(v.from, filesIn(at))
	a.define(v.from, packagesBelow(at))
}

// addPackagesBelow defines the packages below each folder that has some.
func (a *assembler) addPackagesBelow() {
	has := map[*folder]bool{}
	for _, p := range a.packs {
		for f := p.folder.parent; f != nil && !has[f]; f = f.parent {
			has[f] = true
		}
	}
	for _, f := range a.all {
		if !has[f] {
			continue
		}
		node := a.builder.Definition(packagesBelow(f.path), nil)
		for _, sub := range f.subs {
			isPackage := sub.pack != nil && sub.pack.folder == sub
			if isPackage {
				a.edge(node, a.targetNode(sub.pack))
			}
			if isPackage || has[sub] {
				a.define(node, packagesBelow(sub.path))
			}
		}
	}
}

// walkedFolders returns the folders outside of a package, or around its folder, that a file of it may go through.
func walkedFolders(f *facts, dir, packageDir string) map[string]bool {
	found := map[string]bool{}
	add := func(dir, spec string) {
		if at, ok := join(dir, withoutWildcards(spec)); ok && (at == packageDir || !isWithin(packageDir, at)) {
			found[at] = true
		}
	}
	for _, c := range f.climbs {
		if c.spec == everywhere {
			found[""] = true
		} else if c.fromRun {
			add(packageDir, c.spec)
		} else {
			add(dir, c.spec)
		}
	}
	for k, list := range [2][]string{f.paths, f.imports} {
		for _, spec := range list {
			goes := f.walks && k == 0 || strings.Contains(spec, "*") && !namesManifests(spec)
			if above := withoutWildcards(spec); goes && !isClimb(above) && strings.Contains(above, "..") {
				add(dir, spec)
			}
		}
	}
	if f.config != nil {
		for _, spec := range f.config.inputs {
			if strings.Contains(spec, "*") {
				add(dir, spec)
			}
		}
	}
	return found
}
