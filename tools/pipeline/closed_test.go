package pipeline

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/services/builder"
)

// TestOtherUsersReachNothingThatServicesKeep: neither the repository nor what steps have printed, for which the gateway asks for a role.
// An older release has made the folders for all.
func TestOtherUsersReachNothingThatServicesKeep(t *testing.T) {
	origin, data := t.TempDir(), t.TempDir()
	if out, err := exec.Command("git", "init", "--quiet", "--bare", origin).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Chmod(data, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // made, and found
		p := &Process{Logger: slog.New(slog.DiscardHandler), Configuration: &configuration.Configuration{Data: data, Repositories: map[string]configuration.Repository{"shop": {URL: origin}}}}
		if p.snapshots() == nil {
			t.Fatal("no snapshots are kept")
		}
		mirror, err := p.Mirror(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		mirror.Close()
		p.logStore()
		for _, folder := range []string{filepath.Join(data, "mirrors"), filepath.Join(data, "snapshots"), builder.LogDir(data)} {
			info, err := os.Stat(folder)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o007 != 0 || info.Mode().Perm()&0o700 != 0o700 {
				t.Errorf("%s: %v", folder, info.Mode())
			}
			if err := os.Chmod(folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}
