package gograph

import (
	"slices"
	"testing"
)

// The tests of a folder cover what lies in and below it; a folder without any covers its Go and C files alone.
func TestAFileIsUncoveredWhereNoPackageOrTestMayReadIt(t *testing.T) {
	graph := loadWith(t, verified, memoryTree{
		"go.work": "go 1.26\nuse ./m\n", "go.work.sum": "", "README.md": "1", "docs/guide.md": "1",
		"m/go.mod": "module example.com/m\ngo 1.26\n", "m/go.sum": "", "m/README.md": "1",
		"m/lib/lib.go": "package lib\n", "m/lib/notes.txt": "1",
		"m/tested/t.go": "package tested\n", "m/tested/t_test.go": "package tested\n", "m/tested/testdata/in.txt": "1", "m/tested/notes.txt": "1",
		"m/_drafts/d.go": "package drafts\n",
	})
	want := []string{"README.md", "docs/guide.md", "m/README.md", "m/_drafts/d.go", "m/lib/notes.txt"}
	if got := graph.Uncovered(); !slices.Equal(got, want) {
		t.Errorf("uncovered: %q, want %q", got, want)
	}
}
