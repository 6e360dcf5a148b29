package gograph

import (
	"path"
	"strings"

	"golang.org/x/mod/module"
)

// pkg is a folder that holds a package, its tests, or both.
type pkg struct {
	folder     *folder
	importPath string
	sources    []source // what the go command would use, for all platforms
	tests      []source // _test.go
	// native: C, assembly or cgo is among the sources. What these include cannot
	// be decided from their text alone.
	native bool
	// reached are the paths beyond the folder that native code needs, there or not.
	reached []string
	// unhashed: its C code or assembly includes what go does not hash.
	unhashed bool
	read     bool // the facts are there
}

// source is one file of a package.
type source struct {
	entry int32
	// content is the entry that holds the text: another than entry where that is a
	// symbolic link, -1 where it leads nowhere.
	content int32
	facts   *facts // nil: not of a language that is examined into
}

// foreignSuffixes are those of files besides Go's that the go command compiles or
// hands to the C compiler.
var foreignSuffixes = map[string]bool{
	".c": true, ".cc": true, ".cpp": true, ".cxx": true, ".m": true, ".h": true, ".hh": true, ".hpp": true, ".hxx": true,
	".f": true, ".F": true, ".for": true, ".f90": true, ".s": true, ".S": true, ".sx": true, ".swig": true, ".swigcxx": true, ".syso": true,
}

// fileClass is what the go command takes a name in a package's folder for.
type fileClass uint8

const (
	otherFile fileClass = iota
	goFile
	testFile
	foreignFile
)

func classOf(name string) fileClass {
	switch suffix := path.Ext(name); {
	case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_"):
		return otherFile
	case suffix == ".go" && strings.HasSuffix(name, "_test.go"):
		return testFile
	case suffix == ".go":
		return goFile
	case foreignSuffixes[suffix]:
		return foreignFile
	}
	return otherFile
}

// findPackage returns what package stands in a folder; nil if none does.
func (s *snapshot) findPackage(f *folder) *pkg {
	if f.ignored {
		return nil
	}
	p := &pkg{folder: f}
	inGo := false
	for _, i := range f.files {
		entry := &s.entries[i]
		if entry.Mode&modeType == modeSubmodule {
			continue
		}
		one := source{entry: i, content: i}
		switch classOf(s.name(f, i)) {
		case testFile:
			inGo = true
			p.tests = append(p.tests, one)
		case goFile:
			inGo = true
			p.sources = append(p.sources, one)
		case foreignFile:
			p.native = true
			p.sources = append(p.sources, one)
		}
	}
	if !inGo {
		return nil
	}
	if f.module != nil && f.module.file.problem == "" {
		p.importPath = below(f.module.file.path, f.module.rest(f.path))
		// Go refuses such names, so nothing can be built and nothing can import it.
		if module.CheckImportPath(p.importPath) != nil {
			return nil
		}
	}
	return p
}

// hasLibrary reports whether there is anything to import.
func (p *pkg) hasLibrary(s *snapshot) bool {
	for _, one := range p.sources {
		if classOf(s.name(p.folder, one.entry)) == goFile {
			return true
		}
	}
	return false
}

// isProgram reports whether the package may be a program, which go build links. A file that is too large to be read may be of one.
func (p *pkg) isProgram(s *snapshot) bool {
	for _, one := range p.sources {
		if classOf(s.name(p.folder, one.entry)) == goFile && (one.facts == nil || one.facts.program || one.facts.unread) {
			return true
		}
	}
	return false
}

// builtOn reports whether a build takes any of the Go files.
func builtOn(s *snapshot, p platform, f *folder, files []source) bool {
	for _, one := range files {
		name := s.name(f, one.entry)
		if one.facts != nil && strings.HasSuffix(name, ".go") && p.takes(name, one.facts) {
			return true
		}
	}
	return false
}
