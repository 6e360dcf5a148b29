package gograph

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Paths of facts.outside and facts.beside that are no names.
const (
	wholeRepository = "/"
	wholeModule     = "/go.mod"
	wholeFolder     = "/."    // with all code below the folder
	testsToo        = "/test" // what is named counts with the tests that are there
)

// allPackages ends a path of facts.outside that stands for all that is below a folder or an import path.
const allPackages = "/..."

// mayReadOutside reports whether a file has anything that outsidePaths looks for in any file.
func mayReadOutside(content []byte) bool {
	has := func(text string) bool { return bytes.Contains(content, []byte(text)) }
	return has("../") || has(`".."`) || has("`..`") || has(`/.."`) || has("cd ..") || has("runtime.Caller") || has("os.Getwd") ||
		has(".Dir(") && (has(`"go.mod"`) || has(`"go.work"`) || has(`".git"`))
}

// pathReader finds the paths of a Go file that lead out of a folder.
type pathReader struct {
	outside, beside []string
	// forTests is set if the file is there for tests: what it names below the folder counts too. climbs is set if it may name
	// what is above.
	forTests, climbs bool
	// walks is set if a function that reads folders is given one that is not a text, and folder if the working folder is named or
	// asked for.
	walks, folder bool
	// runs is set if a program is started, and dot if the working folder is named by a text.
	runs, dot bool
	// lists are lists of texts that a program may be started with, and namesGo is set if a text is the name of the go command.
	lists   [][]string
	namesGo bool
	// joined holds arguments of Join that were read as one path, and begun the sums that a longer one begins with.
	joined, begun map[ast.Node]bool
	// summed holds texts whose sum was read as a path: by themselves they name no folder above.
	summed map[ast.Node]bool
	// places holds the names of variables that are made from the working folder or from where the file is.
	places map[string]bool
	// files is set if the file imports what reads files or makes paths.
	files bool
	// callerInVariables is set if a variable of the package holds where the file is.
	callerInVariables bool
}

// outsidePaths returns the paths that a Go file names outside of a folder: the working folder, and, where it asks
// runtime.Caller where it is, its own, with "." for what is in that.
//
// Paths are a whole text, each word of it, what Join makes of several, and a sum of texts. A part that is not known stands for the
// folder itself if it is the first, and else for all below the folder before it: "../" + name is all below the folder above. A call of
// Dir with a place leads up by one folder, and one in a loop to the root.
//
// Of a file that is there for tests it also returns the texts that can name a package, by a path below the folder or by an
// import path, and wholeFolder where it reads the folder and those below.
func outsidePaths(content []byte, forTests bool) (outside, beside []string) {
	climbs := mayReadOutside(content)
	if !forTests && !climbs {
		return nil, nil
	}
	file, _ := parser.ParseFile(token.NewFileSet(), "", content, parser.SkipObjectResolution)
	if file == nil {
		return nil, nil
	}
	r := pathReader{forTests: forTests, climbs: climbs, joined: map[ast.Node]bool{}, begun: map[ast.Node]bool{}, summed: map[ast.Node]bool{}, places: map[string]bool{}}
	for _, imported := range file.Imports {
		r.files = r.files || slices.Contains([]string{`"os"`, `"io/ioutil"`, `"path"`, `"path/filepath"`}, imported.Path.Value)
	}
	asked := false
	for _, decl := range file.Decls {
		if isVariables(decl) {
			s := r.read(decl)
			r.callerInVariables = r.callerInVariables || s.caller
		}
	}
	for _, decl := range file.Decls {
		if !isVariables(decl) {
			s := r.read(decl)
			asked = asked || s.caller
		}
	}
	asked = asked || r.callerInVariables
	if forTests && (r.walks && r.folder || r.runs && r.dot) {
		r.outside = append(r.outside, wholeFolder)
	}
	for _, list := range r.lists {
		if r.namesGo {
			r.readGo(list)
		}
	}
	slices.Sort(r.outside)
	if r.outside = slices.Compact(r.outside); forTests && len(r.outside) > maxImports/2 {
		return []string{wholeRepository}, nil
	}
	if asked {
		r.beside = append(r.beside, r.outside...)
		if forTests && r.walks {
			r.beside = append(r.beside, wholeFolder)
		}
	}
	return r.outside, r.beside
}

func isVariables(decl ast.Decl) bool { _, is := decl.(*ast.GenDecl); return is }

// scope is what one declaration does with places.
type scope struct {
	cuts          bool   // it makes a folder of a place by what is not understood
	caller, getwd bool   // it asks where the file is, and for the working folder
	ups           int    // calls of Dir
	loops         bool   // one of them is in a loop, or in a call of the function itself
	anchor        string // "go.mod", "go.work" or ".git", by which the root is known; "" if it names none
}

// read reads one declaration.
func (r *pathReader) read(decl ast.Decl) scope {
	var s scope
	name, keeps := "", false
	if f, is := decl.(*ast.FuncDecl); is {
		name, keeps = f.Name.Name, f.Type.Results == nil
	}
	ast.PreorderStack(decl, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.AssignStmt:
			r.assign(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			names := make([]ast.Expr, len(n.Names))
			for i, one := range n.Names {
				names[i] = one
			}
			r.assign(names, n.Values)
		case *ast.CallExpr:
			s.cuts = s.cuts || r.cutsPlace(n, calledName(n))
			r.call(&s, n, stack, name)
		case *ast.CompositeLit:
			r.readTexts(n.Elts)
		case *ast.BinaryExpr:
			r.sum(n, stack)
		case *ast.SliceExpr:
			s.cuts = s.cuts || n.High != nil && r.isPlace(n.X)
		case *ast.BasicLit:
			r.literal(&s, n, stack)
		}
		return true
	})
	if s.caller || s.getwd {
		r.places[name] = true // It may return what it was told.
	}
	// A logger shortens where its caller is, and reads nothing there.
	if s.cuts && (r.forTests || r.files || !keeps) {
		r.outside = append(r.outside, wholeRepository)
	}
	r.climb(s)
	return s
}

// keepPlace are functions of strings that cut nothing off the end of a place.
var keepPlace = map[string]bool{
	"Contains": true, "ContainsAny": true, "Count": true, "Compare": true, "EqualFold": true, "HasPrefix": true, "HasSuffix": true, "Index": true, "IndexByte": true,
	"LastIndex": true, "LastIndexByte": true, "TrimPrefix": true, "CutPrefix": true, "TrimSpace": true, "ToLower": true, "ToUpper": true, "NewReader": true,
}

// cutsPlace reports whether a call may return a folder above a place, by what is not understood.
func (r *pathReader) cutsPlace(call *ast.CallExpr, name string) bool {
	of, function, _ := strings.Cut(name, ".")
	switch {
	case len(call.Args) == 0:
		return false
	case of == "strings", of == "filepath" && function == "Split", of == "path" && function == "Split":
		return !keepPlace[function] && r.isPlace(call.Args[0])
	}
	return (strings.HasPrefix(function, "Find") || strings.HasPrefix(function, "ReplaceAll")) && slices.ContainsFunc(call.Args, r.isPlace)
}

// climb adds the paths to which the calls of Dir of a declaration lead.
func (r *pathReader) climb(s scope) {
	caller := s.caller || r.callerInVariables && s.ups > 0
	switch {
	case s.loops && (caller || s.getwd || s.anchor != ""):
		root := wholeRepository
		if s.anchor == "go.mod" {
			root = wholeModule
		}
		if caller {
			r.beside = append(r.beside, root)
		} else {
			r.outside = append(r.outside, root)
		}
		return
	case s.getwd && s.ups > 0:
		r.outside = append(r.outside, up(s.ups))
	}
	if caller && s.ups > 0 {
		r.beside = append(r.beside, up(s.ups-1))
	}
}

// up returns the path that leads up n folders.
func up(n int) string { return path.Clean(strings.Repeat("../", min(n, 100))) }

// assign notes variables that hold places, or what is made of them.
func (r *pathReader) assign(to, from []ast.Expr) {
	if slices.ContainsFunc(from, r.isPlace) {
		for _, e := range to {
			if name, is := e.(*ast.Ident); is && name.Name != "_" && name.Name != "err" {
				r.places[name.Name] = true
			}
		}
	}
}

// isPlace reports whether a place is in an expression.
func (r *pathReader) isPlace(e ast.Expr) (is bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			is = is || r.places[n.Name]
		case *ast.CallExpr:
			switch name := calledName(n); {
			case name == "os.Getwd" || name == "runtime.Caller":
				is = true
			case name == "runtime.FuncForPC":
				return false // a function's name
			case isJoin(name):
				return false // Dir leads back, and what leads up besides is a text
			}
		case *ast.FuncLit:
			return false
		}
		return !is
	})
	return is
}

func isJoin(name string) bool { return name == "filepath.Join" || name == "path.Join" }

// calledName returns the name of a function with its package's, or of a function or method alone.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, is := f.X.(*ast.Ident); is {
			return x.Name + "." + f.Sel.Name
		}
		return f.Sel.Name
	}
	return ""
}

// walkers are programs that go through the working folder if they are not told where.
var walkers = map[string]bool{
	"gofmt": true, "gofumpt": true, "goimports": true, "golangci-lint": true, "staticcheck": true, "git": true, "grep": true, "rg": true, "find": true, "tree": true,
}

// readProgram reads a call that starts a program.
func (r *pathReader) readProgram(args []ast.Expr) {
	if !r.forTests {
		return
	}
	r.runs = true
	words := wordsOf(args)
	switch {
	case len(words) == 0:
	case walkers[path.Base(words[0])]:
		r.outside = append(r.outside, wholeFolder, testsToo)
	case words[0] == "go":
		words := withoutFolder(words[1:])
		r.readGo(words)
		if len(words) > 0 && (words[0] == "work" || words[0] == "mod" || words[0] == "list" && slices.Contains(words, "-m") || slices.Contains(words, "all") || slices.Contains(words, "...")) {
			// It reads the go.mod files of all modules that a workspace uses.
			r.outside = append(r.outside, wholeRepository)
		}
	}
	for _, word := range words {
		r.readShell(word)
	}
}

// readShell reads a line of a shell for the go command.
func (r *pathReader) readShell(line string) {
	words := strings.FieldsFunc(line, isBetweenWords)
	for i, word := range words {
		if word == "go" {
			r.readGo(words[i+1:])
		}
	}
}

// tools are what go tool runs of its own.
var tools = strings.Fields("addr2line asm buildid cgo compile cover covdata dist distpack doc fix link nm objdump pack pprof preprofile test2json trace vet")

// goCommands are those of the go command that read more than the packages that they name.
var goCommands = []string{"generate", "tool", "test", "vet", "list", "work", "mod", "run", "build"}

// wordsOf returns the texts of a list from the first one that is known, with "" for each of the others that is not.
func wordsOf(list []ast.Expr) (words []string) {
	for _, e := range list {
		if text, ok := textOf(e); ok {
			words = append(words, text)
		} else if len(words) > 0 {
			words = append(words, "")
		}
	}
	return words
}

// withoutFolder returns the arguments of the go command from the first one that is known, behind -C and a folder.
func withoutFolder(words []string) []string {
	for len(words) > 0 && words[0] == "" {
		words = words[1:]
	}
	if len(words) > 0 && strings.HasPrefix(words[0], "-C") {
		if at := slices.IndexFunc(words, func(word string) bool { return slices.Contains(goCommands, word) }); at >= 0 {
			return words[at:]
		}
	}
	return words
}

// isOwnTool reports whether go tool runs one of its own, by the arguments behind tool.
func isOwnTool(words []string) bool {
	at := slices.IndexFunc(words, func(word string) bool { return !strings.HasPrefix(word, "-") })
	return at >= 0 && slices.Contains(tools, words[at])
}

// readGo reads the arguments of the go command, as far as they are known.
func (r *pathReader) readGo(words []string) {
	words = withoutFolder(words)
	switch {
	case len(words) == 0:
	case words[0] == "generate", words[0] == "tool" && !isOwnTool(words[1:]):
		// What it runs stands in comments of other files, and in a go.mod.
		r.outside = append(r.outside, wholeRepository)
	case words[0] == "test", words[0] == "vet", slices.Contains(words, "-test"):
		r.outside = append(r.outside, testsToo)
	}
}

// readTexts reads a list of texts that may be the go command and its arguments, or the latter alone.
func (r *pathReader) readTexts(list []ast.Expr) {
	if !r.forTests {
		return
	}
	words := wordsOf(list)
	if at := slices.Index(words, "go"); at >= 0 {
		r.readGo(words[at+1:])
	} else if len(words) > 0 && slices.Contains([]string{"generate", "tool", "test", "vet", "list"}, words[0]) {
		r.lists = append(r.lists, words)
	}
}

// asksForRoot reports whether a word of a command has it say where the module or the repository begins, or what is in that.
func asksForRoot(word string) bool {
	switch word {
	case "GOMOD", "GOWORK", "--show-toplevel", "--show-cdup", "ls-files":
		return true
	}
	return false
}

// takesFolder reports whether a function may go through a folder that is its first argument.
func takesFolder(call *ast.CallExpr) bool {
	name := calledName(call)
	of, method, _ := strings.Cut(name, ".")
	switch of {
	case "strings", "bytes", "regexp", "fmt", "fs", "path", "errors", "log":
		return false
	}
	return !isJoin(name) && !slices.ContainsFunc([]string{"Print", "Write", "Log", "Error", "Fatal", "Skip", "Split", "Trim"}, func(verb string) bool {
		return strings.HasPrefix(method, verb)
	})
}

// call reads a call in a function of some name.
func (r *pathReader) call(s *scope, call *ast.CallExpr, stack []ast.Node, function string) {
	if len(call.Args) > 0 && takesFolder(call) {
		if text, ok := textOf(call.Args[0]); ok && (text == "." || text == "./") {
			r.addBelow("./", true)
		}
	}
	if takesFolder(call) {
		r.readTexts(call.Args)
	}
	switch name := calledName(call); {
	case name == "exec.Command" || name == "exec.CommandContext":
		r.readProgram(call.Args)
	case isJoin(name):
		r.add(r.joinedText(call.Args), !isCompared(stack))
	case folderReaders[name] || strings.HasSuffix(name, ".Chdir"):
		r.readFolder(name, call.Args)
	case strings.HasPrefix(name, "fs."):
		for _, arg := range call.Args {
			r.joined[arg] = true // It is a name in a file system, which DirFS makes of a folder.
		}
	case name == "os.Getwd":
		s.getwd, r.folder = true, true
	case name == "runtime.Caller":
		s.caller = s.caller || !dropsFile(stack)
	case (name == "filepath.Dir" || name == "path.Dir") && len(call.Args) == 1:
		inLoop := slices.ContainsFunc(stack, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt:
				return true
			case *ast.RangeStmt:
				return replaces(stack, call.Args[0])
			case *ast.CallExpr:
				return function != "" && calledName(n) == function
			}
			return false
		})
		s.loops = s.loops || inLoop
		if inLoop || r.isPlace(call.Args[0]) {
			s.ups++
		}
	}
}

// folderReaders are functions that read folders, or packages.
var folderReaders = map[string]bool{
	"filepath.WalkDir": true, "filepath.Walk": true, "filepath.Glob": true, "os.ReadDir": true, "os.DirFS": true, "os.OpenRoot": true, "ioutil.ReadDir": true,
	"parser.ParseDir": true, "packages.Load": true, "build.Import": true, "build.ImportDir": true,
}

// readFolder reads a call of a function that reads folders.
func (r *pathReader) readFolder(name string, args []ast.Expr) {
	if !r.forTests {
		return
	}
	given := false
	for _, arg := range args {
		text, ok := textOf(arg)
		if !ok {
			continue
		}
		given = true
		if name == "filepath.Glob" && !strings.Contains(text, "/") && strings.Contains(text, ".") {
			continue // It matches files of the package's own folder.
		}
		first, _, _ := strings.Cut(path.Clean(text), "/")
		if first == "." || strings.ContainsAny(first, unknownParts) {
			text = "."
		}
		r.addBelow(text+"/", true)
	}
	r.walks = r.walks || !given && len(args) > 0 && !isTempDir(args[0])
}

// isTempDir reports whether an expression is a folder that a test makes.
func isTempDir(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	return is && strings.HasSuffix(calledName(call), ".TempDir")
}

// replaces reports whether what is innermost in a stack assigns to a variable that is an argument.
func replaces(stack []ast.Node, arg ast.Expr) bool {
	variable, is := arg.(*ast.Ident)
	assign, assigns := stack[len(stack)-1].(*ast.AssignStmt)
	return is && assigns && slices.ContainsFunc(assign.Lhs, func(e ast.Expr) bool {
		to, is := e.(*ast.Ident)
		return is && to.Name == variable.Name
	})
}

// dropsFile reports whether the file that runtime.Caller returns is assigned to _.
func dropsFile(stack []ast.Node) bool {
	var to []ast.Expr
	switch parent := stack[len(stack)-1].(type) {
	case *ast.AssignStmt:
		to = parent.Lhs
	case *ast.ValueSpec:
		return len(parent.Names) == 4 && parent.Names[1].Name == "_"
	}
	if len(to) != 4 {
		return false
	}
	name, is := to[1].(*ast.Ident)
	return is && name.Name == "_"
}

// sum reads texts with + between them.
func (r *pathReader) sum(n *ast.BinaryExpr, stack []ast.Node) {
	r.begun[n.X] = n.Op == token.ADD
	if n.Op != token.ADD || r.begun[n] {
		return
	}
	text, known := textOf(n)
	first := ast.Expr(n)
	for sum, is := first.(*ast.BinaryExpr); is; sum, is = first.(*ast.BinaryExpr) {
		r.summed[sum.Y] = known
		first = sum.X
	}
	r.summed[first] = true
	if !known {
		text = text[:strings.LastIndexByte(text, '/')+1]
	}
	r.add(text, !isCompared(stack))
}

// literal reads a text, and the words of it.
func (r *pathReader) literal(s *scope, n *ast.BasicLit, stack []ast.Node) {
	text, ok := textOf(n)
	if !ok {
		return
	}
	switch text {
	case "go.mod", "go.work", ".git":
		if s.anchor == "" || text != "go.mod" {
			s.anchor = text
		}
	}
	r.namesGo = r.namesGo || text == "go"
	if r.joined[n] {
		return
	}
	compared := isCompared(stack)
	if line, is := strings.CutPrefix(text, "go "); is && r.forTests && !compared {
		if call, is := stack[len(stack)-1].(*ast.CallExpr); !is || takesFolder(call) {
			r.readGo(strings.FieldsFunc(line, isBetweenWords))
		}
	}
	if r.forTests && !compared && slices.ContainsFunc(strings.Fields(text), asksForRoot) {
		r.outside = append(r.outside, wholeRepository)
	}
	if !compared && (text == "." || text == "./") {
		call, is := stack[len(stack)-1].(*ast.CallExpr)
		r.folder, r.dot = true, r.dot || !is || takesFolder(call)
	}
	r.add(text, !compared && !r.summed[n])
	for word := range strings.FieldsFuncSeq(text, isBetweenWords) {
		r.add(word, !compared && word != text)
	}
}

// isCompared reports whether a text is only compared with others, or cut from them.
func isCompared(stack []ast.Node) bool {
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.ADD {
				return true
			}
		case *ast.CallExpr:
			of, _, _ := strings.Cut(calledName(n), ".")
			return of == "strings" || of == "bytes" || of == "regexp"
		case *ast.CaseClause:
			return true
		case ast.Stmt:
			return false
		}
	}
	return false
}

// add adds a path that leads out of a folder. withAbove adds one of a folder that holds this one, too.
func (r *pathReader) add(text string, withAbove bool) {
	if name := outsidePath(text); r.climbs && name != "" && (withAbove || !isAbove(name)) {
		r.outside = append(r.outside, name)
	}
	r.addBelow(text, withAbove)
}

// addBelow adds a path below the folder, or an import path. withAll adds one of many packages, too.
func (r *pathReader) addBelow(text string, withAll bool) {
	if !r.forTests {
		return
	}
	if name := belowPath(text); name != "" && (withAll || name != wholeFolder && !strings.HasSuffix(name, allPackages)) {
		r.outside = append(r.outside, name)
	}
}

// isAbove reports whether a path is of a folder that holds the one it is relative to.
func isAbove(name string) bool { return name == ".." || strings.HasSuffix(name, "/..") }

func isBetweenWords(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`;&|<>()=,:", r)
}

// joinedText returns what Join makes of its arguments up to the first that is not known, and notes them in joined. If the very first
// is not known, it stands for the folder itself.
func (r *pathReader) joinedText(args []ast.Expr) string {
	var words []string
	for i, arg := range args {
		word, ok := textOf(arg)
		switch {
		case ok:
			words, r.joined[arg] = append(words, word), true
		case i > 0:
			return path.Join(words...) + "/"
		}
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

// unknownParts holds the characters of wildcards, verbs of fmt and variables, whose names are not known from the text.
const unknownParts = `*?[%{$\`

// outsidePath returns the path that a text is, if it leads out of a folder, and else "". It ends before the first
// name with a wildcard or a verb of fmt; as the first name of all, that stands for the folder.
func outsidePath(text string) string {
	if len(text) > maxTextSize || !strings.Contains(text, "..") || strings.ContainsFunc(text, unicode.IsControl) {
		return ""
	}
	if first, rest, _ := strings.Cut(text, "/"); strings.HasPrefix(rest, "..") && (first == "" || strings.ContainsAny(first, unknownParts)) {
		text = rest // what is before was not known
	}
	names := strings.Split(path.Clean(text), "/")
	for i, name := range names {
		if name == "..." || strings.ContainsAny(name, unknownParts) {
			names = names[:i]
			break
		}
	}
	if len(names) == 0 || names[0] != ".." {
		return ""
	}
	return strings.Join(names, "/")
}

// belowPath returns the path below a folder, or the import path, that a text can be: wholeFolder for the folder itself, and "" if
// it is none. It ends in allPackages where the text does before a name with a wildcard or a verb of fmt, or at a slash.
func belowPath(text string) string {
	if len(text) > maxTextSize || !strings.Contains(text, "/") || text[0] == '/' {
		return ""
	}
	names := strings.Split(text, "/")
	all := false
	for i, name := range names {
		if strings.ContainsFunc(name, isNotInPattern) {
			return ""
		}
		if name == "..." || strings.ContainsAny(name, unknownParts) || name == "" && i == len(names)-1 {
			names, all = names[:i], true
			break
		}
		if name == "" {
			return ""
		}
	}
	clean := path.Clean(strings.Join(names, "/"))
	switch {
	case len(names) == 0 || strings.HasPrefix(clean, ".."):
		return ""
	case clean == ".":
		return wholeFolder
	case all:
		return clean + allPackages
	}
	return clean
}

// isNotInPattern reports whether a character is in no import path, wildcard or verb of fmt.
func isNotInPattern(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._~+]},"+unknownParts, r)
}
