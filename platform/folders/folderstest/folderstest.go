// Package folderstest makes the folders that hostile steps make.
package folderstest

import (
	"os"
	"testing"
)

// Nest makes so many folders of a name within each other below a folder that is there, also deeper than a path may be long. It returns the
// innermost one.
func Nest(t testing.TB, folder, name string, levels int) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	for range levels {
		if err := root.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
		below, err := root.OpenRoot(name)
		root.Close()
		if err != nil {
			t.Fatal(err)
		}
		root = below
	}
	t.Cleanup(func() { root.Close() })
	return root
}
