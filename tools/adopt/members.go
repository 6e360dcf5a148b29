package adopt

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pnpmMember is a line of a pnpm-workspace.yaml with a pattern of members.
var pnpmMember = regexp.MustCompile(`(?m)^\s*-\s*["']?([^"'\s#]+)["']?\s*(?:#.*)?$`)

// memberPatterns returns the patterns of the members of a workspace of npm or pnpm.
func memberPatterns(r reader, folder string) (patterns []string) {
	if r.has(folder, "pnpm-workspace.yaml") {
		for _, m := range pnpmMember.FindAllStringSubmatch(r.read(r.ctx, path.Join(folder, "pnpm-workspace.yaml")), -1) {
			patterns = append(patterns, m[1])
		}
		return patterns
	}
	var document struct {
		Workspaces json.RawMessage `json:"workspaces"`
	}
	if json.Unmarshal([]byte(r.read(r.ctx, path.Join(folder, "package.json"))), &document) != nil || json.Unmarshal(document.Workspaces, &patterns) == nil {
		return patterns
	}
	var object struct {
		Packages []string `json:"packages"`
	}
	_ = json.Unmarshal(document.Workspaces, &object) // anything else names no members
	return object.Packages
}

// isMember reports whether patterns name a folder, given relative to the workspace.
func isMember(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		pattern = path.Clean(pattern)
		above, _, deep := strings.Cut(pattern, "**")
		fits, _ := path.Match(pattern, dir)
		return fits || deep && strings.HasPrefix(dir, above)
	})
}

// unrunOfMembers returns the scripts of a workspace's members that no step runs, but for those that a script of the root's has the
// name of: it runs them, or they are not wanted.
func unrunOfMembers(r reader, folder string, root map[string]string, lines []string) (u unrun) {
	manager, install := installOf(r, folder)
	run := map[string]string{"npm": "npm run %s --workspaces --if-present", "pnpm": "pnpm -r --if-present run %s"}[manager]
	patterns := memberPatterns(r, folder)
	if run == "" || len(patterns) == 0 {
		return u
	}
	left := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		dir, below := strings.CutPrefix(path.Dir(file), strings.TrimPrefix(folder+"/", "./"))
		if path.Base(file) != "package.json" || !below || strings.Contains(file, "node_modules/") || !isMember(patterns, dir) {
			continue
		}
		var document struct {
			Scripts map[string]string `json:"scripts"`
		}
		if json.Unmarshal([]byte(r.read(r.ctx, file)), &document) != nil {
			continue
		}
		for _, name := range unrunOf(document.Scripts, lines) {
			if root[name] == "" {
				left[name] = document.Scripts[name]
			}
		}
	}
	u = unrun{file: "the members of " + path.Join(folder, "package.json"), what: "scripts", names: checkingOf(left)}
	for _, name := range u.names {
		u.steps = append(u.steps, wholeStep(stepName(name)+"-members", folder, install+" && "+fmt.Sprintf(run, name)))
	}
	return u
}
