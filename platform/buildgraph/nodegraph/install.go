package nodegraph

import (
	"maps"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// installScripts are what package managers run for the packages of a workspace when they install it.
var installScripts = []string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"}

// addonFile has npm compile an addon when it installs.
const addonFile = "binding.gyp"

// installLines returns the lines of the shell that an install runs of a package, with the scripts that these run in turn.
func (p *pack) installLines() []string {
	var lines []string
	pending, seen := slices.Clone(installScripts), map[string]bool{}
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		if p.file.scripts[name] == "" || seen[name] {
			continue
		}
		seen[name] = true
		lines = append(lines, p.file.scripts[name])
		pending = append(pending, strings.Fields(p.file.scripts[name])...)
	}
	return lines
}

// runsOnInstall reports whether an install runs code of the repository.
func (p *project) runsOnInstall() bool {
	return slices.ContainsFunc(p.members, func(member *pack) bool { return member.hasAddon || len(member.installLines()) > 0 })
}

// addInstallScripts defines what an install runs besides the package manager: it happens in the steps of all targets. A script of
// a member can read all of the member. The root of a workspace holds too much for that: of its scripts the files count that they
// name.
func (a *assembler) addInstallScripts(p *project) {
	node := a.builder.Definition(installedBy(p.dir), nil)
	for _, member := range p.members {
		lines := member.installLines()
		switch {
		case member.hasAddon, len(lines) > 0 && !(member.isRoot() && p.isWorkspace()):
			a.edge(node, a.targetNode(member))
		default:
			for _, line := range lines {
				a.addNamed(viewpoint{node, member, member.dir}, line)
			}
		}
	}
}

// addNamed adds the files that words of a line of the shell name.
func (a *assembler) addNamed(v viewpoint, line string) {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;&|()<>=", r) }) {
		if at, ok := join(v.dir, withoutWildcards(word)); ok && strings.ContainsAny(word, "./") && !strings.ContainsAny(word[:1], "-@/") && !strings.Contains(word, ":") {
			a.addPath(v, at)
		}
	}
}

// addPrograms defines the programs that members bring. An install puts them before those of the machine, for all members.
func (a *assembler) addPrograms(from targets.Node, p *project) {
	p.byProgram = map[string][]*pack{}
	var list []string
	for _, member := range p.members {
		if member == p.root {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(member.file.programs)) {
			p.byProgram[name] = append(p.byProgram[name], member)
			list = append(list, name, member.dir, member.file.programs[name])
		}
	}
	a.edge(from, a.builder.Definition("node:programs "+dot(p.dir), normalText("programs", list...)))
}
