package gograph

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"unicode"

	"landfall.build/engine/targets"
)

// outsidePaths returns the paths in the texts of a Go file that lead out of its folder: whole texts, words of them,
// what Join makes of several, and texts with + between them. What is not known stands for all below the folder
// before it.
func outsidePaths(content []byte) []string {
	if !bytes.Contains(content, []byte("../")) && !bytes.Contains(content, []byte(`".."`)) && !bytes.Contains(content, []byte("`..`")) {
		return nil
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", content, parser.SkipObjectResolution)
	if file == nil {
		return nil
	}
	var paths []string
	add := func(text string) {
		if name := outsidePath(text); name != "" {
			paths = append(paths, name)
		}
	}
	joined, begun := map[ast.Node]bool{}, map[ast.Node]bool{} // begun: a longer sum begins with it
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Join" {
				add(joinedText(n.Args, joined))
			}
		case *ast.BinaryExpr:
			begun[n.X] = n.Op == token.ADD
			if begun[n] {
				break
			}
			if text, ok := textOf(n); ok {
				add(text)
			} else {
				add(text[:strings.LastIndexByte(text, '/')+1])
			}
		case *ast.BasicLit:
			if text, ok := textOf(n); ok && !joined[n] {
				add(text)
				for word := range strings.FieldsFuncSeq(text, isBetweenWords) {
					add(word)
				}
			}
		}
		return true
	})
	return paths
}

func isBetweenWords(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`;&|<>()=,:", r)
}

// joinedText returns what Join makes of its arguments up to the first that is not known, and notes these.
func joinedText(args []ast.Expr, joined map[ast.Node]bool) string {
	var words []string
	for _, arg := range args {
		word, ok := textOf(arg)
		if !ok {
			break
		}
		words, joined[arg] = append(words, word), true
	}
	return path.Join(words...)
}

// textOf returns the text that an expression is; where ok is false, no more than how it begins.
func textOf(e ast.Expr) (text string, ok bool) {
	// Not by recursion on the left, where a long sum is deep.
	var rest []ast.Expr
	for {
		sum, is := e.(*ast.BinaryExpr)
		if !is || sum.Op != token.ADD {
			break
		}
		e, rest = sum.X, append(rest, sum.Y)
	}
	for {
		literal, is := e.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return text, false
		}
		one, err := strconv.Unquote(literal.Value)
		if err != nil {
			return text, false
		}
		if text += one; len(rest) == 0 {
			return text, true
		}
		if len(text) > maxTextSize {
			return text, false
		}
		e, rest = rest[len(rest)-1], rest[:len(rest)-1]
	}
}

// outsidePath returns the path that a text is, if it leads out of a folder, and else "". It ends before the first
// name with a wildcard or a verb of fmt.
func outsidePath(text string) string {
	if len(text) > maxTextSize || !strings.Contains(text, "..") || strings.ContainsFunc(text, unicode.IsControl) {
		return ""
	}
	names := strings.Split(path.Clean(text), "/")
	for i, name := range names {
		if name == "..." || strings.ContainsAny(name, `*?[%{$\`) {
			names = names[:i]
			break
		}
	}
	name := strings.Join(names, "/")
	if !strings.HasPrefix(name, "../") {
		return ""
	}
	return name
}

// addNamedByTests makes the tests of a package depend on what they name outside of their folder, where go runs them.
func (a *assembler) addNamedByTests(test targets.Node, p *pkg) {
	for _, one := range p.tests {
		if one.facts == nil {
			continue
		}
		for _, relative := range one.facts.outside {
			named, ok := join(p.folder.path, relative)
			if !ok || named == "" || strings.HasPrefix(p.folder.path+"/", named+"/") {
				continue // It is outside of the repository, or a folder that holds this one.
			}
			a.edge(test, a.outsideNode(named))
		}
	}
}

// outsideNode returns the node of a path that tests name, which is one for all of them.
func (a *assembler) outsideNode(named string) targets.Node {
	if node, ok := a.outside[named]; ok {
		return node
	}
	node := a.builder.Definition("named by tests: "+named, nil)
	a.outside[named] = node
	a.addPath(node, named)
	w := a.follow(named, a.links)
	if len(w.via) > 0 {
		a.eachOnPath(w, func(on targets.Node) { a.edge(node, on) })
		if !w.ok {
			return node
		}
		a.addPath(node, w.end)
	}
	if f := a.folders[folderOf(w.end)]; strings.HasSuffix(w.end, ".go") && a.find(w.end) >= 0 {
		a.addProgram(node, f)
		return node
	}
	pending := []*folder{a.folders[w.end]}
	for len(pending) > 0 && a.edges <= maxEdges {
		f := pending[len(pending)-1]
		if pending = pending[:len(pending)-1]; f != nil {
			a.addProgram(node, f)
			pending = append(pending, f.subs...)
		}
	}
	return node
}

// addProgram makes a node depend on the package of a folder, which the go command may be told to run.
func (a *assembler) addProgram(node targets.Node, f *folder) {
	m := f.module
	if f.pkg == nil || !f.pkg.hasLibrary(a.snapshot) || m == nil || m.list == nil {
		return
	}
	for at := f; at.parent != nil && at != m.folder; at = at.parent {
		a.edge(node, a.borderNode(at))
	}
	if f.hidden {
		a.edge(node, a.view(a.listNodes[m.list], f.path))
		return
	}
	a.edge(node, a.builder.Ref(targets.KindTarget, a.targetName(m, m.rest(f.path))))
	a.addRivalNames(m, m.rest(f.path), func(on targets.Node) { a.edge(node, on) })
}
