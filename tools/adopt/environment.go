package adopt

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/platform/configuration"
)

// variable is one that steps see.
type variable struct{ name, value string }

// environment is what steps need, since they see nothing of whoever starts the service and have an empty HOME.
type environment struct {
	path string
	// caches are folders that outlive steps, settings what the user's tools are told of registries and certificates.
	caches, settings []variable
	// notes are sentences about what steps will miss.
	notes []string
}

// environmentFor returns what steps need for some tools.
func environmentFor(ctx context.Context, m machine, data string) environment {
	e := environment{path: m.pathOfSteps()}
	uses := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return m.Tools[name].Path != "" })
	}
	cache := func(name string, folder ...string) {
		e.caches = append(e.caches, variable{name, filepath.Join(append([]string{data, "caches"}, folder...)...)})
	}
	if uses("go") {
		cache("GOCACHE", "go-build")
		cache("GOMODCACHE", "go-mod")
		e.goSettings(ctx, m.Tools["go"].Path)
		e.takeOver("GIT_SSL_CAINFO")
	}
	if uses("npm", "pnpm", "yarn") {
		cache("npm_config_cache", "npm")
		e.npmSettings()
		e.takeOver("NODE_EXTRA_CA_CERTS")
	}
	if uses("yarn") {
		cache("YARN_CACHE_FOLDER", "yarn")
	}
	if uses("cargo") {
		cache("CARGO_HOME", "cargo")
		e.cargoSettings(ctx, m.Tools["cargo"].Path)
		e.takeOver("CARGO_HTTP_CAINFO")
	}
	if uses("python3") {
		cache("PIP_CACHE_DIR", "pip")
		e.pipSettings(ctx, m.Tools["python3"].Path)
		e.takeOver("PIP_CERT", "REQUESTS_CA_BUNDLE")
	}
	if uses("uv") {
		cache("UV_CACHE_DIR", "uv")
	}
	if uses("poetry") {
		cache("POETRY_CACHE_DIR", "poetry")
	}
	if file := inHome(".bazelrc"); uses("bazel") && file != "" {
		e.notes = append(e.notes, "Bazel reads "+file+" when you run it; steps do not have it. Move what they need to the repository's .bazelrc.")
	}
	if uses("go", "cargo", "python3", "npm", "pnpm", "yarn", "uv", "poetry") {
		e.takeOver("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
	}
	return e
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
			e.notes = append(e.notes, name+" is set in "+from+" with a user name in it, which is not copied into a file that others read. Set it under steps.environment.variables if this file is yours alone.")
			return
		}
	}
	e.settings = append(e.settings, variable{name, value})
}

// takeOver adds variables of whoever runs the command.
func (e *environment) takeOver(names ...string) {
	for _, name := range names {
		e.set(name, os.Getenv(name), "your environment")
	}
}

// registriesOfGo are the variables by which the go command is told where modules come from.
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
			e.notes = append(e.notes, "npm reads "+name+" from "+file+"; steps do not have that file. Put registries of scopes into the repository's .npmrc, and tokens under steps.environment.variables.")
		}
	}
}

func (e *environment) cargoSettings(ctx context.Context, cargo string) {
	if rustup := filepath.Join(filepath.Dir(cargo), "rustup"); lookFor("rustup", []string{filepath.Dir(rustup)}) != "" {
		// cargo is rustup's there, which looks for toolchains in HOME unless it is told.
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

// bazelCommands returns the commands that verify a rule with an output root and a cache that outlive steps: without, each
// step would unpack Bazel and begin with nothing.
func bazelCommands(data string) (build, test []string) {
	program := []string{"bazel", "--output_user_root=" + filepath.Join(data, "caches", "bazel")}
	flags := []string{"--noshow_progress", "--disk_cache=" + filepath.Join(data, "caches", "bazel-disk")}
	build = slices.Concat(program, []string{"build"}, flags, []string{"--", "{label}"})
	test = slices.Concat(program, []string{"test"}, flags, []string{"--test_output=errors", "--", "{label}"})
	return build, test
}

// usesBazel reports whether Bazel is one of the adapters.
func usesBazel(uses []configuration.AdapterUse) bool {
	return slices.ContainsFunc(uses, func(use configuration.AdapterUse) bool { return use.Adapter == configuration.AdapterBazel })
}
