package bazelgraph

import "testing"

// TestAFolderMayHaveAPseudoPackagesName: what lies in it is an input like any other.
func TestAFolderMayHaveAPseudoPackagesName(t *testing.T) {
	for text, pseudo := range map[string]bool{
		"//conditions:default": true, "//conditions:data.txt": false, "//visibility:public": true, "//visibility:private": true,
		"//visibility:legacy_public": true, "//visibility:friends": false, "//other:default": false, "//other:public": false,
	} {
		l, ok := parseLabel(text)
		if !ok || isPseudo(l) != pseudo {
			t.Errorf("%s (a label: %v) is taken for nothing in the tree: %v", text, ok, !pseudo)
		}
	}
}
