package gograph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"landfall.build/platform/buildgraph/textline"
)

// moduleFile is the meaning of a go.mod or go.work. It rests on the content
// alone.
type moduleFile struct {
	// path is the module's; empty for a go.work.
	path string
	// language holds the go, toolchain and godebug lines.
	language []string
	// goVersion is that of the go line, or empty.
	goVersion string
	requires  []module.Version
	replaces  []replacement
	excludes  []module.Version
	// uses are the folders of a go.work, as they stand there.
	uses []string
	// problem is what is wrong, with the line but without the file's name.
	problem string
}

// replacement is a replace directive.
type replacement struct {
	old, new module.Version
	// dir is the folder that a relative new path starts from.
	dir string
}

func parseModuleFile(content []byte) *moduleFile {
	f, err := modfile.Parse("", content, nil)
	if err != nil {
		return &moduleFile{problem: problemOf(content, err)}
	}
	m := &moduleFile{}
	if f.Module == nil {
		return &moduleFile{problem: "1: there is no module line; add one"}
	}
	m.path = f.Module.Mod.Path
	if err := module.CheckImportPath(m.path); err != nil {
		return &moduleFile{problem: fmt.Sprintf("1: %v; correct the module line", err)}
	}
	if len(f.Require) > maxRequirements || len(f.Replace) > maxRequirements || len(f.Exclude) > maxRequirements {
		return &moduleFile{problem: fmt.Sprintf("1: more than %d lines of one kind", maxRequirements)}
	}
	m.readLanguage(f.Go, f.Toolchain, f.Godebug)
	for _, r := range f.Require {
		m.requires = append(m.requires, r.Mod)
	}
	for _, r := range f.Replace {
		m.replaces = append(m.replaces, replacement{old: r.Old, new: r.New})
	}
	for _, e := range f.Exclude {
		m.excludes = append(m.excludes, e.Mod)
	}
	return m
}

func parseWorkFile(content []byte) *moduleFile {
	f, err := modfile.ParseWork("", content, nil)
	if err != nil {
		return &moduleFile{problem: problemOf(content, err)}
	}
	m := &moduleFile{}
	m.readLanguage(f.Go, f.Toolchain, f.Godebug)
	for _, r := range f.Replace {
		m.replaces = append(m.replaces, replacement{old: r.Old, new: r.New})
	}
	for _, u := range f.Use {
		m.uses = append(m.uses, u.Path)
	}
	slices.Sort(m.uses)
	return m
}

func (m *moduleFile) readLanguage(version *modfile.Go, toolchain *modfile.Toolchain, godebug []*modfile.Godebug) {
	if version != nil {
		m.goVersion = version.Version
		m.language = append(m.language, "go "+version.Version)
	}
	if toolchain != nil {
		m.language = append(m.language, "toolchain "+toolchain.Name)
	}
	for _, g := range godebug {
		m.language = append(m.language, "godebug "+g.Key+"="+g.Value)
	}
}

// problemOf returns the first mistakes, each with its line, in one line.
func problemOf(content []byte, err error) string {
	var list modfile.ErrorList
	if !errors.As(err, &list) {
		return "1: " + oneLine(err.Error())
	}
	var texts []string
	for _, e := range list[:min(len(list), 3)] {
		e.Filename = ""
		e.Pos.Line = min(e.Pos.Line, textline.At(content, len(content)))
		// Where one mistake names another place it does so as :5:1, without a file.
		texts = append(texts, strings.ReplaceAll(strings.TrimPrefix(oneLine(e.Error()), ":"), " at :", " at "))
	}
	return strings.Join(texts, "; ")
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

// lines returns requirements, replacements and exclusions in their one form.
func (m *moduleFile) lines() []string {
	var lines []string
	for _, r := range m.requires {
		lines = append(lines, fmt.Sprintf("require %q %q", r.Path, r.Version))
	}
	for _, r := range m.replaces {
		lines = append(lines, fmt.Sprintf("replace %q %q %q %q", r.old.Path, r.old.Version, r.new.Path, r.new.Version))
	}
	for _, e := range m.excludes {
		lines = append(lines, fmt.Sprintf("exclude %q %q", e.Path, e.Version))
	}
	slices.Sort(lines)
	return lines
}

// sumFile is a go.sum: its lines by module path, each "version hash".
type sumFile map[string][]string

func parseSumFile(content []byte) sumFile {
	sums := make(sumFile)
	for line := range strings.Lines(string(content)) {
		if words := strings.Fields(line); len(words) == 3 {
			sums[words[0]] = append(sums[words[0]], words[1]+" "+words[2])
		}
	}
	return sums
}

// of returns the lines about one version, sorted.
func (s sumFile) of(version module.Version) []string {
	var lines []string
	for _, line := range s[version.Path] {
		if v, _, _ := strings.Cut(line, " "); v == version.Version || v == version.Version+"/go.mod" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// vendorFile is a vendor/modules.txt: the lines about each module, by its path. It is empty where the vendor folder
// has none.
type vendorFile map[string][]string

func parseVendorFile(content []byte) vendorFile {
	modules := make(vendorFile)
	current := ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			current, _, _ = strings.Cut(rest, " ")
		}
		if line == workspaceMark || current != "" && line != "" {
			modules[current] = append(modules[current], line)
		}
	}
	return modules
}

// workspaceMark is the first line of a modules.txt that was made for a workspace. Go uses a vendor folder only
// for what it was made for.
const workspaceMark = "## workspace"

func (v vendorFile) ofWorkspace() bool { return len(v[""]) > 0 }

// marks returns what a modules.txt says of requirements, replacements and go lines. Where they are not those of go.mod, go
// refuses every package.
func (v vendorFile) marks() map[string]bool {
	marks := map[string]bool{}
	for _, lines := range v {
		var of module.Version
		for _, line := range lines {
			if rest, ok := strings.CutPrefix(line, "# "); ok {
				old, new, replaced := strings.Cut(rest, "=>")
				of = versionOf(old)
				if replaced {
					marks[replacedMark(of, versionOf(new))] = true
				}
			} else if notes, ok := strings.CutPrefix(line, "## "); ok {
				for note := range strings.SplitSeq(notes, ";") {
					if strings.TrimSpace(note) == "explicit" {
						marks[requiredMark(of)] = true
					}
				}
			}
		}
	}
	return marks
}

// goVersions returns those of the modules that the folder holds.
func (v vendorFile) goVersions() []string {
	var versions []string
	for _, lines := range v {
		for _, line := range lines {
			notes, _ := strings.CutPrefix(line, "## ")
			for note := range strings.SplitSeq(notes, ";") {
				if version, ok := strings.CutPrefix(strings.TrimSpace(note), "go "); ok {
					versions = append(versions, version)
				}
			}
		}
	}
	return versions
}

func versionOf(text string) module.Version {
	var of module.Version
	if words := strings.Fields(text); len(words) > 0 {
		of.Path, of.Version = words[0], strings.Join(words[1:], " ")
	}
	return of
}

func requiredMark(of module.Version) string { return "requires " + of.String() }

func replacedMark(old, new module.Version) string {
	return "replaces " + old.String() + " by " + new.String()
}
