package gograph

import (
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// shop has a package whose import path another one can have but for case.
var shop = memoryTree{
	"go.mod": "module example.com/shop\n\ngo 1.26\n", "util/text/t.go": "package text\n", "util/util.go": "package util\n",
	"tools/go.mod": "module example.com/shop/Util\n\ngo 1.26\n", "tools/text/t.go": "package text\n",
}

func TestPackagesWhoseImportPathsDifferInCaseAloneCollide(t *testing.T) {
	const want = `case-insensitive import collision: "example.com/shop/util/text" and "example.com/shop/util/Text"`
	upper := memoryTree{"util/Text/t.go": "package text\n"}
	for name, c := range map[string]struct {
		base, edit memoryTree
		want       string
	}{
		"a package":                            {shop, upper, want},
		"tests alone":                          {shop, memoryTree{"util/Text/t_test.go": "package text\n"}, want},
		"a folder above":                       {shop, memoryTree{"Util/text/t.go": "package text\n"}, `case-insensitive import collision: "example.com/shop/util/text" and "example.com/shop/Util/text"`},
		"for another platform":                 {shop, memoryTree{"util/Text/t_windows.go": "package text\n"}, ""},
		"a folder that go's wildcards pass by": {shop, memoryTree{"util/testdata/text/t.go": "package a\n", "util/testdata/Text/t.go": "package a\n"}, ""},
		"data":                                 {shop, memoryTree{"util/Text/t.txt": "1\n"}, ""},
		"another module of a workspace":        {shop, memoryTree{"go.work": "go 1.26\n\nuse (\n\t.\n\t./tools\n)\n"}, ""},
		"a pair that is there":                 {shop.with(upper), memoryTree{"util/Text/t.go": "package text // 2\n", "util/text/more.go": "package text\n"}, ""},
		"one of a pair less":                   {shop.with(upper), memoryTree{"util/Text/t.go": ""}, ""},
		"one of three less":                    {shop.with(upper).with(memoryTree{"util/TEXT/t.go": "package text\n"}), memoryTree{"util/Text/t.go": ""}, ""},
	} {
		got := ""
		if problems := Collisions(load(t, c.base), load(t, c.base.with(c.edit))); len(problems) > 0 {
			got = problems[0]
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if before := builds(t, c.base, "..."); before == "" {
			if after := builds(t, c.base.with(c.edit), "..."); after == "" != (c.want == "") || !strings.Contains(after, c.want) {
				t.Errorf("%s: go says %q, want %q", name, after, c.want)
			}
		}
	}
}

func TestChangesThatMakeACollisionTogetherConflict(t *testing.T) {
	without := shop.with(memoryTree{"util/text/t.go": ""})
	base := load(t, without)
	lower := targets.Delta(base, load(t, without.with(memoryTree{"util/text/t.go": "package text\n"})))
	upper := targets.Delta(base, load(t, without.with(memoryTree{"util/Text/t.go": "package text\n"})))
	if !lower.Footprint().Meets(upper.Footprint(), nil).Conflict() || !upper.Footprint().Meets(lower.Footprint(), nil).Conflict() {
		t.Error("the changes are called independent")
	}
}
