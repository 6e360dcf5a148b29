package nodegraph

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// facts are what a file says about others.
type facts struct {
	// imports are the relative paths that the file imports, such as ../x and ./y. A * stands for what is computed.
	imports []string
	// paths are other texts that may be relative paths: all with .. as a name, and those that begin with ./
	paths []string
	// names are the other specifiers that the file imports, such as @scope/package/deep.
	names []string
	// manifests is set for a file that goes through folders and names package.json in them, or that starts a package manager.
	manifests bool
	// walks is set for a file that goes through folders, and has paths that lead out of its own.
	walks bool
	// climbs are the folders above that it may go through.
	climbs []climb
	// config is set for configuration of the TypeScript compiler.
	config *compilerFile
}

// language is how a file is read for references.
type language uint8

const (
	// opaque files are not read.
	opaque language = iota
	// plainText is read for paths: those with .. in them, and those in quotes that begin with ./
	plainText
	// script is JavaScript, or a language around it: read for imports too.
	script
)

var languages = map[string]language{
	".js": script, ".jsx": script, ".mjs": script, ".cjs": script, ".ts": script, ".tsx": script, ".mts": script, ".cts": script, ".es6": script, ".es": script,
	".vue": script, ".svelte": script, ".astro": script, ".mdx": script, ".coffee": script, ".flow": script, ".gts": script, ".gjs": script,
	".css": script, ".scss": script, ".sass": script, ".less": script, ".styl": script, ".pcss": script,
	".json": plainText, ".json5": plainText, ".jsonc": plainText, ".html": plainText, ".htm": plainText, ".graphql": plainText, ".gql": plainText,
	".yaml": plainText, ".yml": plainText, ".toml": plainText, ".sh": plainText, ".bash": plainText, ".hbs": plainText, ".ejs": plainText, ".pug": plainText,
	".proto": plainText, ".prisma": plainText, ".env": plainText, ".conf": plainText, ".config": plainText,
}

func languageOf(name string) language {
	if l := languages[path.Ext(name)]; l != opaque {
		return l
	}
	if strings.HasPrefix(name, ".") && !strings.Contains(name[1:], ".") || strings.HasSuffix(name, "rc") {
		return plainText // .eslintrc, .swcrc, .npmrc and others of their kind
	}
	return opaque
}

// importing are the functions whose first argument is a module.
var importing = map[string]bool{
	"require": true, "import": true, "resolve": true, "mock": true, "unmock": true, "doMock": true, "dontMock": true, "doUnmock": true, "setMock": true,
	"requireActual": true, "requireMock": true, "importActual": true, "importMock": true, "createMockFromModule": true, "unstable_mockModule": true,
	"mockModule": true, "genMockFromModule": true, "url": true, "proxyquire": true, "lazy": true, "register": true,
}

// importWords come right before a module's name.
var importWords = map[string]bool{"from": true, "import": true, "module": true, "use": true, "forward": true, "plugin": true, "require": true, "export": true}

// scanner reads one file. It knows no grammar: every quotation mark may begin a text. An apostrophe in a comment then
// hides nothing, and what looks like a path and is none costs an edge to nothing.
type scanner struct {
	text                  []byte
	imports, paths, names map[string]bool
	// manifests is set where a path of parts is that of manifests behind the name of a folder.
	manifests bool
	// left is how many more bytes are looked at around texts. What is not looked at can mean all that it could have.
	left int
}

// lookAround is how many bytes are looked at around the texts of a file of a size. Some are looked at for each of many texts.
func lookAround(size int) int { return 1<<20 + 16*size }

func newScanner(text []byte) *scanner {
	return &scanner{text: text, imports: map[string]bool{}, paths: map[string]bool{}, names: map[string]bool{}, left: lookAround(len(text))}
}

// maxPathBytes bounds what is taken for a path.
const maxPathBytes = 1024

// scan returns what a file of a language says.
func scan(content []byte, l language) *facts {
	s := newScanner(content)
	for i, c := range content {
		if (c == '"' || c == '\'' || c == '`') && (l == script || i+1 < len(content) && content[i+1] == '.') {
			s.quoted(i)
		}
	}
	s.leaving()
	if l == script {
		s.fromAbove()
	}
	f := &facts{imports: sortedKeys(s.imports), paths: sortedKeys(s.paths), names: sortedKeys(s.names), manifests: readsManifests(content, l)}
	f.manifests = f.manifests || slices.ContainsFunc(f.imports, namesManifests) || slices.ContainsFunc(f.paths, namesManifests)
	if bytes.Contains(content, []byte("..")) {
		f.walks = l == script && goesThroughFolders(content)
		f.climbs = s.walked(l, f.walks)
		f.manifests = f.manifests || s.manifests
	}
	if l == script {
		f.climbs = append(f.climbs, dirnames(content)...)
	}
	return f
}

// manifestText is package.json as a text, or as the end of one that is put together.
var manifestText = regexp.MustCompile("[\"'`}*]/?package\\.json[\"'`]")

// goesThrough are words of code that looks for folders.
var goesThrough = regexp.MustCompile(`(?i)readdir|opendir|glob|walk|dirname\s*\(|workspaces`)

// managerNames are programs that read the manifests of a workspace; pnpm and yarnpkg hold the names of others.
var managerNames = []string{"npm", "npx", "pnpx", "yarn", "bun", "corepack", "lerna", "nx", "turbo"}

// managerStarted is a text that is a command of one, or begins with one.
var managerStarted = regexp.MustCompile("(?:[\"'`]|&&|;)\\s*(?:npm|npx|pnpm|pnpx|yarn|yarnpkg|bun|bunx|corepack|lerna|nx|turbo)(?:\\.cmd)?[\\s\"'`]|npm_execpath")

// starting are words of code that starts programs.
var starting = []string{"exec", "Exec", "spawn", "Spawn", "shell", "zx", "run", "Run", "$`"}

// asksManager is a line of the shell that asks a package manager for the members of a workspace.
var asksManager = regexp.MustCompile("\\b(?:npm|pnpm|yarn|bun|lerna|nx|turbo)\\s[^;&|\n\"']*\\b(?:query|ls|list|ll|la|why|explain|pkg|info)\\b")

// namesManifests reports whether a path is that of manifests in folders whose names are computed.
func namesManifests(spec string) bool { return strings.HasSuffix(spec, "*/"+manifestName) }

// readsManifests reports whether a file may read the manifests of packages that it names nowhere.
func readsManifests(content []byte, l language) bool {
	namesManager := holdsAny(content, managerNames)
	if l != script {
		return namesManager && asksManager.Match(content)
	}
	return namesManager && holdsAny(content, starting) && managerStarted.Match(content) ||
		bytes.Contains(content, []byte(manifestName)) && manifestText.Match(content) && goesThrough.Match(content)
}

func sortedKeys(set map[string]bool) []string {
	if len(set) == 0 {
		return nil
	}
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// quoted looks at what may be a text that begins with the quotation mark at i.
func (s *scanner) quoted(i int) {
	if i+1 >= len(s.text) {
		return
	}
	switch first := s.text[i+1]; {
	case first == '.':
		spec, end, ok := s.literal(i)
		if !ok || !isRelative(spec) {
			return
		}
		s.note(i, spec)
		if s.isAdded(spec, i, end) {
			s.note(i, spec+"*")
		}
		if joined, _ := s.joined(spec, end); joined != spec {
			s.paths[joined] = true
		}
	case first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z' || first >= '0' && first <= '9' || strings.IndexByte("@_~#$", first) >= 0:
		if s.isImported(i) {
			if spec, end, ok := s.literal(i); ok && spec != "" {
				s.names[spec] = true
				if s.isAdded(spec, i, end) {
					s.names[spec+"*"] = true
				}
			}
		}
	}
}

// note adds a relative path that begins at i.
func (s *scanner) note(i int, spec string) {
	if s.isImported(i) {
		s.imports[spec] = true
	} else {
		s.paths[spec] = true
	}
}

// isAdded reports whether a path goes on with what is added to its text, which stands from i to end: "../" + name.
func (s *scanner) isAdded(spec string, i, end int) bool {
	if ending := path.Ext(spec); end-i-1 != len(spec) || !strings.Contains(spec, "/") || ending != "" && ending != "." {
		return false // A template, a query behind the path, no path, or a whole one.
	}
	if next := s.skipSpace(end + 1); next < len(s.text) && s.text[next] == '+' {
		next = s.skipSpace(next + 1)
		return next < len(s.text) && strings.IndexByte(quotes, s.text[next]) < 0
	}
	return false
}

// literal returns the text that begins with the quotation mark at i, and where it ends. From the first computed part on
// a template is a * with its tail.
func (s *scanner) literal(i int) (spec string, end int, ok bool) {
	quote := s.text[i]
	for j := i + 1; j < len(s.text) && j-i <= maxPathBytes; j++ {
		switch c := s.text[j]; {
		case c == quote:
			return trimQuery(string(s.text[i+1 : j])), j, true
		case c == '\n' || c == '\\':
			return "", 0, false
		case c == '$' && quote == '`' && j+1 < len(s.text) && s.text[j+1] == '{':
			return string(s.text[i+1:j]) + "*" + s.tail(j), j, true
		}
	}
	return "", 0, false
}

// tail returns "/package.json" if the path that has a computed part at i ends with that after its last computed part, else "".
func (s *scanner) tail(i int) string {
	depth, last := 0, i
	for k := i; k < len(s.text) && k-i <= maxPathBytes && s.left >= 0; k++ {
		s.left--
		switch c := s.text[k]; {
		case c == '{':
			depth++
		case c == '}':
			depth, last = depth-1, k+1
		case depth == 0 && !isPathByte(c):
			if found := string(s.text[last:k]); found == "/"+manifestName {
				return found
			}
			return ""
		}
	}
	return ""
}

// joined adds the texts that follow as further arguments, path.join(__dirname, "..", "shared"), and returns where they end.
func (s *scanner) joined(spec string, end int) (string, int) {
	for end < len(s.text) {
		if s.left < 0 {
			return spec + "/*", end
		}
		next := s.skipSpace(end + 1)
		if next >= len(s.text) || s.text[next] != ',' {
			break
		}
		next = s.skipSpace(next + 1)
		if next >= len(s.text) {
			break
		}
		var more string
		var after int
		var ok bool
		if strings.IndexByte(quotes, s.text[next]) >= 0 {
			more, after, ok = s.literal(next)
		} else if s.isPart(next) && s.makesPath(end) {
			more, after, ok = "*", s.endOfName(next), true
		}
		if !ok || len(spec)+len(more) > maxPathBytes {
			break
		}
		spec, end = spec+"/"+more, after
		s.left -= len(spec)
	}
	return spec, end
}

// isPart reports whether what begins at i can be a part of a path: no object, and not the end of what a function is given.
func (s *scanner) isPart(i int) bool {
	return isWord(s.text[i]) || s.text[i] == '(' || s.text[i] == '.'
}

// endOfName returns where a name ends that begins at i, such as item.name.
func (s *scanner) endOfName(i int) int {
	for i+1 < len(s.text) && (isWord(s.text[i+1]) || s.text[i+1] == '.') {
		i++
		s.left--
	}
	return i
}

// makesPath reports whether i is in what join or resolve of paths is given.
func (s *scanner) makesPath(i int) bool {
	depth := 0
	for at := i; at > 0 && i-at < maxLineBytes && s.left >= 0; at-- {
		s.left--
		switch s.text[at-1] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			if depth--; depth < 0 {
				end := s.back(at - 1)
				word := s.word(end)
				before := s.text[:end-len(word)]
				return s.text[at-1] == '(' && (word == "join" || word == "resolve" && !bytes.HasSuffix(before, []byte("require.")) && !bytes.HasSuffix(before, []byte("Promise.")))
			}
		}
	}
	return s.left < 0
}

func (s *scanner) skipSpace(begin int) int {
	i := begin
	for i < len(s.text) && isSpace(s.text[i]) {
		i++
	}
	s.left -= i - begin
	return i
}

// isImported reports whether the text that begins at i stands where a module is named.
func (s *scanner) isImported(i int) bool {
	if s.left < 0 {
		return true
	}
	at := s.back(i)
	called := at > 0 && s.text[at-1] == '('
	if called {
		at = s.back(at - 1)
	}
	if at > 0 && s.text[at-1] == '=' { // <reference types="x"/>
		return s.word(at-1) == "types"
	}
	word := s.word(at)
	return called && importing[word] || !called && importWords[word]
}

// back goes back over white space and comments.
func (s *scanner) back(at int) int {
	for at > 0 {
		s.left--
		switch {
		case isSpace(s.text[at-1]):
			at--
		case at > 3 && s.text[at-1] == '/' && s.text[at-2] == '*':
			from := max(0, at-maxPathBytes)
			begin := bytes.LastIndex(s.text[from:at-2], []byte("/*"))
			s.left -= at - from - max(begin, 0)
			if begin < 0 {
				return at
			}
			at = from + begin
		default:
			return at
		}
	}
	return at
}

// word returns the word that ends at a place.
func (s *scanner) word(end int) string {
	begin := end
	for begin > 0 && end-begin < 40 && isWord(s.text[begin-1]) {
		begin--
	}
	return string(s.text[begin:end])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$'
}

// leaving finds all paths with .. as a name, whatever stands around them.
func (s *scanner) leaving() {
	for at := 0; ; {
		next := bytes.Index(s.text[at:], []byte("../"))
		if next < 0 {
			return
		}
		begin := at + next
		end := begin
		for end < len(s.text) && end-begin < maxPathBytes && isPathByte(s.text[end]) {
			if s.text[end] == '$' && end+1 < len(s.text) && s.text[end+1] == '{' {
				break
			}
			end++
		}
		spec := string(s.text[begin:end])
		if end < len(s.text) && s.text[end] == '$' {
			spec += "*" + s.tail(end)
		} else if end < len(s.text) && s.text[end] == '{' {
			spec += "*"
		}
		if spec = trimQuery(spec); !s.imports[spec] {
			s.paths[spec] = true
		}
		// A path with a blank in it ends with its quotation mark.
		if begin > 0 && strings.IndexByte("\"'`", s.text[begin-1]) >= 0 {
			if whole, _, ok := s.literal(begin - 1); ok && !s.imports[whole] {
				s.paths[whole] = true
			}
		}
		at = max(end, begin+3)
	}
}

// isPathByte reports whether a byte belongs to a path that is not quoted.
func isPathByte(c byte) bool { return c > ' ' && strings.IndexByte("\"'`<>|;,(){}\\", c) < 0 }

func isRelative(spec string) bool {
	return spec == "." || spec == ".." || strings.HasPrefix(spec, "./") || strings.HasPrefix(spec, "../")
}

// trimQuery cuts off what bundlers are told behind a path: ?raw and the like, and the part of a document behind #.
func trimQuery(spec string) string {
	if i := strings.IndexAny(spec, "?#"); i > 0 {
		return spec[:i]
	}
	return spec
}

// packageOf returns the name of the package that a specifier leads into; empty if it cannot be one.
func packageOf(spec string) string {
	first, rest, deep := strings.Cut(spec, "/")
	switch {
	case first == "" || strings.ContainsAny(spec, ":*! \t"):
		return ""
	case !strings.HasPrefix(first, "@"):
		return first
	case !deep || first == "@":
		return ""
	}
	second, _, _ := strings.Cut(rest, "/")
	return first + "/" + second
}
