package pythongraph

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// facts are what one Python file says about what it needs. They rest on its content alone, so they are remembered by the
// blob's id, and never change.
type facts struct {
	imports []imported // sorted
	// names are dotted names in strings, sorted: what mock.patch, a settings file or a plugin loader imports.
	names []string
	// reads are paths beginning with ".." in strings, climbs those that start in the file's folder; both are sorted.
	reads, climbs []string
	// places are paths in strings that begin with a name, sorted: from where the code runs.
	places []string
	// whole: it climbs from its own place to where its text does not say.
	whole bool
	// here: it reads where it runs what its text does not name.
	here bool
	// dynamic: it imports, or runs, what its text does not name.
	dynamic bool
	// examples: a string has one, which can be a test.
	examples bool
	// launches: it starts programs, which can be those of its project.
	launches bool
	// manifests: it goes through folders, and names pyproject.toml in them, or starts what reads them.
	manifests bool
	// options, plugins: it names pytest_addoption, pytest_plugins.
	options, plugins bool
	// collects: it names one of collectors.
	collects bool
	// unread: the file is larger than what is examined into.
	unread bool
}

// imported is one name of an import statement: "from ..module import name". The level counts the dots; the name is empty for
// "import module" and "*" for all.
type imported struct {
	level        int
	module, name string
}

func (i imported) compare(j imported) int {
	return cmp.Or(cmp.Compare(i.level, j.level), cmp.Compare(i.module, j.module), cmp.Compare(i.name, j.name))
}

const (
	// maxPythonBytes bounds a file that is examined into.
	maxPythonBytes = 16 << 20
	largeBytes     = 1 << 20 // of a file that is examined into by itself
	maxNameBytes   = 1024    // of a dotted name
	maxNames       = 50_000
)

// literalImports are functions that import the module that their first argument names.
var literalImports = map[string]bool{
	"import_module": true, "__import__": true, "importorskip": true, "find_spec": true, "run_module": true,
	"import_string": true, "resolve_name": true, "find_loader": true, "import_object": true, "load_object": true,
}

// loaders import, run or list modules that the text does not name.
var loaders = map[string]bool{
	"spec_from_file_location": true, "SourceFileLoader": true, "SourcelessFileLoader": true, "ExtensionFileLoader": true,
	"run_path": true, "load_source": true, "load_module": true, "iter_modules": true, "walk_packages": true, "exec_module": true,
	"execfile": true, "LazyLoader": true, "find_module": true, "INSTALLED_APPS": true, "autodiscover_modules": true,
	"find_packages": true, "import_path": true,
}

// launchers start programs.
var launchers = map[string]bool{
	"subprocess": true, "pexpect": true, "create_subprocess_exec": true, "create_subprocess_shell": true, "popen": true,
	"pytester": true, "testdir": true, "script_runner": true, "spawnv": true, "execv": true, "posix_spawn": true,
}

// parseFacts reads the facts of a Python file.
func parseFacts(content []byte) *facts {
	f := &facts{}
	tokens, broken := lex(content)
	for i := range tokens {
		switch t := tokens[i]; t.kind {
		case nameToken:
			f.name(tokens, i)
			f.hook(t.text)
			f.workingFolder(tokens, i)
		case stringToken:
			f.text(t.text)
			f.collects = f.collects || collectors[t.text]
			f.examples = f.examples || strings.Contains(t.text, ">>>")
			f.path(tokens, i)
			f.place(tokens, i)
		case formatToken:
			f.path(tokens, i)
			f.place(tokens, i)
		}
	}
	f.follow(tokens)
	if f.launches {
		f.programs(tokens)
	}
	if broken {
		f.scanLines(content)
	}
	f.finish()
	f.manifests = !f.unread && (f.manifests || bytes.Contains(content, []byte(pyprojectFile)) && goesThrough.Match(content))
	return f
}

// goesThrough are words of code that looks for folders.
var goesThrough = regexp.MustCompile(`iterdir|glob|listdir|scandir|walk|\.parents?\b|dirname|members`)

// at returns a token, an empty one beyond the end.
func at(tokens []token, i int) token {
	if i < 0 || i >= len(tokens) {
		return token{}
	}
	return tokens[i]
}

func isByte(t token, text string) bool { return t.kind == otherToken && t.text == text }

// name reads what begins with a name.
func (f *facts) name(tokens []token, i int) {
	word, before, after := tokens[i].text, at(tokens, i-1), at(tokens, i+1)
	switch {
	case word == "import":
		f.statement(tokens, i)
	case before.kind == nameToken && (before.text == "def" || before.text == "class"):
	case literalImports[word]:
		f.call(tokens, i)
	case loaders[word]:
		f.dynamic = true
	case launchers[word]:
		f.launches = true
	case word == "exec" && isByte(after, "(") && !isByte(before, "."):
		f.dynamic = true
	case word == "system" && isByte(before, ".") && at(tokens, i-2).text == "os":
		f.launches = true
	case word == "executable" && isByte(before, ".") && at(tokens, i-2).text == "sys":
		f.dynamic = true
	}
}

// hook notes a name that pytest looks for in a module.
func (f *facts) hook(word string) {
	f.options = f.options || word == "pytest_addoption"
	f.plugins = f.plugins || word == "pytest_plugins"
	f.collects = f.collects || collectors[word]
}

// statement reads an import statement by its keyword.
func (f *facts) statement(tokens []token, i int) {
	// Backwards over ".. a.b" to a "from".
	start := i - 1
	for at(tokens, start).kind == nameToken && !isKeyword(at(tokens, start)) || isByte(at(tokens, start), ".") {
		start--
	}
	if at(tokens, start).text != "from" || at(tokens, start).kind != nameToken {
		f.plain(tokens, i+1)
		return
	}
	module, rest := imported{}, tokens[start+1:i]
	for len(rest) > 0 && rest[0].kind == otherToken {
		module.level, rest = module.level+1, rest[1:]
	}
	var name dotted
	for _, t := range rest {
		name.add(t.text)
	}
	if module.module = name.text(); module.level == 0 && module.module == "" {
		return
	}
	known := f.add(module)
	for i++; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case isByte(t, "(") || isByte(t, ","):
		case isKeyword(t):
			return
		case isByte(t, "*"):
			if known {
				f.add(imported{module.level, module.module, "*"})
			}
		case t.kind == nameToken && t.text == "as":
			// Under another name it is not seen when it is called.
			f.dynamic = f.dynamic || literalImports[at(tokens, i-1).text]
			i++
		case t.kind == nameToken:
			if known {
				f.add(imported{module.level, module.module, t.text})
			}
			f.launches = f.launches || launchers[t.text]
			f.dynamic = f.dynamic || loaders[t.text]
		default:
			return
		}
	}
}

// dotted is a name that is read token by token. One that is too long for a module is not kept to its end.
type dotted []byte

func (d *dotted) add(text string) {
	if len(*d) <= maxNameBytes {
		*d = append(*d, text...)
	}
}

func (d *dotted) text() string { return string(*d) }

// add notes an import, and reports whether it can be one.
func (f *facts) add(i imported) bool {
	// A module that another import names was looked at with that.
	checked := len(f.imports) > 0 && f.imports[len(f.imports)-1].module == i.module
	if i.level > 100 || i.module != "" && !checked && !isDotted(i.module) || i.name != "" && i.name != "*" && !isDotted(i.name) {
		return false
	}
	f.imports = append(f.imports, i)
	return true
}

// plain reads "a.b as c, d" after "import".
func (f *facts) plain(tokens []token, i int) {
	var name dotted
	add := func() {
		if module := name.text(); module != "" {
			f.add(imported{module: module})
			f.launches = f.launches || launchers[module]
		}
		name = name[:0]
	}
	defer add()
	for ; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case isKeyword(t):
			return
		case isByte(t, ","):
			add()
		case isByte(t, "."):
			name.add(".")
		case t.kind == nameToken && t.text == "as":
			add()
			i++
		case t.kind == nameToken:
			name.add(t.text)
		default:
			return
		}
	}
}

// call reads a call of a function that imports what its first argument names.
func (f *facts) call(tokens []token, i int) {
	name := at(tokens, i+2)
	if !isByte(at(tokens, i+1), "(") {
		// The import of the function itself is no use of it.
		if !inImport(tokens, i) {
			f.dynamic = true
		}
		return
	}
	next := at(tokens, i+3)
	if name.kind != stringToken || !isByte(next, ")") && !isByte(next, ",") {
		f.dynamic = true
		return
	}
	module := name.text
	level := len(module) - len(strings.TrimLeft(module, "."))
	module, _, _ = strings.Cut(module[level:], ":")
	if !isDotted(module) {
		f.dynamic = f.dynamic || module != ""
		return
	}
	f.add(imported{level: level, module: module})
	if isByte(next, ",") && !isByte(at(tokens, i+4), ")") {
		// A package or a level of its own, unless it is the file's.
		own := at(tokens, i+4)
		plain := own.kind == nameToken && (own.text == "__package__" || own.text == "__name__") && isByte(at(tokens, i+5), ")")
		f.dynamic = f.dynamic || !plain && (level > 0 || tokens[i].text == "__import__")
	}
}

// isKeyword reports whether a token begins an import, or a part of one. Without it a file of such words alone would be read
// from each of them to its end.
func isKeyword(t token) bool { return t.kind == nameToken && (t.text == "import" || t.text == "from") }

// maxNamesBefore bounds how many tokens an import statement can have before a name.
const maxNamesBefore = 1000

// inImport reports whether a name stands in an import statement.
func inImport(tokens []token, i int) bool {
	for end := max(i-maxNamesBefore, 0); i > end; {
		i--
		switch t := tokens[i]; {
		case t.kind == nameToken && t.text == "import":
			return true
		case t.kind == nameToken || isByte(t, ",") || isByte(t, "(") || isByte(t, "."):
		default:
			return false
		}
	}
	return false
}

// text notes a string that can name a module: pkg.mod, pkg.mod:attribute.
func (f *facts) text(value string) {
	value, _, _ = strings.Cut(value, ":")
	if strings.Contains(value, ".") && isDotted(value) {
		f.names = append(f.names, value)
	}
}

var (
	importLine = regexp.MustCompile(`(?m)\bimport[ \t]+([A-Za-z_][\w.]*(?:[ \t]*,[ \t]*[A-Za-z_][\w.]*)*)`)
	fromLine   = regexp.MustCompile(`(?m)\bfrom[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\(?([\w \t,*]*)`)
)

// scanLines looks for import statements in code that cannot be cut into tokens. It cannot be compiled either, unless the
// lexer is at fault.
func (f *facts) scanLines(content []byte) {
	for _, m := range importLine.FindAllSubmatch(content, -1) {
		for name := range bytes.SplitSeq(m[1], []byte(",")) {
			f.add(imported{module: string(bytes.TrimSpace(name))})
		}
	}
	for _, m := range fromLine.FindAllSubmatch(content, -1) {
		module := imported{level: len(m[1]), module: string(m[2])}
		if !f.add(module) {
			continue
		}
		for name := range bytes.FieldsFuncSeq(m[3], func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
			f.add(imported{module.level, module.module, string(name)})
		}
	}
}

// isDotted reports whether a text is names with dots between them.
func isDotted(text string) bool {
	if len(text) > maxNameBytes {
		return false
	}
	start := true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.':
			if start {
				return false
			}
			start = true
		case !isNameByte(c) || start && isDigit(c):
			return false
		default:
			start = false
		}
	}
	return !start
}

// finish brings the facts into their one form.
func (f *facts) finish() {
	slices.SortFunc(f.imports, imported.compare)
	f.imports = slices.Clip(slices.Compact(f.imports))
	for _, list := range []*[]string{&f.names, &f.reads, &f.climbs, &f.places} {
		slices.Sort(*list)
		*list = slices.Clip(slices.Compact(*list))
	}
	if len(f.places) > maxPlaces {
		f.places, f.here = nil, true
	}
	if max(len(f.imports), len(f.names), len(f.reads), len(f.climbs)) > maxNames {
		*f = facts{unread: true}
	}
}

// equal reports whether two files say the same. One that was not examined into says nothing that could be compared.
func (f *facts) equal(g *facts) bool {
	return !f.unread && !g.unread && f.dynamic == g.dynamic && f.launches == g.launches && f.here == g.here && f.whole == g.whole && f.examples == g.examples && f.manifests == g.manifests && f.options == g.options && f.plugins == g.plugins && f.collects == g.collects &&
		slices.Equal(f.imports, g.imports) && slices.Equal(f.names, g.names) &&
		slices.Equal(f.reads, g.reads) && slices.Equal(f.climbs, g.climbs) && slices.Equal(f.places, g.places)
}

// weight is roughly how many bytes the facts take.
func (f *facts) weight() int64 {
	n := 200
	for _, i := range f.imports {
		n += 40 + len(i.module) + len(i.name)
	}
	for _, list := range [][]string{f.names, f.reads, f.climbs, f.places} {
		for _, name := range list {
			n += 16 + len(name)
		}
	}
	return int64(n)
}
