package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// A step of a service that runs as root has the service's right to read a file, so that it read passwords of registries which nobody else on
// the machine could.
func TestSettingsThatNotEverybodyMayReadAreHidden(t *testing.T) {
	dir, before := t.TempDir(), settings
	settings = dir
	t.Cleanup(func() { settings = before })
	write := func(name string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("elsewhere", 0o600)
	for name, mode := range map[string]os.FileMode{
		"pip.conf": 0o600, "npmrc": 0o640, "gitconfig": 0o644, "maven/settings.xml": 0o600, "maven/toolchains.xml": 0o644, "ssl/keys/a": 0o644,
	} {
		write(name, mode)
	}
	if err := os.Chmod(filepath.Join(dir, "ssl/keys"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "inputrc")); err != nil {
		t.Fatal(err)
	}
	kinds := func(s Spec) map[string]kind {
		list, err := s.mounts()
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]kind{}
		for _, m := range list {
			kinds[m.path] = m.kind
		}
		return kinds
	}
	shown, hides := map[string]bool{"gitconfig": true, "maven": true, "ssl": true}, map[string]bool{"maven/settings.xml": true, "ssl/keys": true}
	got, told := kinds(Spec{}), kinds(Spec{Read: []string{filepath.Join(dir, "npmrc")}})
	for _, name := range []string{"pip.conf", "npmrc", "gitconfig", "maven", "maven/settings.xml", "ssl", "ssl/keys", "inputrc", "elsewhere"} {
		path := filepath.Join(dir, name)
		if k, mounted := got[path]; (mounted && k != hidden) != shown[name] || hides[name] && !mounted {
			t.Errorf("%s: mounted %v as %v", name, mounted, k)
		}
	}
	if told[filepath.Join(dir, "npmrc")] != readable {
		t.Error("what is in steps.read is not given")
	}
}
