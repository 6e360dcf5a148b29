//go:build amd64 || arm64

package lookups

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

var (
	buildsOfCargo = named("b|bench|build|c|check|clippy|d|doc|r|run|rustc|rustdoc|t|test")
	nameOfCrate   = named("[A-Za-z0-9_-]+")
	// foundByCargo are the folders of a package in which cargo looks for its programs, examples and so on, and what they are made of.
	foundByCargo = regexp.MustCompile(`^(?:(.*)/)?(?:src/bin|tests|examples|benches)(?:/[^/]+){0,2}$`)
)

// ofOtherCrate reports whether cargo looks into a folder for the targets of a package that it does not build.
func ofOtherCrate(w *Watch, p process, folder, _ string) bool {
	parts := foundByCargo.FindStringSubmatch(folder)
	if parts == nil {
		return false
	}
	crate := cmp.Or(parts[1], ".")
	if !slices.Contains(w.crates, crate) {
		return false
	}
	name, _, err := manifestOfCrate(filepath.Join(w.root, crate))
	built := w.builtByCargo(p)
	return err == nil && name != "" && len(built) > 0 && !slices.Contains(built, name)
}

func whetherThereInOtherCrate(w *Watch, p process, q query, name string) bool {
	return !q.reads && ofOtherCrate(w, p, name, "")
}

// builtByCargo returns the names of the packages that cargo was told to build; nil if it may build others too.
func (w *Watch) builtByCargo(p process) (names []string) {
	if !buildsOfCargo.MatchString(p.argument("+")) {
		return nil
	}
	words := p.words()
	if end := slices.Index(words, "--"); end >= 0 { // What follows is for the program.
		words = words[:end]
	}
	for i, word := range words {
		value, is := strings.CutPrefix(word, "--package=")
		switch {
		case word == "--workspace", word == "--all", strings.HasPrefix(word, "--manifest-path"):
			return nil
		case is:
		case word == "-p", word == "--package":
			value = strings.Join(words[i+1:min(i+2, len(words))], "")
		case strings.HasPrefix(word, "-p"):
			value = strings.TrimPrefix(word[len("-p"):], "=")
		case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "p"):
			return nil // One of several options in a word may be -p.
		default:
			continue
		}
		if value, _, _ = strings.Cut(value, "@"); !nameOfCrate.MatchString(value) {
			return nil // It may be a pattern.
		}
		names = append(names, value)
	}
	if names != nil {
		return names
	}
	for folder := p.workingDirectory(); strings.HasPrefix(folder+"/", w.root+"/"); folder = filepath.Dir(folder) {
		if name, ofWorkspace, err := manifestOfCrate(folder); err == nil {
			if name != "" && !ofWorkspace {
				names = []string{name}
			}
			break
		}
	}
	return names
}

// manifestOfCrate returns the name of the package in a folder, "" if there is none, and whether its manifest is that of a workspace.
func manifestOfCrate(folder string) (name string, ofWorkspace bool, err error) {
	text, err := readRegular(filepath.Join(folder, "Cargo.toml"))
	if err != nil {
		return "", false, err
	}
	var manifest struct {
		Package   struct{ Name string }
		Workspace map[string]any
	}
	err = toml.Unmarshal(text, &manifest)
	return manifest.Package.Name, manifest.Workspace != nil, err
}
