package cargograph

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// sourceFacts are what one Rust file says of other files. They depend on its text alone.
type sourceFacts struct {
	// built are the texts that the compiler or a macro may take for the path of a file; run are those that the program may
	// when it runs. Each is as written, but that a path of dots is joined with what follows it.
	built, run []string
	// builtUp and runUp are paths of dots alone, with nothing behind them.
	builtUp, runUp []string
	// modules are the files of modules, a/b for "mod a { mod b; }"; paths are those that attributes give them.
	modules, paths []string
	// manifestDir: the package's folder is asked for, by CARGO_MANIFEST_DIR or as the working folder. otherDir: some variable is asked for when the
	// file is compiled that can hold another folder.
	manifestDir, otherDir bool
	// words are those of all texts, if one of them is a flag of cargo that a package or a program follows; all: a flag for all
	// packages is among them.
	words []string
	all   bool
	// below: what is read can be anything below the package's folder.
	below bool
	// above: what is read can be anything above the package's folder.
	above bool
	// manifests: the file goes through folders, and names Cargo.toml in them, or it starts cargo.
	manifests bool
}

// goesThrough are words of code that looks for folders.
var goesThrough = regexp.MustCompile(`read_dir|WalkDir|glob|ancestors\s*\(|\.parent\s*\(|members`)

// readsManifests reports whether code may read the manifests of packages that it names nowhere.
func readsManifests(text string) bool {
	return strings.Contains(text, `Cargo.toml"`) && goesThrough.MatchString(text)
}

// runtimeMacros are macros that read no file when they are compiled; a text within them means to them what it means around
// them. Every other macro may.
var runtimeMacros = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`print println eprint eprintln format write writeln format_args panic todo unimplemented
		unreachable assert assert_eq assert_ne debug_assert debug_assert_eq debug_assert_ne vec matches dbg concat stringify env
		option_env cfg trace debug info warn error log bail ensure anyhow`) {
		runtimeMacros[name] = true
	}
}

// wildcards are the characters of a text that stand for others, so that the text names no single file.
const wildcards = "*?[{<$%"

// maxText bounds the length of a text that can be a path.
const maxText = 512

// reader is a lexer of Rust. What is not understood yields no text, or more than there is.
type reader struct {
	text  string
	at    int
	facts *sourceFacts

	// last are the tokens before, the newest first: a word or one character.
	last [3]string
	// open are the brackets around.
	open []bracket
	// modules are the names of modules around.
	modules []string
	// dots is a path of dots that may go on.
	dots      string
	dotsBuilt bool
	// inFolder: the package's folder was named, and what follows may be a path in it.
	inFolder bool
	// selects: a flag of cargo that a package or a program follows was there; walks: a function that reads folders; folder: the
	// working folder, or a pattern that begins there.
	selects, walks, folder bool
	// named is the variable that a statement makes, held those that hold a place: the package's or the working folder, the file; place: the
	// statement has one.
	named string
	held  map[string]bool
	place bool
	// runs: a program is started; dot: a text is the working folder; through: one is a program that goes through it by itself; cargo: one
	// is cargo.
	runs, dot, through, cargo bool
}

type bracket struct {
	built, module bool
}

// readSource finds the facts of a Rust file.
func readSource(content []byte) *sourceFacts {
	r := &reader{text: string(content), facts: &sourceFacts{}}
	for r.at < len(r.text) {
		r.next()
	}
	r.endDots()
	f := r.facts
	f.below = f.below || r.inFolder || r.walks && r.folder || r.runs && (r.dot || r.through)
	f.manifests = readsManifests(r.text) || r.runs && r.cargo || strings.Contains(r.text, "MetadataCommand")
	if !r.selects {
		f.words = nil
	}
	for _, list := range []*[]string{&f.built, &f.run, &f.builtUp, &f.runUp, &f.modules, &f.paths, &f.words} {
		slices.Sort(*list)
		*list = slices.Clip(slices.Compact(*list))
	}
	return f
}

func (r *reader) next() {
	c := r.text[r.at]
	rest := r.text[r.at:]
	switch {
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		r.at++
	case strings.HasPrefix(rest, "//"):
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		r.comment(rest[:end])
		r.at += end
	case strings.HasPrefix(rest, "/*"):
		r.blockComment()
	case c == '"':
		r.quoted()
	case c == '\'':
		r.character()
	case isWordByte(c):
		r.word()
	default:
		r.at++
		r.punctuation(rest[:1])
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// comment takes the texts of a comment: those of documentation are code of tests.
func (r *reader) comment(text string) {
	for line := range strings.Lines(text) {
		parts := strings.Split(line, `"`)
		for i := 1; i+1 < len(parts); i += 2 {
			if strings.Contains(parts[i], "..") {
				r.add(&r.facts.run, parts[i])
			}
		}
	}
}

func (r *reader) blockComment() {
	start, depth := r.at, 0
	for r.at < len(r.text) {
		switch rest := r.text[r.at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			r.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			r.at += 2
		default:
			r.at++
		}
		if depth == 0 {
			break
		}
	}
	r.comment(r.text[start:r.at])
}

// character passes a character or the quote of a lifetime.
func (r *reader) character() {
	rest := r.text[r.at+1:]
	switch {
	case strings.HasPrefix(rest, `\`) && len(rest) > 2:
		end := strings.IndexByte(rest[2:], '\'')
		if end < 0 {
			end = 0
		}
		r.at += 1 + 2 + end + 1
		r.at = min(r.at, len(r.text))
	default:
		width := 0
		for i := range rest {
			if i > 0 {
				width = i
				break
			}
		}
		if width > 0 && rest[width] == '\'' {
			r.at += width + 2
		} else {
			r.at++
		}
	}
	r.token("'")
}

// word passes a name or a number, or the prefix of a text.
func (r *reader) word() {
	start := r.at
	for r.at < len(r.text) && isWordByte(r.text[r.at]) {
		r.at++
	}
	word, rest := r.text[start:r.at], r.text[r.at:]
	switch word {
	case "b", "c":
		if strings.HasPrefix(rest, `"`) {
			return
		}
	case "r", "br", "cr":
		marks := len(rest) - len(strings.TrimLeft(rest, "#"))
		if strings.HasPrefix(rest[marks:], `"`) {
			r.at += marks + 1
			body := r.text[r.at:]
			end := strings.Index(body, `"`+rest[:marks])
			if end < 0 {
				end = len(body)
			}
			r.at = min(r.at+end+1+marks, len(r.text))
			r.literal(body[:end])
			return
		}
		if marks == 1 {
			r.at++ // r#name is a name.
			return
		}
	}
	r.token(word)
}

// quoted reads a text with escapes.
func (r *reader) quoted() {
	r.at++
	var text strings.Builder
	for r.at < len(r.text) && r.text[r.at] != '"' {
		c := r.text[r.at]
		r.at++
		if c != '\\' || r.at == len(r.text) {
			text.WriteByte(c)
			continue
		}
		switch escaped := r.text[r.at]; escaped {
		case '\n', '\r': // The text goes on behind the space of the next line.
			r.at += len(r.text[r.at:]) - len(strings.TrimLeft(r.text[r.at:], " \t\r\n"))
		case 'n', 'r', 't', '0', 'x', 'u':
			text.WriteByte('\n')
			r.at++
		default:
			text.WriteByte(escaped)
			r.at++
		}
	}
	r.at = min(r.at+1, len(r.text))
	r.literal(text.String())
}

// literal notes a text.
func (r *reader) literal(text string) {
	defer r.token(`"`)
	built := len(r.open) > 0 && r.open[len(r.open)-1].built
	r.cargo = r.cargo || text == "cargo" || text == "CARGO"
	if text == "CARGO_MANIFEST_DIR" {
		r.facts.manifestDir, r.inFolder = true, true
		r.holds(text)
		return
	}
	if before := r.last[1]; r.last[0] == "(" && before == "!" && (r.last[2] == "env" || r.last[2] == "option_env") {
		r.facts.otherDir = r.facts.otherDir || !strings.HasPrefix(text, "CARGO_") && text != "OUT_DIR"
		return
	}
	if r.last[0] == "=" && r.last[1] == "path" {
		r.add(&r.facts.paths, r.inModules(text))
	}
	if r.last[0] == "(" && r.last[1] == "expect" {
		return
	}
	r.dot = r.dot || text == "." || text == "./"
	r.through = r.through || walkers[text]
	bare := strings.Trim(text, "/")
	begins := bare == "." || bare != "" && strings.IndexByte(wildcards, strings.TrimPrefix(bare, "./")[0]) >= 0
	r.folder = r.folder || begins
	r.facts.below = r.facts.below || r.inFolder && begins
	r.inFolder = false
	r.selection(text)
	r.facts.manifestDir = r.facts.manifestDir || folderVariable.MatchString(text)
	if up := strings.Trim(withoutFolder(text), "/"); isDots(up) {
		if r.dots == "" {
			r.dotsBuilt = built
		}
		r.dots = path.Join(r.dots, up)
		if len(r.dots) > maxText {
			r.endDots()
		}
		return
	}
	list := &r.facts.run
	if built {
		list = &r.facts.built
	}
	if r.dots != "" {
		r.add(list, r.dots+"/"+bare)
		r.dots = ""
	}
	r.add(list, text)
}

// selection notes the words of a text, any of which can name a package behind a flag of cargo.
func (r *reader) selection(text string) {
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return unicode.IsSpace(c) || c == '=' }) {
		switch word {
		case "-p", "--package", "--bin":
			r.selects = true
		case "--workspace", "--all":
			r.facts.all = true
		default:
			name, _, _ := strings.Cut(word, "@")
			r.add(&r.facts.words, name)
		}
	}
}

// isDots reports whether a path goes upward and nowhere else.
func isDots(text string) bool {
	if text == "" || strings.Trim(text, "./") != "" {
		return false
	}
	clean := path.Clean(text)
	return clean == ".." || strings.HasSuffix(clean, "/..")
}

// endDots notes a path of dots that nothing follows.
func (r *reader) endDots() {
	if r.dots == "" {
		return
	}
	if r.dotsBuilt {
		r.add(&r.facts.builtUp, r.dots)
	} else {
		r.add(&r.facts.runUp, r.dots)
	}
	r.dots = ""
}

func (r *reader) add(list *[]string, text string) {
	if text != "" && len(text) <= maxText && !strings.ContainsAny(text, "\n\r\x00") {
		*list = append(*list, text)
	}
}

// inModules returns a name below those of the modules around, "" if that is too long for the path of a file.
func (r *reader) inModules(name string) string {
	size := len(name)
	for _, module := range r.modules {
		if size += len(module) + len("/"); size > maxText {
			return ""
		}
	}
	return strings.Join(append(slices.Clone(r.modules), name), "/")
}

// joiners are the words that can stand between two parts of a path.
var joiners = map[string]bool{}

func init() {
	for word := range strings.FieldsSeq(`join push new from to_string to_owned into Path PathBuf String as_path as_str clone unwrap concat`) {
		joiners[word] = true
	}
}

// folderReaders are names of functions and types that read folders.
var folderReaders = map[string]bool{"read_dir": true, "WalkDir": true, "WalkBuilder": true, "Walk": true, "glob": true, "glob_with": true}

// walkers are programs that go through the working folder if they are not told where.
var walkers = map[string]bool{"git": true, "grep": true, "rg": true, "find": true, "rustfmt": true, "tree": true}

// holds follows places from one statement to the next, and reports whether a token leads up from one.
func (r *reader) holds(token string) bool {
	switch {
	case token == ";":
		r.place, r.named = false, ""
	case r.last[0] == "let" || r.last[0] == "mut" || r.last[0] == "const" || r.last[0] == "static":
		r.named = token
	}
	r.place = r.place || token == "current_dir" || token == "file" || token == "CARGO_MANIFEST_DIR" || r.held[token]
	if r.place && r.named != "" {
		if r.held == nil {
			r.held = map[string]bool{}
		}
		r.held[r.named] = true
	}
	return r.place && (token == "parent" || token == "ancestors" || token == "pop") && r.last[0] == "."
}

func (r *reader) token(token string) {
	if r.holds(token) {
		if token == "parent" && (r.inFolder || r.dots != "") {
			r.dots, r.inFolder = path.Join(r.dots, ".."), false
			r.last = [3]string{token, r.last[0], r.last[1]}
			return
		}
		r.facts.above = true
	}
	r.runs = r.runs || token == "Command" || token == "cmd"
	r.walks = r.walks || folderReaders[token]
	if token == "current_dir" {
		r.folder, r.facts.manifestDir = true, true // Cargo runs tests there.
	}
	if r.inFolder && token != `"` && token != "expect" && !joiners[token] && !strings.Contains(")(.,&[]!?:", token) {
		r.facts.below, r.inFolder = true, false
	}
	if token != `"` && r.dots != "" && !joiners[token] && !strings.Contains(")(.,&[]!?:", token) {
		r.endDots()
	}
	r.last = [3]string{token, r.last[0], r.last[1]}
}

func (r *reader) punctuation(c string) {
	switch c {
	case "(", "[", "{":
		r.open = append(r.open, r.bracket(c))
	case ")", "]", "}":
		if len(r.open) > 0 {
			if r.open[len(r.open)-1].module {
				r.modules = r.modules[:len(r.modules)-1]
			}
			r.open = r.open[:len(r.open)-1]
		}
	case ";":
		if r.last[1] == "mod" {
			r.add(&r.facts.modules, r.inModules(r.last[0]))
		}
	}
	r.token(c)
}

// bracket says what stands between brackets that open here.
func (r *reader) bracket(c string) bracket {
	b := bracket{}
	if len(r.open) > 0 {
		b.built = r.open[len(r.open)-1].built
	}
	switch {
	case c == "{" && r.last[1] == "mod":
		b.module = true
		r.modules = append(r.modules, r.last[0])
	case c == "[" && (r.last[0] == "#" || r.last[0] == "!" && r.last[1] == "#"):
		b.built = true
	case r.last[0] == "!" && r.last[1] != "" && isWordByte(r.last[1][0]):
		b.built = b.built || !runtimeMacros[r.last[1]]
	}
	return b
}
