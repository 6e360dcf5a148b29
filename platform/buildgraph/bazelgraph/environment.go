package bazelgraph

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"landfall.build/engine/lru"
	"landfall.build/platform/gitrepo"
)

// workspaceFiles are, in the root, what holds for the whole workspace.
var workspaceFiles = []string{
	".bazelignore", ".bazeliskrc", ".bazelrc", ".bazelversion", "MODULE.bazel", "MODULE.bazel.lock", "REPO.bazel", "VENDOR.bazel",
	"WORKSPACE", "WORKSPACE.bazel", "WORKSPACE.bzlmod", "tools/bazel", "tools/build_rules/prelude_bazel",
}

// isStarlark returns which of them are read for what they name.
func isStarlark(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(name, "WORKSPACE") || name == "MODULE.bazel" || strings.HasSuffix(name, ".MODULE.bazel") ||
		name == "REPO.bazel" || name == "VENDOR.bazel" || name == "prelude_bazel"
}

// isPin reports whether a file of that name, wherever it is, is one by which rules for a language pin what they
// fetch. Extensions read these without every label being written down.
func isPin(name string) bool {
	switch name {
	case "go.mod", "go.sum", "go.work", "go.work.sum",
		"package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", "yarn.lock", ".npmrc", ".yarnrc", ".yarnrc.yml",
		"Cargo.toml", "Cargo.lock", "Gemfile", "Gemfile.lock", "Pipfile", "Pipfile.lock", "poetry.lock", "pyproject.toml", "uv.lock",
		"maven_install.json", "composer.lock", "Package.resolved", "flake.lock":
		return true
	}
	return strings.HasSuffix(name, "_install.json") || strings.HasSuffix(name, ".bazelrc") || strings.HasSuffix(name, ".MODULE.bazel") ||
		strings.HasPrefix(name, "requirements") && (strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".in"))
}

// isDecisive reports whether what a file holds can decide which rules there are: all other files are only
// sources of them.
func isDecisive(file string) bool {
	_, name := split(file)
	return isBuildFile(name) || isPin(name) || strings.HasSuffix(name, ".bzl") || strings.HasSuffix(name, ".scl") ||
		strings.HasSuffix(name, ".bazel") || slices.Contains(workspaceFiles, file)
}

// mentions is what the files that hold for the whole workspace name in it.
type mentions struct {
	files    map[string]bool // paths that are read or could be
	labels   map[label]bool
	packages map[string]bool // named by a pattern, such as //tools:all
	below    map[string]bool // the same with all packages below, such as //tools/...
	own      map[string]bool // names of the workspace itself
}

// maxStarlark bounds a Starlark file, in bytes; a larger one makes the targets unknown.
const maxStarlark = 16 << 20

// errTooLarge is about a file that Bazel may take and that is not read here.
var errTooLarge = errors.New("too large to be read")

// reader reads the Starlark files of a tree, each once.
type reader struct {
	*snapshot
	repo Repository
	memo *lru.Cache[string, text] // by blob
}

// text returns the tokens of a file, following links; nil if there is none.
func (r *reader) text(ctx context.Context, file string) ([]token, string, error) {
	_, end, ok := r.walk(file)
	if !ok {
		return nil, "", nil
	}
	i := r.find(end)
	if i < 0 || r.entries[i].Kind == gitrepo.Submodule {
		return nil, "", nil
	}
	object := r.entries[i].Object
	if known, ok := r.memo.Get(object); ok {
		return known.tokens, known.raw, nil
	}
	content, err := r.repo.Blob(ctx, object, maxStarlark)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return nil, "", fmt.Errorf("%s: %w (more than %d bytes)", end, errTooLarge, maxStarlark)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", end, err)
	}
	known := text{tokens: tokens(string(content)), raw: string(content)}
	r.memo.Put(object, known, int64(len(known.raw))+64)
	return known.tokens, known.raw, nil
}

// workspace finds what the workspace's own files name: files that external repositories are made of,
// toolchains, extensions.
func (r *reader) workspace(ctx context.Context) (*mentions, error) {
	m := &mentions{files: map[string]bool{}, labels: map[label]bool{}, packages: map[string]bool{}, below: map[string]bool{}, own: map[string]bool{}}
	var starlark, flags []string
	for _, file := range workspaceFiles {
		m.files[file] = true
		if isStarlark(file) {
			starlark = append(starlark, file)
		}
	}
	flags = append(flags, ".bazelrc")
	for _, e := range r.entries {
		_, name := split(e.Path)
		if !isPin(name) {
			continue
		}
		m.files[e.Path] = true
		if isStarlark(e.Path) {
			starlark = append(starlark, e.Path)
		}
		if strings.HasSuffix(name, ".bazelrc") && e.Path != ".bazelrc" {
			flags = append(flags, e.Path)
		}
	}
	if err := r.names(ctx, m); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for len(starlark) > 0 {
		file := starlark[0]
		starlark = starlark[1:]
		if seen[file] {
			continue
		}
		seen[file] = true
		list, _, err := r.text(ctx, file)
		if err != nil {
			return nil, err
		}
		for _, loaded := range m.starlark(r.snapshot, file, list) {
			m.files[loaded] = true
			starlark = append(starlark, loaded)
		}
	}
	for len(flags) > 0 {
		file := flags[0]
		flags = flags[1:]
		if seen[file] {
			continue
		}
		seen[file] = true
		_, raw, err := r.text(ctx, file)
		if err != nil {
			return nil, err
		}
		imported := m.flags(raw)
		for _, i := range imported {
			m.files[i] = true
		}
		flags = append(flags, imported...)
	}
	return m, nil
}

// names finds what the workspace calls itself: workspace(name = …), module(name = …, repo_name = …).
func (r *reader) names(ctx context.Context, m *mentions) error {
	for _, file := range []string{"WORKSPACE", "WORKSPACE.bazel", "WORKSPACE.bzlmod", "MODULE.bazel"} {
		list, _, err := r.text(ctx, file)
		if err != nil {
			return err
		}
		for i := range list {
			if list[i] != (token{tokenWord, "workspace"}) && list[i] != (token{tokenWord, "module"}) {
				continue
			}
			for ; i+2 < len(list) && list[i] != (token{tokenSign, ")"}); i++ {
				if (list[i].text == "name" || list[i].text == "repo_name") && list[i].kind == tokenWord && list[i+2].kind == tokenText {
					m.own[list[i+2].text] = true
				}
			}
		}
	}
	m.own[""] = true
	return nil
}

// starlark notes what a file that makes external repositories names, and gives the .bzl files among it.
func (m *mentions) starlark(s *snapshot, file string, list []token) (loads []string) {
	dir, _ := split(file)
	for i, t := range list {
		if t.kind != tokenText {
			continue
		}
		if l, ok := parseMention(t.text, s.packageOf(dir), m.own); ok {
			if m.label(l) {
				loads = append(loads, l.path())
			}
			continue
		}
		// path = "third_party/x" of a local repository; or a file by its path.
		isPath := i >= 2 && list[i-1] == (token{tokenSign, "="}) && list[i-2] == (token{tokenWord, "path"})
		if len(t.text) > 300 || t.text == "" || strings.ContainsAny(t.text, " \n:*\\\x00@") || path.IsAbs(t.text) {
			continue
		}
		clean := path.Clean(t.text)
		if clean == "." || strings.HasPrefix(clean, "..") {
			continue
		}
		if isPath || strings.ContainsAny(t.text, "./") {
			at := path.Join(dir, clean)
			if isPath {
				at = clean
			} else if _, isFolder := s.folders[at]; isFolder {
				continue // Such as strip_prefix: a folder is meant by path alone.
			}
			m.files[at] = true
		}
	}
	return loads
}

// label notes a label or a pattern, and tells whether it is a .bzl file.
func (m *mentions) label(l label) (load bool) {
	switch {
	case strings.HasSuffix(l.pkg, "/...") || l.pkg == "...":
		m.below[strings.Trim(strings.TrimSuffix(l.pkg, "..."), "/")] = true
	case l.name == "...":
		m.below[l.pkg] = true
	case l.name == "all" || l.name == "*" || l.name == "all-targets":
		m.packages[l.pkg] = true
	case strings.HasSuffix(l.name, ".bzl") || strings.HasSuffix(l.name, ".scl"):
		m.labels[l] = true
		return true
	default:
		m.labels[l] = true
	}
	return false
}

// unaffecting are flags that name targets without making any of them part of another.
var unaffecting = []string{"--instrumentation_filter", "--deleted_packages", "--output_filter", "--test_filter", "--build_tag_filters", "--test_tag_filters"}

// flags notes the labels that a .bazelrc names, and gives the files that it imports.
func (m *mentions) flags(raw string) (imports []string) {
	for line := range strings.Lines(raw) {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.Fields(line) {
			word = strings.Trim(word, `"'`)
			if file, ok := strings.CutPrefix(word, "%workspace%/"); ok {
				imports = append(imports, path.Clean(file))
				continue
			}
			name, value, _ := strings.Cut(word, "=")
			if slices.Contains(unaffecting, name) {
				continue
			}
			for _, text := range append(strings.Split(value, ","), name, strings.TrimPrefix(name, "--")) {
				_, end, _ := strings.Cut(text, "=") // --flag=key=//label
				for _, text := range []string{text, end} {
					text, _, _ = strings.Cut(text, "%") // An aspect: //x:y.bzl%name.
					if l, ok := parseMention(text, "", m.own); ok && strings.Contains(text, "//") {
						m.label(l)
					} else if text == path.Clean(text) && strings.Contains(text, "/") && !strings.ContainsAny(text, "@:") && text[0] != '/' && text[0] != '.' {
						m.files[text] = true // A script, such as --workspace_status_command=tools/status.
					}
				}
			}
		}
	}
	return imports
}

// packageOf returns the folder at or above one that has a BUILD file; the root if none has.
func (s *snapshot) packageOf(dir string) string {
	for {
		if f := s.folders[dir]; dir == "" || f != nil && f.build {
			return dir
		}
		dir, _ = split(dir)
	}
}
