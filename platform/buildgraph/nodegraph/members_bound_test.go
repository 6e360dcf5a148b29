package nodegraph

import (
	"runtime"
	"strings"
	"testing"
)

// TestBracesOfAWorkspaceCostWhatTheyAreLong reads patterns that a change can write into package.json: each alternative was made
// with all that follows the braces before they were counted, terabytes of a file of 4 MiB.
func TestBracesOfAWorkspaceCostWhatTheyAreLong(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, text := range []string{
		"b{" + strings.Repeat(",", 10_000) + "}" + strings.Repeat("a", 10_000),
		"{" + strings.Repeat(",", 300) + "}",
		strings.Repeat("{a,b}", 9),
		strings.Repeat("a", maxPatternBytes+1),
	} {
		if _, err := parseMemberPatterns([]string{text}); err == nil {
			t.Errorf("%.20s… is taken", text)
		}
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 10 {
		t.Errorf("they took %d MiB", got)
	}
	for text, want := range map[string]int{strings.Repeat("{a,b}", 8): 256, "packages/{a,b,c}": 3, "{a,{b,c}}/d": 3} {
		if patterns, err := parseMemberPatterns([]string{text}); err != nil || len(patterns[0].alternatives) != want {
			t.Errorf("%s: %v, want %d alternatives", text, err, want)
		}
	}
}

// TestFilesOfNodeCostWhatTheyAreLong: reading a file takes memory in proportion to its length. It took the product of the lengths of its parts.
func TestFilesOfNodeCostWhatTheyAreLong(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	config := func(base, paths int) []byte {
		return []byte(`{"compilerOptions":{"baseUrl":"` + strings.Repeat("b", base) + `","paths":{"a":["c"` + strings.Repeat(`,"c"`, paths) + `]}}}`)
	}
	if parseCompilerFile(config(10_000, 20_000), true) != nil {
		t.Error("20,000 paths below a long one are taken")
	}
	key := strings.Repeat("node_modules/a/", 2000) + "node_modules/a"
	if l := parseNPMLock([]byte(`{"lockfileVersion":3,"packages":{"":{},"` + key + `":{"dependencies":{"x":"1","y":"1"}}}}`)); l.format != unknownLock {
		t.Errorf("a lock file with a folder of %d bytes is one of format %v", len(key), l.format)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
		t.Errorf("they took %d MiB", got)
	}
	if c := parseCompilerFile(config(20, 5000), true); c == nil || len(c.aliases) != 2 || len(c.aliases[0].paths) != 5001 {
		t.Error("5000 paths are not taken")
	}
}

// TestPathsOfAliasesAreBounded: one alias can have 200,000 paths, and a source file a million specifiers that it matches.
func TestPathsOfAliasesAreBounded(t *testing.T) {
	aliases := []placedAlias{{alias{"x/*", []string{"a/*/b", "c/*/d", "e"}}, "p"}}
	a, specs := &assembler{survey: &survey{}}, map[string]bool{}
	a.addAliased(specs, "y", aliases)
	a.addAliased(specs, "x/1", aliases)
	if len(specs) != 3 || !specs["p/a/1/b"] || a.matched > 100 {
		t.Errorf("%v after %d comparisons", specs, a.matched)
	}
	a.matched = maxMatchWork - 10
	a.addAliased(specs, "x/2", aliases)
	if len(specs) != 3 || a.matched <= maxMatchWork {
		t.Errorf("%v after %d comparisons, which is not over the bound of %d", specs, a.matched, maxMatchWork)
	}
}
