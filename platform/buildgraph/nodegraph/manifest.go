package nodegraph

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/textline"
)

// manifestName is what says that a folder is a package.
const manifestName = "package.json"

// packageFile is what a package.json says, as far as it decides about the graph.
type packageFile struct {
	problem string // why no package manager reads the file; empty for a good one
	line    int    // of the problem

	name, version string
	manager       string // packageManager, such as pnpm@9.1.0
	// workspaces are the patterns of the members' folders; isRoot is set if the field is there, also an empty one.
	workspaces []string
	isRoot     bool
	// requires are the packages of all kinds of dependencies, with every range that the file gives for the name.
	requires []requirement
	scripts  map[string]string
	// programs are those that the package brings, by name: the file that each is.
	programs map[string]string
	// installs is a normal form of all that an install from a lock file looks at.
	installs []byte
	// paths are the texts below the file that hold a path out of the folder.
	paths []string
}

// requirement is one dependency of a package.
type requirement struct{ name, wanted string }

// dependencyFields are the fields of package.json that name packages.
var dependencyFields = []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"}

// installFields are the fields besides that an install from a lock file compares or obeys.
var installFields = []string{
	"name", "version", "workspaces", "overrides", "resolutions", "pnpm", "packageManager", "devEngines", "engines", "os", "cpu", "libc", "bin",
	"peerDependenciesMeta", "dependenciesMeta", "bundleDependencies", "bundledDependencies", "installConfig", "languageName", "private", "patchedDependencies",
	"catalog", "catalogs", "acceptDependencies", "packageExtensions",
}

// parsePackageFile reads a package.json.
func parsePackageFile(content []byte) *packageFile {
	p := &packageFile{scripts: map[string]string{}}
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil {
		p.problem, p.line = "is not valid JSON: "+err.Error(), lineOf(content, err)
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			p.problem = "must hold a JSON object"
		}
		return p
	}
	p.name, p.version, p.manager = textField(fields["name"]), textField(fields["version"]), textField(fields["packageManager"])
	p.readWorkspaces(fields["workspaces"])
	wanted := map[requirement]bool{}
	for _, field := range dependencyFields {
		for name, text := range textFields(fields[field]) {
			wanted[requirement{name, text}] = true
		}
	}
	for r := range wanted {
		p.requires = append(p.requires, r)
	}
	slices.SortFunc(p.requires, func(x, y requirement) int {
		return strings.Compare(x.name+"\x00"+x.wanted, y.name+"\x00"+y.wanted)
	})
	p.scripts, p.programs = textFields(fields["scripts"]), textFields(fields["bin"])
	if file := textField(fields["bin"]); file != "" {
		p.programs = map[string]string{path.Base(p.name): file}
	}
	for _, field := range slices.Concat(dependencyFields, installFields) {
		if raw, ok := fields[field]; ok {
			p.installs = append(p.installs, normalText(field, string(normalJSON(raw)))...)
		}
	}
	p.paths = leavingTexts(fields)
	return p
}

// readWorkspaces reads a list of patterns, or the object of yarn classic with one.
func (p *packageFile) readWorkspaces(raw json.RawMessage) {
	if raw == nil || string(raw) == "null" {
		return
	}
	var object struct{ Packages []string }
	switch {
	case json.Unmarshal(raw, &p.workspaces) == nil:
		p.isRoot = true
	case json.Unmarshal(raw, &object) == nil:
		p.workspaces, p.isRoot = object.Packages, true
	}
}

func textField(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// textFields reads an object, of which values that are no texts are left out.
func textFields(raw json.RawMessage) map[string]string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	texts := make(map[string]string, len(object))
	for name, value := range object {
		var text string
		if json.Unmarshal(value, &text) == nil {
			texts[name] = text
		}
	}
	return texts
}

// normalJSON returns a value with its keys in order and without white space.
func normalJSON(raw json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	normal, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return normal
}

// lineOf returns the line of a mistake that encoding/json reports, 1 if it does not say where.
func lineOf(content []byte, err error) int {
	read := int64(0) // with the byte that is wrong
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		read = syntax.Offset
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		read = kind.Offset
	}
	return textline.At(content, int(read)-1)
}

// leavingTexts returns the texts of a manifest that can hold a path to another folder: those with "../" and those with
// a protocol that stands for a folder. Names of fields count as texts: exports and browser map paths.
func leavingTexts(fields map[string]json.RawMessage) []string {
	found := map[string]bool{}
	var visit func(value any)
	note := func(text string) {
		if strings.Contains(text, "..") || isFolderProtocol(text) {
			found[text] = true
		}
	}
	visit = func(value any) {
		switch v := value.(type) {
		case string:
			note(v)
		case []any:
			for _, one := range v {
				visit(one)
			}
		case map[string]any:
			for name, one := range v {
				note(name)
				visit(one)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var value any
		if json.Unmarshal(fields[name], &value) == nil {
			visit(value)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// folderProtocols begin the range of a dependency that is a folder or an archive of the repository.
var folderProtocols = []string{"file:", "link:", "portal:", "exec:", "workspace:", "patch:"}

func isFolderProtocol(text string) bool {
	return slices.ContainsFunc(folderProtocols, func(protocol string) bool { return strings.HasPrefix(text, protocol) })
}
