package execution

import (
	"maps"
	"slices"
)

// Environment returns the environment of a step, sorted by name: PATH as
// configured, HOME and TMPDIR in scratch (see [ScratchPaths]), a fixed language
// and CI=true, then extra, which wins. Nothing comes from the environment of
// this process, so no credential of the service does; one in extra is the
// caller's decision.
func Environment(path, home, tmp string, extra map[string]string) []string {
	variables := map[string]string{
		"CI":     "true",
		"HOME":   home,
		"LANG":   "C.UTF-8",
		"PATH":   path,
		"TMPDIR": tmp,
	}
	maps.Copy(variables, extra)
	environment := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		environment = append(environment, name+"="+variables[name])
	}
	return environment
}
