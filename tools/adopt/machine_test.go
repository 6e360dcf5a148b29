package adopt

import (
	"os"
	"path/filepath"
	"testing"

	"landfall.build/platform/configuration"
)

// TestProgramsAreAskedWhereNobodyElseTellsThemWhatToRun: Python imports what is in the folder that it is started in, and rustup, yarn and others
// run what a file there names, or one above it.
func TestProgramsAreAskedWhereNobodyElseTellsThemWhatToRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "cargo")
	if err := os.WriteFile(program, []byte("#!/bin/sh\npwd\ntest $# = 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	said := brokenTool(t.Context(), "cargo", program, configuration.Queue{})
	for _, at := range []string{firstLine(t.Context(), program), said[:len(said)-len(" (exit status 1)")]} {
		for folder := at; filepath.IsAbs(at); folder = filepath.Dir(folder) {
			if info, err := os.Stat(folder); err != nil || info.Mode().Perm()&0o002 != 0 {
				t.Errorf("a program is started in %s, and everybody may write to %s: %v", at, folder, err)
			}
			if folder == filepath.Dir(folder) {
				break
			}
		}
		if !filepath.IsAbs(at) {
			t.Errorf("a program is started in %q", at)
		}
	}
}
