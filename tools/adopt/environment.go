package adopt

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// variable is one that steps see.
type variable struct{ name, value string }

// environment is what steps need: they see nothing of the service's own environment, and an empty HOME.
type environment struct {
	path string
	// settings name registries and certificates, as the user's tools have them.
	settings []variable
	// notes are sentences about what steps will miss.
	notes []string
}

// caches are the standard caches by the programs that use them.
var caches = map[string][]string{
	"go": {"go-build", "go-mod"}, "npm": {"npm"}, "cargo": {"cargo"}, "python": {"pip"}, "python3": {"pip"}, "pip": {"pip"},
	"uv": {"uv"}, "poetry": {"poetry"}, "pnpm": {"pnpm"}, "yarn": {"yarn"}, "bun": {"bun"},
	"mvn": {"maven"}, "gradle": {"gradle"},
}

// wrappers are scripts of a repository that fetch a program in the version that it wants.
var wrappers = map[string]string{"./mvnw": "mvn", "./gradlew": "gradle"}

// startsWrapped reports whether a line of the shell starts a program, or its wrapper.
func startsWrapped(line, program string) bool {
	return slices.Contains(programsOf(line), program) ||
		slices.ContainsFunc(strings.Fields(line), func(word string) bool { return wrappers[word] == program })
}

// cachesOf returns the standard caches that the programs of a line of the shell use, sorted.
func cachesOf(line string) []string {
	var names []string
	for program, list := range caches {
		if startsWrapped(line, program) {
			names = append(names, list...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// environmentFor returns what steps need for some tools.
func environmentFor(ctx context.Context, m machine) environment {
	e := environment{path: m.pathOfSteps()}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return m.Tools[name].Path != "" })
	}
	if has("go") {
		e.goSettings(ctx, m.Tools["go"].Path)
		e.takeOver("GIT_SSL_CAINFO")
	}
	if has("npm", "pnpm", "yarn", "bun") {
		e.npmSettings()
		e.takeOver("NODE_EXTRA_CA_CERTS")
	}
	if has("cargo") {
		e.cargoSettings(ctx, m.Tools["cargo"].Path)
		e.takeOver("CARGO_HTTP_CAINFO")
	}
	if has("python", "python3", "uv", "poetry") {
		e.pipSettings(ctx, cmp.Or(m.Tools["python"].Path, m.Tools["python3"].Path))
		e.takeOver("UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_CERT", "REQUESTS_CA_BUNDLE")
	}
	if has("uv") {
		e.takeOver("UV_LINK_MODE")
		e.set("UV_LINK_MODE", "copy", "") // steps see the cache and their environment as two filesystems
	}
	if has("mvn", "gradle") {
		e.takeOver("JAVA_HOME")
		for _, name := range []string{".m2/settings.xml", ".gradle/gradle.properties", ".gradle/init.gradle"} {
			if file := inHome(name); file != "" {
				e.notes = append(e.notes, "Maven or Gradle reads "+file+" when you run it; steps do not have it. Put what they need into the repository (.mvn/maven.config, gradle.properties), and passwords under steps.secrets.")
			}
		}
	}
	if file := inHome(".bazelrc"); has("bazel") && file != "" {
		e.notes = append(e.notes, "Bazel reads "+file+" when you run it; steps do not have it. Move what they need to the repository's .bazelrc.")
	}
	if has("go", "cargo", "python", "python3", "npm", "pnpm", "yarn", "bun", "uv", "poetry") {
		e.takeOver("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
	}
	return e
}

// mavenWithoutCache notes a command that has Maven keep what it fetches in the home folder. Java finds that by the system's list of
// users, and not by HOME, and steps have no right to write there.
func (e *environment) mavenWithoutCache(commands []string) {
	for _, command := range commands {
		if startsWrapped(command, "mvn") && !strings.Contains(command, "maven.repo.local") {
			e.notes = append(e.notes, `Maven keeps what it fetches in your home folder, where steps cannot write: it fails. With -Dmaven.repo.local="$MAVEN_REPO_LOCAL" in the command it uses the cache maven.`)
			return
		}
	}
}

// mostRead bounds how many manifests are read for what they ask of git.
const mostRead = 200

// gitAskers are what manifests name that asks git something, and the variable that has it do without.
var gitAskers = []struct{ file, text, variable, value string }{
	{"pyproject.toml", "setuptools-scm", "SETUPTOOLS_SCM_PRETEND_VERSION", "0.0.0"},
	{"pyproject.toml", "setuptools_scm", "SETUPTOOLS_SCM_PRETEND_VERSION", "0.0.0"},
	{"pyproject.toml", "hatch-vcs", "SETUPTOOLS_SCM_PRETEND_VERSION", "0.0.0"},
	{"setup.py", "use_scm_version", "SETUPTOOLS_SCM_PRETEND_VERSION", "0.0.0"},
	{"pyproject.toml", "poetry-dynamic-versioning", "POETRY_DYNAMIC_VERSIONING_BYPASS", "0.0.0"},
	{"package.json", "\"husky\"", "HUSKY", "0"},
	{"package.json", "\"lefthook\"", "LEFTHOOK", "0"},
}

// gitInScript is a script that npm runs at an install and that asks git something.
var gitInScript = regexp.MustCompile(`"(?:preinstall|install|postinstall|prepare)"\s*:\s*"[^"]*\bgit\s`)

// doWithoutGit has tools that ask git do without, since a step's checkout is no repository.
func (e *environment) doWithoutGit(r reader) {
	left := mostRead
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		name := path.Base(file)
		if name != "pyproject.toml" && name != "setup.py" && name != "package.json" {
			continue
		}
		if left--; left < 0 {
			return
		}
		text := r.read(r.ctx, file)
		for _, asker := range gitAskers {
			if asker.file == name && strings.Contains(text, asker.text) {
				e.set(asker.variable, asker.value, "")
			}
		}
		if name == "package.json" && gitInScript.MatchString(text) {
			e.notes = append(e.notes, "A script of "+file+" that an install runs starts git, and steps have no .git: it fails unless it passes without, as `git rev-parse --git-dir && git …; true` does.")
		}
	}
}

// givenCaches returns the caches that steps of a queue with these adapters have anyway.
func givenCaches(uses []configuration.AdapterUse) []string {
	queue := configuration.NewQueue("queue", configuration.Defaults{Workers: 1})
	buildgraph.SetAdapters(&queue.Analysis, uses)
	return queue.CachesOf()
}

// systemFolders are where the programs of every system are.
var systemFolders = []string{"/usr/local/bin", "/usr/bin", "/bin"}

// pathOfSteps returns PATH for steps: the folders of the tools, in the order of the user's PATH, and those of the system.
func (m machine) pathOfSteps() string {
	var folders []string
	for _, t := range m.Tools {
		if folder := filepath.Dir(t.Path); t.Path != "" && !slices.Contains(folders, folder) && !slices.Contains(systemFolders, folder) {
			folders = append(folders, folder)
		}
	}
	slices.SortFunc(folders, func(a, b string) int {
		if i, j := slices.Index(m.folders, a), slices.Index(m.folders, b); i != j {
			return i - j // what stands behind a shim is in no folder of PATH, and comes first
		}
		return strings.Compare(a, b)
	})
	return strings.Join(append(folders, systemFolders...), ":")
}

// set adds a setting, unless it has a password, which belongs in no file.
func (e *environment) set(name, value, from string) {
	if value == "" || strings.ContainsAny(value, "\n\x00") || slices.ContainsFunc(e.settings, func(v variable) bool { return v.name == name }) {
		return
	}
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		if parsed, err := url.Parse(word); err == nil && parsed.User != nil {
			e.notes = append(e.notes, name+" is set in "+from+" with a user name in it, which is not copied. Steps can have it as one of steps.secrets.")
			return
		}
	}
	e.settings = append(e.settings, variable{name, value})
}

// takeOver adds variables of the user's environment.
func (e *environment) takeOver(names ...string) {
	for _, name := range names {
		e.set(name, os.Getenv(name), "your environment")
	}
}

// registriesOfGo are the variables that set where the go command fetches modules.
var registriesOfGo = strings.Fields("GOPROXY GOPRIVATE GONOPROXY GONOSUMDB GOSUMDB GOINSECURE GOVCS")

func (e *environment) goSettings(ctx context.Context, program string) {
	for _, line := range lines(ctx, program, "env", "-changed") {
		name, value, _ := strings.Cut(line, "=")
		if slices.Contains(registriesOfGo, name) {
			e.set(name, strings.Trim(value, `'"`), "`go env`")
		}
	}
}

func (e *environment) npmSettings() {
	e.takeOver("npm_config_registry", "NPM_CONFIG_REGISTRY")
	file := inHome(".npmrc")
	if file == "" {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		switch name, value = strings.TrimSpace(name), strings.TrimSpace(value); {
		case name == "registry":
			e.set("npm_config_registry", value, file)
		case strings.HasSuffix(name, ":registry"), strings.Contains(name, "_auth"):
			e.notes = append(e.notes, "npm reads "+name+" from "+file+"; steps do not have that file. Put registries of scopes into the repository's .npmrc, and tokens under steps.secrets.")
		}
	}
}

func (e *environment) cargoSettings(ctx context.Context, cargo string) {
	if rustup := filepath.Join(filepath.Dir(cargo), "rustup"); lookFor("rustup", []string{filepath.Dir(rustup)}) != "" {
		// This cargo is rustup's: without RUSTUP_HOME it looks for toolchains in HOME, which is empty in steps.
		e.set("RUSTUP_HOME", firstLine(ctx, rustup, "show", "home"), "rustup")
	}
	for _, name := range []string{".cargo/config.toml", ".cargo/config"} {
		if file := inHome(name); file != "" {
			e.notes = append(e.notes, "cargo reads "+file+" when you run it; steps do not have it. Put what they need (registries, for instance) into .cargo/config.toml of the repository, or into the folder CARGO_HOME.")
		}
	}
}

// registriesOfPip are pip's settings of where packages come from, and the variables for them.
var registriesOfPip = map[string]string{
	"index-url": "PIP_INDEX_URL", "extra-index-url": "PIP_EXTRA_INDEX_URL", "find-links": "PIP_FIND_LINKS",
	"trusted-host": "PIP_TRUSTED_HOST", "cert": "PIP_CERT", "no-index": "PIP_NO_INDEX",
}

func (e *environment) pipSettings(ctx context.Context, python string) {
	for _, line := range lines(ctx, python, "-m", "pip", "config", "list") {
		name, value, _ := strings.Cut(line, "=")
		if _, key, scoped := strings.Cut(strings.TrimPrefix(name, ":env:"), "."); scoped {
			name = key
		}
		if variable := registriesOfPip[name]; variable != "" {
			e.set(variable, strings.Trim(value, `'"`), "pip's configuration")
		}
	}
}

// inHome returns the path of a file of the user, "" if there is none.
func inHome(name string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	file := filepath.Join(home, name)
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}

// bazelCommands returns the commands that verify a rule. Their output root and cache outlive steps: without them each step
// would unpack Bazel and build everything again.
func bazelCommands(data string) (build, test []string) {
	folders := bazelFolders(data)
	program := []string{"bazel", "--output_user_root=" + folders[0]}
	flags := []string{"--noshow_progress", "--disk_cache=" + folders[1]}
	build = slices.Concat(program, []string{"build"}, flags, []string{"--", "{label}"})
	test = slices.Concat(program, []string{"test"}, flags, []string{"--test_output=errors", "--", "{label}"})
	return build, test
}

// bazelFolders are the output root and the cache.
func bazelFolders(data string) []string {
	return []string{filepath.Join(data, "tools", "bazel"), filepath.Join(data, "tools", "bazel-disk")}
}

// hasAdapter reports whether an adapter is in use.
func hasAdapter(uses []configuration.AdapterUse, adapter configuration.Adapter) bool {
	return slices.ContainsFunc(uses, func(use configuration.AdapterUse) bool { return use.Adapter == adapter })
}
