package builder

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOtherUsersCannotTakeTheLockOfAnInstance: who can open the file can lock it, which keeps the builder from starting. An older release
// left it readable by everybody.
func TestOtherUsersCannotTakeTheLockOfAnInstance(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "up.lock")
	for range 2 { // made, and found
		unlock, err := lockInstance(t.Context(), dir, "up")
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
