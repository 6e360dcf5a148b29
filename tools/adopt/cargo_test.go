package adopt

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The steps of the whole repository promise of a Cargo workspace what its targets do: each member with the features that it asks
// for itself, a root package among them.
func TestTheMembersOfACargoWorkspaceAreTestedOneByOne(t *testing.T) {
	missing := func(what any) {
		t.Helper()
		if os.Getenv("LANDFALL_TEST_MODULES") == "required" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	if _, err := exec.LookPath("cargo"); err != nil {
		missing(err)
	}
	tests := func(name, body string) string { return "#[test]\nfn " + name + "() { " + body + " }\n" }
	workspace := map[string]string{
		"Cargo.toml":   "[package]\nname = \"top\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\nmembers = [\"x\", \"y\", \"z\"]\ndefault-members = [\"x\"]\n",
		"src/lib.rs":   tests("of_top", ""),
		"x/Cargo.toml": "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[features]\nloud = []\n",
		"x/src/lib.rs": "pub fn loud() -> bool { cfg!(feature = \"loud\") }\n" + tests("of_x", ""),
		"y/Cargo.toml": "[package]\nname = \"y\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nx = { path = \"../x\" }\n", "y/src/lib.rs": tests("of_y", "assert!(!x::loud())"),
		"z/Cargo.toml": "[package]\nname = \"z\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nx = { path = \"../x\", features = [\"loud\"] }\n", "z/src/lib.rs": tests("of_z", "assert!(x::loud())"),
	}
	run := func(edit map[string]string, lock bool) (string, error) {
		t.Helper()
		dir := t.TempDir()
		edited := maps.Clone(workspace)
		maps.Copy(edited, edit)
		for name, content := range edited {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		here := func(argv ...string) (string, error) {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "CARGO_NET_OFFLINE=true", "CARGO_TARGET_DIR="+filepath.Join(dir, "target"))
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		files := []string{"Cargo.toml"}
		if lock {
			if out, err := here("cargo", "generate-lockfile"); err != nil {
				missing(out)
			}
			files = append(files, "Cargo.lock")
		}
		return here("sh", "-c", wholeCargo(reader{files: setOf(files)}, "."))
	}
	for _, lock := range []bool{true, false} {
		out, err := run(nil, lock)
		if err != nil {
			t.Errorf("lock file %v: %v\n%s", lock, err, out)
		}
		for _, name := range []string{"of_top", "of_x", "of_y", "of_z"} {
			if strings.Count(out, "test tests::"+name)+strings.Count(out, "test "+name+" ... ok") != 1 {
				t.Errorf("lock file %v: %s is not tested once:\n%s", lock, name, out)
			}
		}
	}
	for name, edit := range map[string]map[string]string{
		"a member is red": {"y/src/lib.rs": tests("of_y", "panic!()")}, "a member is wrong": {"y/Cargo.toml": "[package]\n"}, "the lock file is": {"Cargo.lock": "x"},
	} {
		if out, err := run(edit, false); err == nil {
			t.Errorf("%s, and the step passes:\n%s", name, out)
		}
	}
	if programs := programsOf(wholeCargo(reader{}, ".")); !slices.Contains(programs, "cargo") {
		t.Errorf("the line runs %q", programs)
	}
}
