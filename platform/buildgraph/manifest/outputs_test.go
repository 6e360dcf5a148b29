package manifest

import (
	"testing"

	"landfall.build/engine/targets"
)

// Each of the two changes leaves valid manifests, and both together do not.
func TestChangesWhoseOutputsCannotBeTogetherConflict(t *testing.T) {
	leaving := func(folder, output string) memoryTree {
		return memoryTree{folder + "/landfall.yaml": "targets: [{name: t, steps: [{name: s, run: [x], outputs: [" + output + "]}]}]"}
	}
	base := memoryTree{"landfall.yaml": "targets: [{name: always}]"}
	for name, c := range map[string]struct{ one, other memoryTree }{
		"the same output":                {leaving("a", "b/c"), leaving("a/b", "c")},
		"one in the other":               {leaving("a", "b"), leaving("a/b/c", "d/e")},
		"a file in its place":            {leaving("a", "b/c"), memoryTree{"a/b/c": "x"}},
		"a folder in its place":          {leaving("a", "b"), memoryTree{"a/b/c/d": "x"}},
		"a file in place of its folder":  {leaving("a", "b/c/d"), memoryTree{"a/b": "x"}},
		"an output that leads elsewhere": {leaving("a", "b/c/d"), memoryTree{"a/b/c": "mode 120000"}},
	} {
		before := mustLoad(t, base)
		one, other := targets.Delta(before, mustLoad(t, base.with(c.one))), targets.Delta(before, mustLoad(t, base.with(c.other)))
		if _, err := Load(t.Context(), base.with(c.one).with(c.other)); err == nil {
			t.Errorf("%s: both together are valid", name)
		}
		if !one.Footprint().Meets(other.Footprint(), nil).Conflict() || !other.Footprint().Meets(one.Footprint(), nil).Conflict() {
			t.Errorf("%s: no conflict", name)
		}
	}
	one, other := targets.Delta(mustLoad(t, base), mustLoad(t, base.with(leaving("a", "b")))), targets.Delta(mustLoad(t, base), mustLoad(t, base.with(leaving("c", "b"))))
	if one.Footprint().Meets(other.Footprint(), nil).Conflict() {
		t.Error("outputs in two places conflict")
	}
}
