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
)

// facts are what one Go, C or assembly file says about what it needs. They rest
// on its content alone, so they are remembered by the blob's id, and never
// change.
type facts struct {
	// imports are import paths, sorted, "C" not among them.
	imports []string
	// embeds are the patterns of //go:embed, sorted.
	embeds []string
	// reaches are relative paths that cgo directives and quoted includes name,
	// sorted: files and folders outside the package's own.
	reaches []string
	// cgo: the file imports "C".
	cgo bool
	// constraint is the build constraint in go:build's language, or empty.
	constraint string
	// unread: the file is larger than what is looked at.
	unread bool

	expression constraint.Expr // of constraint
}

// unlimited bounds for a single file: what passes them is not code.
const (
	maxImports  = 20_000 // also of patterns and of paths
	maxTextSize = 4096   // of one import path, pattern or path
)

// parseGo reads the facts of a Go file. What it cannot parse cannot be compiled
// either, so what is found up to there is enough: nothing that the file would
// need could turn its package green.
func parseGo(content []byte) *facts {
	f := &facts{}
	file, _ := parser.ParseFile(token.NewFileSet(), "", content, parser.ImportsOnly|parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return f
	}
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
	f.includes(text)
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) < 2 || words[0] != "#cgo" {
			continue
		}
		_, flags, ok := strings.Cut(string(line), ":")
		if !ok {
			continue
		}
		for word := range strings.FieldsSeq(flags) {
			f.cgoFlag(strings.Trim(word, `"'`))
		}
	}
}

// cgoFlag notes a path in a flag of the compiler or the linker.
func (f *facts) cgoFlag(word string) {
	if _, rest, ok := strings.Cut(word, "${SRCDIR}"); ok {
		f.reach("." + rest)
		return
	}
	for _, flag := range []string{"-I", "-L", "-F", "-iquote", "-isystem", "-include", ""} {
		if rest, ok := strings.CutPrefix(word, flag); ok && (strings.HasPrefix(rest, ".") || flag != "" && rest != "") {
			f.reach(rest)
			return
		}
	}
}

// parseForeign reads what a C or assembly file includes.
func parseForeign(content []byte) *facts {
	f := &facts{}
	f.includes(content)
	f.finish()
	return f
}

func (f *facts) includes(content []byte) {
	for line := range bytes.Lines(content) {
		line = bytes.TrimLeft(line, " \t")
		if len(line) == 0 || line[0] != '#' {
			continue
		}
		rest, ok := bytes.CutPrefix(bytes.TrimLeft(line[1:], " \t"), []byte("include"))
		if !ok {
			continue
		}
		rest = bytes.TrimLeft(rest, " \t")
		if len(rest) == 0 || rest[0] != '"' {
			continue
		}
		if end := bytes.IndexByte(rest[1:], '"'); end > 0 {
			f.reach(string(rest[1 : 1+end]))
		}
	}
}

// reach notes a relative path. Those within the package's folder are not worth
// it: cgo packages depend on all that is there.
func (f *facts) reach(relative string) {
	clean := path.Clean(relative)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		f.reaches = append(f.reaches, clean)
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

// buildConstraint gives a file's constraint: the go:build line, else all +build
// lines together.
func buildConstraint(file *ast.File) string {
	var old constraint.Expr
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
	for _, list := range []*[]string{&f.imports, &f.embeds, &f.reaches} {
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
	for _, list := range [][]string{f.imports, f.embeds, f.reaches} {
		for _, s := range list {
			n += 16 + len(s)
		}
	}
	return int64(n)
}
