package adopt

import (
	"context"
	"slices"
	"testing"
)

func TestMembersOfAWorkspaceAreThoseThatItsPatternsName(t *testing.T) {
	for text, dirs := range map[string][]string{
		"packages:\n  - 'packages/*' # all\n  - \"./tools/**\"\n  - docs/\n": {"packages/a", "tools/x/y", "docs"},
		`{"workspaces": {"packages": ["packages/*"]}}`:                       {"packages/a"},
		`{"workspaces": ["packages/*", "docs"]}`:                             {"packages/a", "docs"},
		`{"workspaces": 3}`:                                                  nil,
		`{}`:                                                                 nil,
		`{`:                                                                  nil,
	} {
		file := "web/package.json"
		if text[0] == 'p' {
			file = "web/pnpm-workspace.yaml"
		}
		r := reader{ctx: context.Background(), files: map[string]bool{file: true}, read: func(_ context.Context, name string) string {
			if name != file {
				return ""
			}
			return text
		}}
		patterns := memberPatterns(r, "web")
		var got []string
		for _, dir := range []string{"packages/a", "packages/a/fixture", "tools/x/y", "docs", "other"} {
			if isMember(patterns, dir) {
				got = append(got, dir)
			}
		}
		if !slices.Equal(got, dirs) {
			t.Errorf("of %q members are %q, want %q", text, got, dirs)
		}
	}
}
