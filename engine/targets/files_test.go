package targets

import (
	"slices"
	"testing"
)

func TestTheFilesOfATargetAreThoseItDependsOnWithoutOtherTargets(t *testing.T) {
	b := NewBuilder("files/1", "tree")
	for _, path := range []string{"a/one", "a/two", "a b", "a/\nodd", "b/x", "far"} {
		b.File(path, 0o100644, "1")
	}
	target, other, definition := b.Target("//a:t", "test", nil), b.Target("//b:t", "test", nil), b.Definition("d", nil)
	b.Edge(target, b.Ref(KindFile, "a/one"))
	b.Edge(target, b.Ref(KindFile, "a/missing"))
	b.Edge(target, b.Ref(KindFile, "a/\nodd"))
	b.Edge(target, other)
	b.Edge(target, definition)
	b.Edge(other, b.Ref(KindFile, "b/x"))
	b.Edge(definition, b.Ref(KindFile, "far"))
	b.Edge(definition, definition)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		got  []string
		want []string
	}{
		{"directly", g.Files("//a:t", false, 10), []string{"a/\nodd", "a/one"}},
		{"through definitions", g.Files("//a:t", true, 10), []string{"a/\nodd", "a/one", "far"}},
		{"none looked at", g.Files("//a:t", true, 0), nil},
		{"of no target", g.Files("//c:t", true, 10), nil},
		{"in a folder", g.FilesIn("a", 10), []string{"a/one", "a/two"}},
		{"the first in a folder", g.FilesIn("a", 1), []string{"a/one"}},
		{"in no folder", g.FilesIn("c", 10), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if all := g.FilesIn("", 10); len(all) != 6 {
		t.Errorf("in the root: %q", all)
	}
}
