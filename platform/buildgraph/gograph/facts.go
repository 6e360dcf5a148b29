package gograph

import (
	"bytes"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// facts are what one Go, C or assembly file says about what it needs. They rest
// on its content alone, so they are remembered by the blob's id, and never
// change.
type facts struct {
	// imports are import paths, sorted, "C" not among them.
	imports []string
	// embeds are the patterns of //go:embed, sorted.
	embeds []string
	// reaches are relative paths that cgo flags name, sorted: files, folders.
	reaches []string
	// includes are relative paths that C code names, sorted: from the file's own
	// folder, or any that the compiler looks in.
	includes []string
	// outside are paths that a Go file names outside of the working folder, sorted: "..", what begins with "../", or one of
	// wholeModule and wholeRepository; of a file that is there for tests also what can be a package: paths below the folder, import
	// paths, both with allPackages or without, and wholeFolder. beside are those from the file's own folder, and "." for all data in that.
	outside, beside []string
	// program: the file is of package main.
	program bool
	// cgo: the file imports "C".
	cgo bool
	// constraint is the build constraint in go:build's language, or empty.
	constraint string
	// computed: C code includes a file whose name is not known, or by the assembler.
	computed bool
	// unread: the file is larger than what is examined at.
	unread bool

	expression constraint.Expr // of constraint
}

// Bounds of a single file: what passes them is not code.
const (
	maxImports  = 20_000 // also of patterns and of paths
	maxTextSize = 4096   // of one import path, pattern or path
	// maxConstraint bounds the +build lines of a file together: go:build's language has no constraint of that size.
	maxConstraint = 64 << 10
)

// parseGo reads the facts of a Go file. What it cannot parse cannot be compiled
// either, so what is found up to there is enough: nothing that the file would
// need could turn its package green.
func parseGo(content []byte, forTests bool) *facts {
	f := &facts{}
	file, _ := parser.ParseFile(token.NewFileSet(), "", content, parser.ImportsOnly|parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return f
	}
	f.program = file.Name != nil && file.Name.Name == "main"
	embed := false
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			imported, ok := spec.(*ast.ImportSpec)
			if !ok || imported.Path == nil {
				continue
			}
			importPath, err := strconv.Unquote(imported.Path.Value)
			switch {
			case err != nil:
			case importPath == "C":
				f.cgo = true
				f.preamble(imported.Doc)
				if len(group.Specs) == 1 {
					f.preamble(group.Doc)
				}
			default:
				embed = embed || importPath == "embed"
				f.imports = append(f.imports, importPath)
			}
		}
	}
	if embed {
		f.embeds = embedPatterns(content)
	}
	f.outside, f.beside = outsidePaths(content, forTests || slices.Contains(f.imports, "testing"))
	f.constraint = buildConstraint(file)
	f.finish()
	return f
}

// preamble reads the C code above an import of "C".
func (f *facts) preamble(doc *ast.CommentGroup) {
	if doc == nil {
		return
	}
	text := []byte(doc.Text())
	f.code(text)
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) < 2 || words[0] != "#cgo" {
			continue
		}
		if _, flags, ok := strings.Cut(string(line), ":"); ok {
			f.cgoFlags(flags)
		}
	}
}

// cgoFlags notes the paths in flags of the compiler and the linker. A word of which
// it is not known whether it is a path is taken for one if it says so by its dots.
func (f *facts) cgoFlags(flags string) {
	folder := false // the word before is a flag that a folder follows
	for word := range strings.FieldsSeq(flags) {
		if word = strings.Trim(word, `"'`); folder {
			f.reach(word)
		}
		folder = slices.Contains(pathFlags, word)
		// Such as -Wl,-rpath,../x and --sysroot=../x.
		for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == ',' || r == '=' }) {
			f.cgoFlag(part)
		}
	}
}

// pathFlags are flags that a path follows, at once or as the next word.
var pathFlags = []string{"-I", "-L", "-F", "-B", "-T", "-iquote", "-isystem", "-idirafter", "-include", "-imacros"}

func (f *facts) cgoFlag(word string) {
	if _, rest, ok := strings.Cut(word, "${SRCDIR}"); ok {
		f.reach("." + rest)
		return
	}
	for _, flag := range pathFlags {
		if rest, ok := strings.CutPrefix(word, flag); ok && rest != "" {
			f.reach(rest)
			return
		}
	}
	if strings.HasPrefix(word, ".") {
		f.reach(word)
	} else if at := strings.Index(word, "../"); at >= 0 {
		f.reach(word[at:])
	}
}

// foreignConstraint stands for the constraint of a file that is not Go's: which it is does not matter.
const foreignConstraint = "ignore"

// parseForeign reads what a C, assembly or Fortran file includes.
func parseForeign(content []byte) *facts {
	f := &facts{}
	f.code(content)
	if bytes.Contains(content, []byte("go:build")) || bytes.Contains(content, []byte("+build")) {
		f.constraint = foreignConstraint
	}
	f.finish()
	return f
}

// code finds the names of files in C code. Whatever stands in quotes or brackets on
// a line that begins like a directive can be one: of #include, #import, #embed,
// __has_include, a #define that an #include uses, %include, .incbin. Elsewhere only
// what says so by its dots is, as in asm(".incbin \"../x\"").
func (f *facts) code(content []byte) {
	for _, end := range []string{"\\\n", "\\\r\n"} {
		if bytes.Contains(content, []byte(end)) {
			content = bytes.ReplaceAll(content, []byte(end), nil)
		}
	}
	for line := range bytes.Lines(content) {
		line = bytes.TrimLeft(line, " \t")
		directive := len(line) > 0 && strings.IndexByte("#%.", line[0]) >= 0 || len(line) > 7 && strings.EqualFold(string(line[:7]), "include")
		quote := bytes.IndexFunc(line, isQuote)
		f.computed = f.computed || directive && computes(line) || bytes.Contains(line, []byte(".inc")) && !directive
		if quote < 0 || !directive && !bytes.Contains(line, []byte("../")) {
			continue
		}
		for name := range bytes.FieldsFuncSeq(line[quote:], isQuote) {
			f.include(string(name), directive)
		}
	}
}

// computes reports whether a directive includes or embeds a file, and what follows is no quoted name.
func computes(line []byte) bool {
	word := bytes.TrimLeft(line, "#%. \t")
	rest := bytes.TrimLeftFunc(word, unicode.IsLetter)
	switch strings.ToLower(string(word[:len(word)-len(rest)])) {
	case "include", "import", "embed":
		rest = bytes.TrimLeft(rest, " \t")
		return len(rest) == 0 || strings.IndexByte("\"'<", rest[0]) < 0
	case "incbin":
		return true
	}
	return false
}

// isQuote reports whether a name cannot go on. A quote within a text stands behind a
// backslash.
func isQuote(r rune) bool { return strings.ContainsRune("\"'<>\\\n\r", r) }

// include notes a name, if it can be one of a file.
func (f *facts) include(name string, directive bool) {
	clean := path.Clean(name)
	switch outside := strings.HasPrefix(clean, "../"); {
	case path.IsAbs(clean) || clean == "." || clean == ".." || strings.ContainsFunc(clean, unicode.IsControl):
	case outside || directive:
		f.includes = append(f.includes, clean)
	}
}

// reach notes a path of a flag, relative to the package's folder.
func (f *facts) reach(relative string) {
	if relative != "" && !path.IsAbs(relative) {
		f.reaches = append(f.reaches, path.Clean(relative))
	}
}

// embedPatterns finds the patterns of all lines that begin like an embed
// directive. One within a text is not a directive, and merely adds an edge.
func embedPatterns(content []byte) []string {
	var patterns []string
	directive := []byte("//go:embed")
	for line := range bytes.Lines(content) {
		rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t\r"), directive)
		if !ok || len(rest) == 0 || rest[0] != ' ' && rest[0] != '\t' {
			continue
		}
		patterns = append(patterns, splitPatterns(strings.TrimSpace(string(rest)))...)
	}
	return patterns
}

// splitPatterns cuts the arguments of an embed directive: words, or quoted as in
// Go.
func splitPatterns(args string) []string {
	var patterns []string
	for args = strings.TrimLeft(args, " \t"); args != ""; args = strings.TrimLeft(args, " \t") {
		var word string
		if args[0] == '"' || args[0] == '`' {
			quoted, err := strconv.QuotedPrefix(args)
			if err != nil {
				return patterns
			}
			args = args[len(quoted):]
			word, _ = strconv.Unquote(quoted)
		} else {
			end := strings.IndexAny(args, " \t")
			if end < 0 {
				end = len(args)
			}
			word, args = args[:end], args[end:]
		}
		patterns = append(patterns, word)
	}
	return patterns
}

// buildConstraint returns a file's constraint: the go:build line, else all +build
// lines together. It is empty, which any platform meets, if these are too long.
func buildConstraint(file *ast.File) string {
	var old constraint.Expr
	size := 0
	for _, group := range file.Comments {
		if file.Package.IsValid() && group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			switch {
			case constraint.IsGoBuild(comment.Text):
				if expr, err := constraint.Parse(comment.Text); err == nil {
					return expr.String()
				}
			case constraint.IsPlusBuild(comment.Text):
				if size += len(comment.Text); size > maxConstraint {
					return ""
				}
				expr, err := constraint.Parse(comment.Text)
				switch {
				case err != nil:
				case old == nil:
					old = expr
				default:
					old = &constraint.AndExpr{X: old, Y: expr}
				}
			}
		}
	}
	if old == nil {
		return ""
	}
	return old.String()
}

// finish brings the facts into their one form.
func (f *facts) finish() {
	for _, list := range []*[]string{&f.imports, &f.embeds, &f.reaches, &f.includes, &f.outside, &f.beside} {
		slices.Sort(*list)
		*list = slices.Clip(slices.Compact(*list))
		if len(*list) > maxImports || slices.ContainsFunc(*list, func(s string) bool { return len(s) > maxTextSize }) {
			*f = facts{unread: true}
			return
		}
	}
	f.prepare()
}

// prepare makes what is not stored.
func (f *facts) prepare() {
	if f.constraint == "" {
		return
	}
	if expr, err := constraint.Parse("//go:build " + f.constraint); err == nil {
		f.expression = expr
	}
}

// weight is roughly how many bytes the facts take.
func (f *facts) weight() int64 {
	n := 200 + 2*len(f.constraint)
	for _, list := range [][]string{f.imports, f.embeds, f.reaches, f.includes, f.outside, f.beside} {
		for _, s := range list {
			n += 16 + len(s)
		}
	}
	return int64(n)
}
