package gitea

import "landfall.build/engine/targets"

// fits reports whether a check has the name, or the pattern with *, that a branch asks for.
func fits(pattern, name string) bool { return targets.NewNamePatterns([]string{pattern}).Has(name) }
