package nodegraph

import (
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// noTest is in the test script that npm gives a new package, which always fails.
const noTest = "no test specified"

// checkScripts are the names by which packages call the check of their types.
var checkScripts = []string{"typecheck", "type-check", "check-types", "check:types"}

// hasTest reports whether a package has tests to run. The root of a workspace that only has its members run theirs has
// none: these have targets of their own.
func (p *pack) hasTest() bool {
	script := p.file.scripts["test"]
	return script != "" && !strings.Contains(script, noTest) && !p.delegates("test")
}

// buildRuns returns what has to run for a package: the build scripts of the members that it needs, its own, and its
// check of types. There is nothing to run for a package that has neither.
func (p *pack) buildRuns() []string {
	var own []string
	if p.builds() {
		own = append(own, p.buildRun)
	}
	for _, name := range checkScripts {
		if p.file.scripts[name] != "" && !p.delegates(name) {
			own = append(own, run(p, name))
		}
	}
	if len(own) == 0 {
		return nil
	}
	return append(p.neededBuilds(), own...)
}

// testRuns returns what has to run for the tests of a package.
func (p *pack) testRuns() []string {
	runs := p.neededBuilds()
	if p.file.scripts["build"] != "" {
		runs = append(runs, p.buildRun) // That of a workspace's root, too: tests of all members may need it.
	}
	return append(runs, run(p, "test"))
}

func run(p *pack, script string) string { return relativeTo(p.project.dir, p.dir) + ":" + script }

// builds reports whether a package has a build of its own.
func (p *pack) builds() bool { return p.file.scripts["build"] != "" && !p.delegates("build") }

// neededBuilds returns the builds of the members that a package depends on, each after those that it needs. A cycle is
// cut at the package that was reached first.
func (p *pack) neededBuilds() []string {
	var runs []string
	type frame struct {
		pack *pack
		next int
	}
	seen := map[*pack]bool{p: true}
	for stack := []frame{{p, 0}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.next == len(top.pack.file.requires) {
			if top.pack != p && top.pack.builds() && !top.pack.isRoot() {
				runs = append(runs, top.pack.buildRun)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		name := top.pack.file.requires[top.next].name
		top.next++
		for _, member := range p.project.byName[name] {
			if !seen[member] {
				seen[member] = true
				stack = append(stack, frame{member, 0})
			}
		}
	}
	return runs
}

// delegates reports whether a script of a workspace's root does nothing but have scripts of members run.
func (p *pack) delegates(script string) bool {
	return p.isRoot() && p.project.isWorkspace() && p.onlyDelegates(script, 0)
}

// orchestrators are programs that run scripts of members.
var orchestrators = map[string]bool{"turbo": true, "nx": true, "lerna": true, "lage": true, "wsrun": true, "ultra": true}

func (p *pack) onlyDelegates(script string, depth int) bool {
	text := p.file.scripts[script]
	if text == "" || depth > 8 || strings.ContainsAny(text, "`$()<>|") && !strings.Contains(text, "||") {
		return false
	}
	for _, hook := range []string{"pre", "post"} {
		if p.file.scripts[hook+script] != "" && !p.onlyDelegates(hook+script, depth+1) {
			return false
		}
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '&' || r == ';' || r == '|' || r == '\n' })
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(part string) bool { return !p.partDelegates(part, depth) })
}

// partDelegates reports whether one command of a script only runs scripts of members that steps of their targets run.
func (p *pack) partDelegates(part string, depth int) bool {
	words := strings.Fields(part)
	for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "cross-env" || words[0] == "npx" || words[0] == "exec") {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	manager, rest := words[0], words[1:]
	switch {
	case manager == "echo":
		return true
	case orchestrators[manager]:
		return runsVerified(rest)
	case lockNames[manager] == nil || len(rest) == 0:
		return false
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(rest, func(word string) bool {
			name, _, _ := strings.Cut(word, "=")
			return slices.Contains(options, name)
		})
	}
	switch {
	case manager == npm && has("-w", "-ws", "--workspace", "--workspaces") && !has("--include-workspace-root", "-iwr"),
		manager == pnpm && (has("-r", "--recursive", "--filter", "-F") || rest[0] == "recursive") && !has("--include-workspace-root"),
		manager == bun && has("--filter"),
		manager == yarn && (rest[0] == "workspaces" || rest[0] == "workspace"):
		return runsVerified(rest)
	}
	if (rest[0] == "run" || rest[0] == "exec" || rest[0] == "dlx") && len(rest) > 1 {
		rest = rest[1:]
	}
	if orchestrators[rest[0]] && p.file.scripts[rest[0]] == "" {
		return runsVerified(rest[1:])
	}
	return p.onlyDelegates(rest[0], depth+1)
}

// running are the words before the names of scripts, valued those that are followed by a word of their own.
var (
	running = map[string]bool{"run": true, "run-script": true, "run-many": true, "affected": true, "recursive": true, "workspaces": true, "foreach": true}
	valued  = map[string]bool{
		"workspace": true, "-w": true, "--workspace": true, "--filter": true, "-F": true, "--from": true, "--include": true, "--exclude": true,
		"--scope": true, "--ignore": true, "--concurrency": true, "--projects": true,
	}
)

// runsVerified reports whether the words behind a program that runs scripts of members name such scripts alone that steps of
// members' own targets run. What is not understood is taken for another script.
func runsVerified(words []string) bool {
	found := false
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		word := strings.Trim(words[i], `'"`)
		option, value, _ := strings.Cut(word, "=")
		switch {
		case option == "--target" || option == "--targets":
			word = value
		case valued[word]:
			i++
			continue
		case running[word] || strings.HasPrefix(word, "-"):
			continue
		}
		for name := range strings.SplitSeq(word, ",") {
			if name != "" && name != "test" && name != "build" && !slices.Contains(checkScripts, name) {
				return false
			}
			found = found || name != ""
		}
	}
	return found
}

// runScript runs the scripts that are its arguments, each "dir:script", after an install. It says where, since what compilers
// print is relative to that.
const runScript = ` && for run do echo "Entering directory '${run%:*}'"; (cd "${run%:*}" && {manager} run "${run##*:}") || exit 1; done`

// cacheVariables say where package managers keep what they have fetched.
const cacheVariables = "npm_config_cache NPM_CONFIG_CACHE npm_config_store_dir NPM_CONFIG_STORE_DIR pnpm_config_store_dir PNPM_CONFIG_STORE_DIR " +
	"YARN_CACHE_FOLDER YARN_GLOBAL_FOLDER BUN_INSTALL_CACHE_DIR XDG_CACHE_HOME XDG_DATA_HOME"

// sharesNoCache reports whether a project's steps begin with empty caches: package managers take an archive from there by what
// the lock file says of it, whatever the file in the repository is.
func (p *project) sharesNoCache() bool { return p.lock != nil && p.lock.archives }

// begin is what a script begins with.
func (p *project) begin() string {
	switch {
	case p.sharesNoCache():
		return "export CI=true; unset " + cacheVariables + "; "
	case p.manager == npm:
		return "export CI=true; unset npm_config_store_dir; " // pnpm's, of which npm warns
	}
	return "export CI=true; "
}

// defaultRuns returns the command for scripts of a project's members.
func defaultRuns(p *project, name string) []Template {
	script := p.begin() + p.installCommand(false) + strings.Replace(runScript, "{manager}", p.manager, 1)
	return []Template{{Name: name, Argv: []string{"sh", "-c", script, "landfall", "{runs}"}}}
}

func defaultInstall(p *project) []Template {
	return []Template{{Name: "install", Argv: []string{"sh", "-c", p.begin() + p.installCommand(!p.runsOnInstall())}}}
}

// installCommand returns the command that installs exactly what the lock file pins.
func (p *project) installCommand(withoutScripts bool) string {
	command, quiet := "", " --ignore-scripts"
	switch {
	case p.manager == npm && p.lockFile != "":
		command = "npm ci --no-audit --no-fund"
	case p.manager == npm:
		command = "npm install --no-audit --no-fund --no-package-lock"
	case p.manager == pnpm && p.lockFile != "":
		command = "pnpm install --frozen-lockfile"
	case p.manager == pnpm:
		command = "pnpm install --no-frozen-lockfile --no-lockfile"
	case p.manager == bun && p.lockFile != "":
		command = "bun install --frozen-lockfile"
	case p.manager == bun:
		command = "bun install --no-save"
	case p.isBerry() && p.lockFile == "":
		command, quiet = "yarn install --no-immutable", " --mode=skip-build"
	case p.isBerry():
		command, quiet = "yarn install --immutable", " --mode=skip-build"
	case p.lockFile != "":
		command = "yarn install --frozen-lockfile --non-interactive"
	default:
		command = "yarn install --no-lockfile --non-interactive"
	}
	if withoutScripts {
		command += quiet
	}
	return command
}

// isBerry reports whether a project of yarn is one of version 2 or later.
func (p *project) isBerry() bool {
	if p.lock != nil && p.lock.format == yarnLock {
		return p.lock.settings != nil
	}
	return p.root == nil || !strings.HasPrefix(p.root.file.manager, "yarn@1")
}

// commands applies templates: those that are set, or those of the default. With a package and nothing to run there are
// none.
func (a *assembler) commands(set, standard []Template, project *project, p *pack, runs []string) []targets.Command {
	if set == nil {
		set = standard
	}
	if a.runs += len(runs); len(set) == 0 || p != nil && len(runs) == 0 || a.runs > maxEdges {
		return nil
	}
	dir, name := ".", ""
	if p != nil {
		dir, name = relativeTo(project.dir, p.dir), p.file.name
	}
	fields := strings.NewReplacer("{dir}", dir, "{name}", name, "{project}", dot(project.dir), "{manager}", project.manager)
	commands := make([]targets.Command, len(set))
	for i, t := range set {
		c := targets.Command{Name: t.Name, Dir: project.dir, Timeout: t.Timeout}
		if project.sharesNoCache() {
			c.Env = []string{"npm_config_cache="} // npm takes the one in HOME
		}
		if t.Dir != "" {
			if c.Dir = fields.Replace(t.Dir); c.Dir == "." {
				c.Dir = ""
			}
		}
		for _, arg := range t.Argv {
			if arg == "{runs}" {
				c.Argv = append(c.Argv, runs...)
			} else {
				c.Argv = append(c.Argv, fields.Replace(arg))
			}
		}
		commands[i] = c
	}
	return commands
}
