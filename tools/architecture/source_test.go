package architecture_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// project is the workspace as the rules see it: Go files parsed, documents as text. Paths start at the
// workspace's root and have slashes.
type project struct {
	files     []*goFile
	documents map[string]string
	// paths are all files and folders, for links.
	paths map[string]bool
}

type goFile struct {
	path, folder    string
	test, generated bool
	lines           int
	set             *token.FileSet
	syntax          *ast.File
	// imports has the path of each import by the name that it has in the file.
	imports map[string]string
}

// modules of the workspace, by folder.
var modules = []string{"engine", "events", "learning", "platform", "services", "tools"}

const modulePrefix = "landfall.build/"

var generatedMark = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// readProject reads the checkout that this test stands in.
func readProject(t *testing.T) *project {
	t.Helper()
	p := &project{documents: map[string]string{}, paths: map[string]bool{}}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		// Go ignores folders whose name begins with _ or a dot, and so do the rules.
		if entry.IsDir() && name != "." && (base[0] == '.' || base[0] == '_' || base == "bin") {
			return fs.SkipDir
		}
		p.paths[name] = true
		if entry.IsDir() || !isRead(name) {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return p.add(name, content)
	})
	if err != nil {
		t.Fatalf("read the workspace at %s: %v", absolute("../.."), err)
	}
	if len(p.files) < 100 || len(p.documents) < 5 {
		t.Fatalf("only %d Go files and %d documents were found at %s; the rules would hold for nothing", len(p.files), len(p.documents), absolute("../.."))
	}
	return p
}

func absolute(name string) string {
	full, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	return full
}

func isRead(name string) bool {
	if strings.Contains(name, "/testdata/") {
		return false
	}
	if strings.HasSuffix(name, ".md") {
		return true
	}
	module, _, inFolder := strings.Cut(name, "/")
	return inFolder && strings.HasSuffix(name, ".go") && slices.Contains(modules, module)
}

// add takes one file.
func (p *project) add(name string, content []byte) error {
	for at := name; at != "." && at != "/"; at = path.Dir(at) {
		p.paths[at] = true
	}
	if strings.HasSuffix(name, ".md") {
		p.documents[name] = string(content)
		return nil
	}
	f := &goFile{
		path: name, folder: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), generated: generatedMark.Match(content),
		lines: bytes.Count(content, []byte("\n")), set: token.NewFileSet(), imports: map[string]string{},
	}
	mode := parser.SkipObjectResolution | parser.ParseComments
	if f.generated {
		mode |= parser.ImportsOnly
	}
	var err error
	if f.syntax, err = parser.ParseFile(f.set, name, content, mode); err != nil {
		return err
	}
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		f.imports[localName(spec, imported)] = imported
	}
	p.files = append(p.files, f)
	return nil
}

// localName is what a file calls an import. Without a name of its own that is the path's last element,
// but for a major version or a suffix such as -go.
func localName(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		if spec.Name.Name == "_" || spec.Name.Name == "." {
			return spec.Name.Name + imported
		}
		return spec.Name.Name
	}
	base := path.Base(imported)
	if regexp.MustCompile(`^v[0-9]+$`).MatchString(base) {
		base = path.Base(path.Dir(imported))
	}
	return base
}

// in lists the files of a folder, tests left out.
func (p *project) in(folder string) []*goFile {
	var out []*goFile
	for _, f := range p.files {
		if f.folder == folder && !f.test {
			out = append(out, f)
		}
	}
	return out
}

// below lists the files in and below a folder, tests left out.
func (p *project) below(folder string) []*goFile {
	var out []*goFile
	for _, f := range p.files {
		if (f.folder == folder || strings.HasPrefix(f.folder, folder+"/")) && !f.test {
			out = append(out, f)
		}
	}
	return out
}

// at is a place in a file as compilers print it.
func (f *goFile) at(pos token.Pos) string {
	return f.path + ":" + strconv.Itoa(f.set.Position(pos).Line)
}

// eachUse calls do for every use of a name of an imported package.
func (f *goFile) eachUse(do func(imported, name string, pos token.Pos)) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			if x, is := s.X.(*ast.Ident); is {
				if imported, known := f.imports[x.Name]; known {
					do(imported, s.Sel.Name, s.Pos())
				}
			}
		}
		return true
	})
}
