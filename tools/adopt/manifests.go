package adopt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/configuration"
)

// manifest is a landfall.yaml to be written for a folder whose build system has no adapter.
type manifest struct {
	// Folder is relative to the root, "." for the root.
	Folder string `json:"folder"`
	// System is what the folder was recognised as.
	System string `json:"system"`
	// Command proves the folder, run in it by sh; "" for a manifest that is an example in comments.
	Command string `json:"command,omitempty"`
	// Sources are patterns below the folder.
	Sources []string `json:"sources"`
}

// File returns the path of the manifest.
func (m manifest) File() string { return path.Join(m.Folder, "landfall.yaml") }

// mark recognises, by a file, a folder whose build system has no adapter, or none in use.
type mark struct {
	system string
	files  []string
	// adapter, where there is one, finds the system's targets; with it in use a folder that it leaves uncovered has none to be written.
	adapter configuration.Adapter
	// command returns the line of the shell that proves the folder, run in it.
	command func(r reader, folder, file string) string
}

// reader reads files of the tree.
type reader struct {
	ctx   context.Context
	files map[string]bool
	read  func(ctx context.Context, file string) string
}

func (r reader) has(folder, file string) bool { return r.files[path.Join(folder, file)] }

func always(command string) func(reader, string, string) string {
	return func(reader, string, string) string { return command }
}

// marks in the order of preference: where a folder has several, the first one counts.
var marks = []mark{
	{"JavaScript", []string{"package.json"}, configuration.AdapterNode, func(r reader, folder, file string) string {
		return cmp.Or(wholeNode(r, folder), packageCommand(r, folder, file))
	}},
	{"Rust", []string{"Cargo.toml"}, configuration.AdapterCargo, always("cargo test")},
	{"Python", []string{"pyproject.toml", "setup.py", "setup.cfg"}, configuration.AdapterPython, pythonCommand},
	{"Maven", []string{"pom.xml"}, "", func(r reader, folder, _ string) string {
		program := "mvn"
		if r.has(folder, "mvnw") {
			program = `MAVEN_USER_HOME="$MAVEN_REPO_LOCAL/.wrapper" ./mvnw`
		}
		return program + ` --batch-mode --quiet -Dmaven.repo.local="$MAVEN_REPO_LOCAL" verify`
	}},
	{"Gradle", []string{"build.gradle", "build.gradle.kts"}, "", func(r reader, folder, _ string) string {
		if r.has(folder, "gradlew") {
			return "./gradlew --no-daemon check"
		}
		return "gradle --no-daemon check"
	}},
	{"CMake", []string{"CMakeLists.txt"}, "", always("cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure")},
	{"Make", []string{"Makefile", "makefile", "GNUmakefile"}, "", makeCommand},
}

// installOf returns the package manager of a folder, and its command that installs.
func installOf(r reader, folder string) (manager, install string) {
	switch {
	case r.has(folder, "pnpm-lock.yaml"):
		return "pnpm", "pnpm install --frozen-lockfile"
	case r.has(folder, "yarn.lock") && strings.Contains(r.read(r.ctx, path.Join(folder, "yarn.lock")), "# yarn lockfile v1\n"):
		return "yarn", "yarn install --frozen-lockfile --non-interactive" // the first yarn, which takes no notice of --immutable
	case r.has(folder, "yarn.lock"):
		return "yarn", "yarn install --immutable"
	case r.has(folder, "package-lock.json"):
		return "npm", "npm ci --no-audit --no-fund"
	}
	return "npm", "npm install --no-audit --no-fund"
}

// packageCommand installs and tests a package of JavaScript.
func packageCommand(r reader, folder, file string) string {
	manager, install := installOf(r, folder)
	var document struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal([]byte(r.read(r.ctx, file)), &document) != nil {
		return install
	}
	for _, script := range []string{"build", "test"} {
		if document.Scripts[script] != "" {
			install += " && " + manager + " run " + script
		}
	}
	return install
}

// makeCommand makes what a Makefile builds, which its tests need not use, and runs its tests.
func makeCommand(r reader, _, file string) string {
	rules := rulesOf(r.read(r.ctx, file))
	find := func(goals ...string) *makeRule {
		for _, goal := range goals {
			if i := slices.IndexFunc(rules, func(rule makeRule) bool { return rule.goal == goal }); i >= 0 {
				return &rules[i]
			}
		}
		return nil
	}
	test, build := find("check", "test"), find("all", "build")
	if test == nil {
		return "make"
	}
	if first := slices.IndexFunc(rules, func(rule makeRule) bool {
		return !strings.HasPrefix(rule.goal, ".") && !strings.Contains(rule.goal, "%")
	}); build == nil && isFile(rules, rules[first]) {
		build = &rules[first] // what make makes without a goal
	}
	if build == nil || build.goal == test.goal || slices.Contains(test.needs, build.goal) {
		return "make " + test.goal
	}
	return "make " + shellQuoted(build.goal) + " && make " + test.goal
}

// isFile reports whether a goal is made of files. One that is said to be phony is not, and one that needs no file may be an action, which
// init must not have run: deploy, clean.
func isFile(rules []makeRule, of makeRule) bool {
	isPhony := slices.ContainsFunc(rules, func(rule makeRule) bool { return rule.goal == ".PHONY" && slices.Contains(rule.needs, of.goal) })
	return !isPhony && !slices.Contains(makeActions, of.goal) && slices.ContainsFunc(of.needs, func(need string) bool { return strings.ContainsAny(need, ".$/%") })
}

// makeActions are the usual names of goals that do something besides making a file.
var makeActions = []string{"clean", "deploy", "dev", "help", "install", "publish", "push", "release", "run", "serve", "start", "upload"}

// propose returns the manifests for files that no target covers: one for each folder that is recognised, for folders of
// shell scripts, and an example in comments for folders of SQL. Where no adapter finds anything, a build system in the
// root may speak for the whole repository.
func propose(r reader, uncovered []string, uses []configuration.AdapterUse) []manifest {
	found := map[string]manifest{}
	left := map[string][]string{} // by folder
	for _, file := range uncovered {
		if m, is := recognised(r, path.Dir(file), uses); is {
			found[m.Folder] = m
			continue
		}
		left[path.Dir(file)] = append(left[path.Dir(file)], file)
	}
	for folder, files := range left {
		if folder == "." {
			continue
		}
		m := manifest{Folder: folder}
		switch {
		case slices.ContainsFunc(files, isScript):
			m.System, m.Sources = "shell scripts", []string{"**/*.sh"}
			m.Command = "find . -name '*.sh' -print0 | xargs -0 -n 1 " + shellOf(r, files) + " -n"
		case slices.ContainsFunc(files, func(f string) bool { return path.Ext(f) == ".sql" }):
			m.System, m.Sources = "SQL", []string{"**/*.sql"}
		default:
			continue
		}
		found[folder] = m
	}
	var list []manifest
	for folder, m := range found {
		sameSystem := func(above string) bool { return found[above].System == m.System }
		if r.has(folder, "landfall.yaml") || anyAbove(folder, sameSystem) {
			continue // a manifest covers it
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b manifest) int { return strings.Compare(a.Folder, b.Folder) })
	return list
}

// recognised returns the manifest of the topmost folder above a file that has a mark.
func recognised(r reader, folder string, uses []configuration.AdapterUse) (manifest, bool) {
	var best manifest
	for ; ; folder = path.Dir(folder) {
		if folder == "." && len(uses) > 0 {
			break // a target of the root would be built for each change
		}
		for _, mark := range marks {
			i := slices.IndexFunc(mark.files, func(name string) bool { return r.has(folder, name) })
			if i < 0 {
				continue
			}
			if hasAdapter(uses, mark.adapter) {
				break
			}
			best = manifest{Folder: folder, System: mark.system, Sources: []string{"**"}, Command: mark.command(r, folder, path.Join(folder, mark.files[i]))}
			break
		}
		if folder == "." {
			break
		}
	}
	return best, best.System != ""
}

func isScript(file string) bool { return path.Ext(file) == ".sh" || path.Ext(file) == ".bash" }

// shellOf returns the shell that checks some scripts: bash if one asks for it.
func shellOf(r reader, files []string) string {
	for _, file := range files {
		line, _, _ := strings.Cut(r.read(r.ctx, file), "\n")
		if isScript(file) && strings.Contains(line, "bash") {
			return "bash"
		}
	}
	return "sh"
}

// text returns the content of the manifest. others reports whether the queue has other adapters.
func (m manifest) text(branch string, others bool) string {
	var b strings.Builder
	name := path.Base(m.Folder)
	if m.Folder == "." {
		name = "everything"
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._+=@~-", r)) {
			return r
		}
		return '-'
	}, name)
	fmt.Fprintf(&b, "# What is built and tested of this folder (%s). It counts once it is on %s.\n", m.System, branch)
	b.WriteString("# All fields: platform/buildgraph/manifest/README.md of Landfall.\n")
	lines := []string{
		"targets:",
		"  - name: " + quoted(name),
		"    # Files whose change has the steps run again: all that they read.",
		"    sources: " + yamlList(m.Sources),
	}
	if others {
		lines = append(lines, "    # Targets that it is made from, as `landfall targets` shows them.", "    # deps: [\"//other\"]")
	}
	lines = append(lines, "    steps:", "      - name: test")
	if m.Command == "" {
		lines = append(lines, "        # Say what proves these files, for instance that they can be applied to an empty database.", "        run: [sh, -c, \"sqlite3 :memory: < schema.sql\"]")
	} else {
		lines = append(lines, "        run: "+yamlList([]string{"sh", "-c", m.Command}))
	}
	if m.Folder != "." {
		lines = append(lines, "        dir: "+quoted(m.Folder))
	}
	if caches := cachesOf(m.Command); len(caches) > 0 {
		lines = append(lines, "        # Folders that outlive the step.", "        caches: "+yamlList(caches))
	}
	if others {
		lines = append(lines, "# Dependencies of targets that other adapters find on these:", "# edges:", "#   - {from: example.com/shop/store, to: [\":"+name+"\"]}")
	}
	for _, line := range lines {
		if m.Command == "" && !strings.HasPrefix(line, "#") {
			line = "# " + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
