package bazelgraph

import (
	"path"
	"strings"
)

// label is a label of Bazel in canonical form.
type label struct {
	repository string // "" for the workspace itself, else with its @ or @@
	pkg, name  string
}

// String returns //p:n, or @r//p:n.
func (l label) String() string { return l.repository + "//" + l.pkg + ":" + l.name }

// path returns where the label's file is, relative to the workspace.
func (l label) path() string { return path.Join(l.pkg, l.name) }

// parseLabel reads an absolute label, as queries print them: //p:n, //p (short for the name that ends p),
// @r//p:n, @@r//p:n; @// and @@// are the workspace itself. A label may hold any byte that Bazel allows.
func parseLabel(text string) (label, bool) {
	repository, rest, ok := strings.Cut(text, "//")
	if !ok || repository != "" && repository[0] != '@' || strings.ContainsAny(repository, "/:") {
		return label{}, false
	}
	if strings.Trim(repository, "@") == "" {
		repository = ""
	}
	l := label{repository: repository}
	var named bool
	if l.pkg, l.name, named = strings.Cut(rest, ":"); !named {
		l.name = path.Base(l.pkg)
	}
	if l.name == "" || l.pkg == "" && !named || l.pkg != "" && path.Clean(l.pkg) != l.pkg ||
		strings.HasPrefix(l.pkg, "/") || strings.HasPrefix(l.pkg, "..") || strings.ContainsAny(text, "\x00\n") {
		return label{}, false
	}
	return l, true
}

// parseMention reads what a text in a Starlark file or a flag may mean as a label of the workspace: absolute, or
// relative to a package. own are the names by which the workspace calls itself.
func parseMention(text, pkg string, own map[string]bool) (label, bool) {
	if repository, rest, ok := strings.Cut(text, "//"); ok && strings.HasPrefix(repository, "@") {
		if own[strings.TrimLeft(repository, "@")] {
			text = "//" + rest
		}
	} else if strings.HasPrefix(text, ":") {
		text = "//" + pkg + text
	}
	l, ok := parseLabel(text)
	return l, ok && l.repository == ""
}
