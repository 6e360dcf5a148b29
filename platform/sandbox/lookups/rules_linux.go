//go:build amd64 || arm64

package lookups

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"landfall.build/platform/folders"
)

// rule lets a program list, read or look for some of what the folder lacks, without a lookup being recorded.
type rule struct {
	program *regexp.Regexp       // of its name, see process
	file    *regexp.Regexp       // of its executable's path, instead of program
	does    func(p process) bool // what it was started for; nil for anything
	byTools bool                 // only if no code of the folder has started it
	adapter bool                 // only for targets of adapters: Missing.Believe

	all   bool // whatever it looks for
	lists func(w *Watch, p process, folder, lacks string) bool
	reads func(w *Watch, file string) bool                     // files of Missing.Tools
	looks func(w *Watch, p process, q query, path string) bool // for what is not there, or only by its name
}

// rules are the programs that are not believed to depend on all that they look for. A program needs one rule that lets it.
var rules = []rule{
	// rm deletes what it looks for.
	{program: named("rm"), all: true},
	// Python looks for modules, pytest goes through the folders below tests, and make reads the folder that it runs in.
	{program: named(`python.*|make`), lists: shown},
	// Tools of package systems list the folders of packages and members, read all manifests, and link the programs of all members. The
	// adapters know on which of them their targets depend.
	{program: named(packageTools), byTools: true, adapter: true, lists: everywhere, reads: every, looks: programOfMember},
	// setuptools looks for what belongs to a package that uv builds, tests and documents among it.
	{program: named(`python.*`), does: buildsForUV, byTools: true, adapter: true, lists: everywhere, looks: whetherThere},
	// Libraries for tests and build scripts ask cargo where the workspace is.
	{program: named("cargo"), does: describes, adapter: true, lists: everywhere, reads: every},
	// cargo looks for the programs, tests and so on of all members, to build some.
	{program: named("cargo"), lists: ofOtherCrate, looks: whetherThereInOtherCrate},
	// Tests build the program under test. They fail where a package is absent. What code embeds is not looked for by its name.
	{program: named("go"), does: builds, adapter: true, lists: embeddingNothing},
	// Of packages that others import, go asks for no tests.
	{program: named("go"), adapter: true, lists: importedByGo},
	// In a workspace go reads the go.mod of each module, to find packages.
	{program: named("go"), does: findsPackages, adapter: true, reads: ofGo},
	// turbo reads the manifests of all members and the lock file, to find which scripts it runs first.
	{file: programOfTurbo, does: runsScripts, adapter: true, reads: ofNode},
	// nx makes its graph of all members where it is installed, and before it runs scripts.
	{file: regexp.MustCompile(`/node$`), does: isNx, adapter: true, lists: everywhere, reads: ofNode, looks: projectOfNx},
	// esbuild looks for settings in its working directory and above. vite, vitest and tsup start it.
	{file: regexp.MustCompile(`/node_modules/(.*/)?esbuild$`), adapter: true, lists: above},
	// Interpreters read the manifests above the code that they run, or run code that does.
	{file: regexp.MustCompile(`(^|/)(node|bun|deno|corepack|python[0-9.]*|ruby|rustc|rustdoc|clippy-driver|` + packageTools + `)$`), reads: own},
	// Tests of macros read the manifests of their package and of its workspace.
	{file: anyFile, adapter: true, reads: ownOfCargo},
}

var anyFile = regexp.MustCompile("")

// packageTools are the programs, and the scripts of Node, that the tools of package systems consist of.
const packageTools = `go|cargo|uv|npm|npm-cli\.js|npx|npx-cli\.js|pnpm|pnpm\.cjs|pnpm\.mjs|yarn|yarn\.js`

func named(expression string) *regexp.Regexp { return regexp.MustCompile("^(" + expression + ")$") }

func everywhere(*Watch, process, string, string) bool { return true }

func shown(w *Watch, _ process, _, lacks string) bool { return w.shown[lacks] }

func above(w *Watch, p process, folder, _ string) bool {
	within := p.workingDirectory()
	return within != "" && strings.HasPrefix(within+"/", filepath.Join(w.root, folder)+"/")
}

func every(*Watch, string) bool { return true }

func own(w *Watch, file string) bool { return w.forTools[file] }

func ownOfCargo(w *Watch, file string) bool {
	return w.forTools[file] && strings.HasPrefix(path.Base(file), "Cargo.")
}

func ofGo(_ *Watch, file string) bool { return strings.HasPrefix(path.Base(file), "go.") }

var filesOfNode = named(`package\.json|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|pnpm-workspace\.yaml|yarn\.lock|bun\.lockb?`)

func ofNode(_ *Watch, file string) bool { return filesOfNode.MatchString(path.Base(file)) }

// argument returns the first argument that is no option, "" if there is none. Arguments that begin with skip are left out.
func (p process) argument(skip string) string {
	words := p.words()
	for _, word := range words[min(1, len(words)):] {
		if word != "" && !strings.HasPrefix(word, "-") && (skip == "" || !strings.HasPrefix(word, skip)) {
			return word
		}
	}
	return ""
}

// describes reports whether cargo is asked for the workspace and its members. +nightly and the like name a toolchain.
func describes(p process) bool {
	of := p.argument("+")
	return of == "metadata" || of == "locate-project"
}

// builds reports whether go builds packages that it is given by name.
func builds(p process) bool {
	return slices.Contains([]string{"build", "install", "run"}, p.argument("")) &&
		!slices.ContainsFunc(p.words(), func(word string) bool { return strings.Contains(word, "...") })
}

// codeOfGo are the names of files that alter a package for those that import it.
var codeOfGo = regexp.MustCompile(`^go\.mod$|\.(?:go|c|cc|cpp|cxx|m|h|hh|hpp|hxx|f|F|for|f90|s|S|sx|swig|swigcxx|syso)$`)

// importedByGo reports whether go may list a folder of a package that others import: go was told to build or test only packages in its
// working folder and below, and the folder lacks nothing that matters to those that import it.
func importedByGo(w *Watch, p process, folder, _ string) bool {
	within := p.workingDirectory()
	words := p.words()
	if within == "" || w.absent[folder] || w.hollow[folder] || strings.HasPrefix(filepath.Join(w.root, folder)+"/", within+"/") ||
		len(words) < 2 || !slices.Contains([]string{"build", "install", "run", "test", "vet"}, words[1]) {
		return false
	}
	for _, word := range words[2:] {
		below := word == "." || strings.HasPrefix(word, "./") && !slices.Contains(strings.Split(word, "/"), "..")
		outside := path.IsAbs(word) && !strings.HasPrefix(word+"/", w.root+"/")
		if word != "" && !below && !outside && (!strings.HasPrefix(word, "-") || strings.Contains(word, "...") || strings.Contains(word, "coverpkg")) {
			return false
		}
	}
	return !w.lackOfGo().code[folder] && embeddingNothing(w, p, folder, "")
}

// embeddingNothing reports whether //go:embed gives no reason to refuse a list of a folder: no code in it or above it embeds its files, or
// nothing but tests is lacking there.
func embeddingNothing(w *Watch, _ process, folder, _ string) bool {
	if !w.lackOfGo().files[folder] {
		return true
	}
	if len(w.embeds(folder)) > 0 {
		return false
	}
	for below := folder; below != "."; below = path.Dir(below) {
		for _, first := range w.embeds(path.Dir(below)) {
			if is, err := path.Match(first, path.Base(below)); is || err != nil {
				return false
			}
		}
	}
	return true
}

// lackOfGo tells what folders lack. code has those that lack code of their own, other than tests; files has those that lack any file but
// tests, in them or below.
type lackOfGo struct{ code, files map[string]bool }

// lackOfGo returns what folders lack. It computes that once: the workspace may lack nearly all files of the repository.
func (w *Watch) lackOfGo() *lackOfGo {
	if w.forGo != nil {
		return w.forGo
	}
	w.forGo = &lackOfGo{code: map[string]bool{}, files: map[string]bool{}}
	for _, lacks := range []map[string]bool{w.absent, w.empty, w.hollow} {
		for name := range lacks {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			folder := path.Dir(name)
			if codeOfGo.MatchString(path.Base(name)) {
				w.forGo.code[folder] = true
			}
			for ; !w.forGo.files[folder]; folder = path.Dir(folder) {
				w.forGo.files[folder] = true
			}
		}
	}
	return w.forGo
}

// everything is the result of embeds for code that embeds, or may embed, every file beside it.
var everything = []string{"*"}

// embeds returns the first parts of the patterns by which the code of a folder embeds files. It returns everything if a file cannot be read,
// or if there is more than is read or kept.
func (w *Watch) embeds(folder string) []string {
	firsts, known := w.embedding[folder]
	if known {
		return firsts
	}
	firsts = w.readEmbeds(folder)
	if w.embedding == nil {
		w.embedding = map[string][]string{}
	}
	w.embedding[folder] = firsts
	return firsts
}

func (w *Watch) readEmbeds(folder string) (firsts []string) {
	files, err := w.namesIn(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return everything
	}
	read, kept := 0, 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") {
			continue
		}
		text, err := readRegular(filepath.Join(w.root, folder, file.Name()))
		if read += len(text); err != nil || len(text) == mostManifest || read > mostCode {
			return everything
		}
		for _, line := range directive.FindAllSubmatch(text, -1) {
			for pattern := range strings.FieldsSeq(string(line[1])) {
				first, _, _ := strings.Cut(strings.TrimPrefix(strings.Trim(pattern, "\"`"), "all:"), "/")
				kept += len(first)
				if first == "." || first == "*" || kept > mostPatterns || len(firsts) == mostEmbedded {
					return everything
				}
				firsts = append(firsts, strings.Clone(first)) // not with all of its line
			}
		}
	}
	return firsts
}

// namesIn returns the entries of a folder of the watch, if their names are not too many.
func (w *Watch) namesIn(folder string) ([]fs.DirEntry, error) {
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return fs.ReadDir(folders.Bounded(root, mostNames), folder)
}

var directive = regexp.MustCompile(`(?m)^[ \t]*//go:embed[ \t]+(.*)$`)

var aboutModules = regexp.MustCompile(`^--?m(=|$)`)

// findsPackages reports whether go is about packages, and not about modules.
func findsPackages(p process) bool {
	return slices.Contains([]string{"build", "generate", "install", "list", "run", "test", "tool", "vet"}, p.argument("")) &&
		!slices.ContainsFunc(p.words(), aboutModules.MatchString)
}

// otherCommands are the commands of turbo that print or copy what it finds of the workspace.
var otherCommands = named("boundaries|config|generate|gen|info|ls|prune|query|scan")

// runsScripts reports whether turbo runs scripts, and does not print what it found.
func runsScripts(p process) bool {
	of := p.argument("")
	return of != "" && !otherCommands.MatchString(of) && !slices.ContainsFunc(p.words(), func(word string) bool {
		return strings.HasPrefix(word, "--dry") || strings.HasPrefix(word, "--graph")
	})
}

// script returns the absolute path of the script that Node runs, "" if it is not known.
func (p process) script() string {
	words := p.words()
	if len(words) < 2 || path.Base(words[0]) != "node" {
		return ""
	}
	if path.IsAbs(words[1]) {
		return path.Clean(words[1]) // pnpm starts programs by node_modules/.bin/../turbo.
	}
	return path.Join(p.workingDirectory(), words[1])
}

// projectOfNx lets nx look for files, and read the settings of projects that are not there.
func projectOfNx(_ *Watch, _ process, q query, file string) bool {
	return !q.reads || path.Base(file) == "project.json"
}

var (
	programOfTurbo = regexp.MustCompile(`/node_modules/(.*/)?turbo$`)
	scriptOfTurbo  = regexp.MustCompile(`/node_modules/(?:\.bin/turbo|turbo/bin/turbo)$`)
	partOfNx       = regexp.MustCompile(`/node_modules/(?:\.bin/nx|nx/bin/[\w-]+(?:\.js)?)$`)
	scriptOfNx     = regexp.MustCompile(`/node_modules/(?:\.bin/nx|nx/bin/(nx|post-install)(?:\.js)?|nx/src/project-graph/plugins/isolation/(plugin-worker)(?:\.js)?)$`)

	// othersOfNx are the commands of nx that print, change or watch what it finds of the workspace, run scripts of any member, or ask git.
	othersOfNx = named("(affected|dep-graph|format|print|sync|view)(:.*|-.*)?|add|connect|daemon|g|generate|graph|import|init|list|login|mcp|migrate|release|repair|report|reset|run-many|show|watch")
)

// isNx reports whether a process is the script that npm runs where it installs nx, or an nx that runs scripts.
func isNx(p process) bool {
	words := p.words()
	if len(words) < 2 {
		return false
	}
	is := scriptOfNx.FindStringSubmatch(p.script())
	switch {
	case is == nil:
		return false
	case is[1] == "post-install":
		return true
	case is[2] != "": // It reads for the one that started it.
		above, err := parent(p.id)
		return err == nil && above > 1 && isNx(process{id: above})
	}
	of := slices.IndexFunc(words[2:], func(word string) bool { return !strings.HasPrefix(word, "-") })
	return of >= 0 && words[2+of] != "" && !othersOfNx.MatchString(words[2+of]) &&
		!slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "--graph") })
}

// scriptsOfBuilds are the files with code of a project that runs while it is built.
var scriptsOfBuilds = []string{"setup.py", "build.py", "hatch_build.py", "pdm_build.py"}

// buildsForUV reports whether a process is the Python by which uv builds a package without a script of its own.
func buildsForUV(p process) bool {
	words, folder := p.words(), p.workingDirectory()
	return len(words) > 0 && strings.Contains(words[0], "/builds-v0/.tmp") && folder != "" && !slices.ContainsFunc(scriptsOfBuilds, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err == nil
	})
}

func whetherThere(_ *Watch, _ process, q query, _ string) bool { return !q.reads }

// programOfMember reports whether the manifest of the nearest folder above a file names it as a program.
func programOfMember(w *Watch, _ process, _ query, file string) bool {
	for folder := path.Dir(file); ; folder = path.Dir(folder) {
		text, err := readRegular(filepath.Join(w.root, folder, "package.json"))
		if err != nil && folder != "." {
			continue
		}
		var manifest struct {
			Bin         any
			Directories struct{ Bin string }
		}
		if json.Unmarshal(text, &manifest) != nil {
			return false
		}
		is := func(name any) bool { text, _ := name.(string); return text != "" && path.Join(folder, text) == file }
		if bins, several := manifest.Bin.(map[string]any); several {
			return slices.ContainsFunc(slices.Collect(maps.Values(bins)), is)
		}
		bins := path.Join(folder, manifest.Directories.Bin)
		return is(manifest.Bin) || bins != folder && strings.HasPrefix(bins, strings.TrimPrefix(folder+"/", "./")) && strings.HasPrefix(file, bins+"/")
	}
}

// Bounds of what is read of a step: of a manifest, of a command line, of the names in a folder together, and of the code in one, in bytes;
// how many patterns of a folder are kept, and their bytes together.
const (
	mostManifest    = 1 << 20
	mostCommandLine = 1 << 20
	mostNames       = 16 << 20
	mostCode        = 8 << 20
	mostEmbedded    = 10_000
	mostPatterns    = 256 << 10
)

// readRegular returns the content of a file that a step may have made: of no pipe, which would be waited for, nor of a link.
func readRegular(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("no regular file")
	}
	return io.ReadAll(io.LimitReader(file, mostManifest))
}

// lets reports whether a process may make a query of a path: list a folder, read one of the files for tools, or else look for something.
// lacks is the file or folder of Missing for which the path is of interest.
func (r rule) lets(w *Watch, p process, q query, at, lacks string, forTools bool) bool {
	switch {
	case r.adapter && !w.believes,
		r.file == nil && !r.program.MatchString(p.name),
		r.file != nil && (p.file == "" || !r.file.MatchString(p.file)),
		r.does != nil && !r.does(p):
		return false
	case r.all:
	case q.listed && r.lists != nil:
		if !r.lists(w, p, at, lacks) {
			return false
		}
	case forTools && r.reads != nil:
		if !r.reads(w, at) {
			return false
		}
	case !q.listed && !forTools && r.looks != nil:
		if !r.looks(w, p, q, at) {
			return false
		}
	default:
		return false
	}
	return !r.byTools || p.byTools(w.root)
}

// process is a process that looks a path up.
type process struct {
	id   int
	file string // the path of its executable; "" if it is not known
	// name is that of the program, or of the script that Node runs; "" if the folder of the watch holds it, or it is not known.
	name string
}

// releasesOfYarn is the folder in which a repository keeps the yarn that it is used with.
const releasesOfYarn = ".yarn/releases/"

// processOf returns a process by its id.
func processOf(id int, root string) process {
	p := process{id: id}
	var err error
	if p.file, err = os.Readlink(fmt.Sprintf("/proc/%d/exe", id)); err != nil {
		return process{id: id}
	}
	program := p.file
	if path.Base(program) == "node" {
		words := p.words()
		if words == nil {
			return p
		}
		program = words[0]
		if path.Base(program) == "node" && len(words) > 1 {
			if program = words[1]; strings.HasPrefix(program, root+"/"+releasesOfYarn) {
				p.name = "yarn"
				return p
			}
			if !path.IsAbs(program) {
				return p // A script of where it runs.
			}
		}
		program, _, _ = strings.Cut(program, " ") // npm sets the title of its process: "npm run test".
	}
	if !strings.HasPrefix(program, root+"/") {
		p.name = path.Base(program)
	}
	return p
}

// words returns the command line of a process, nil if it is not known.
func (p process) words() []string {
	file, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", p.id))
	if err != nil {
		return nil
	}
	defer file.Close()
	// A process can take any of its memory for its command line, also what it has not touched.
	line, err := io.ReadAll(io.LimitReader(file, mostCommandLine+1))
	if err != nil || len(line) > mostCommandLine {
		return nil
	}
	return strings.Split(string(line), "\x00")
}

// workingDirectory returns the folder in which a process runs, "" if it is not known.
func (p process) workingDirectory() string {
	folder, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.id))
	return folder
}

var (
	ofPackages    = named(packageTools)
	shells        = named("sh|bash|dash")
	commandOption = regexp.MustCompile(`^-[a-z]*c$`) // the command of a shell follows
)

// byTools reports whether whatever started a process is a tool of a package system, one that runs their scripts, or a shell with a command
// of its own. Another program or script of the folder is none.
func (p process) byTools(root string) bool {
	own := os.Getpid()
	for {
		above, err := parent(p.id)
		if err != nil {
			return false
		}
		if above <= 1 || above == own {
			return true
		}
		p = processOf(above, root)
		if words := p.words(); !ofPackages.MatchString(p.name) && !programOfTurbo.MatchString(p.file) &&
			!scriptOfTurbo.MatchString(p.script()) && !partOfNx.MatchString(p.script()) &&
			(!shells.MatchString(p.name) || len(words) < 2 || !commandOption.MatchString(words[1])) {
			return false
		}
	}
}

// parent returns the id of the process that started another.
func parent(process int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, err
	}
	// The name before the state may hold anything.
	var state string
	var above int
	_, err = fmt.Sscan(string(status[bytes.LastIndexByte(status, ')')+1:]), &state, &above)
	return above, err
}
