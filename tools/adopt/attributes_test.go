package adopt

import (
	"slices"
	"testing"
)

func TestConversions(t *testing.T) {
	got := conversions("# eol=crlf\n\n*.txt text eol=crlf\n\"a b\" filter=lfs diff=lfs merge=lfs -text\n[attr]wide working-tree-encoding=UTF-16\n" +
		"*.c ident\n*.sh text eol=lf\n*.h -ident !filter -working-tree-encoding\nident\n* text=auto")
	if want := []string{"eol=crlf", "filter=lfs", "working-tree-encoding=UTF-16", "ident"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
