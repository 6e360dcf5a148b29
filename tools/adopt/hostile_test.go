package adopt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

// A script of a package.json whose name has lines in it wrote settings into the configuration, by a comment that named it.
func TestNoNameOfARepositoryIsASetting(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{
		"package.json":      `{"name":"shop","scripts":{"test":"jest","check:types\nsnapshots: {every: 7m}\n#":"tsc"}}`,
		"package-lock.json": `{"lockfileVersion":3,"packages":{"":{"name":"shop"}}}`,
	})
	r.push()
	if out, err := r.init("--queue", "shop"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := r.read("landfall.config.yaml")
	if !strings.Contains(text, "check:types snapshots") {
		t.Errorf("the script is not named:\n%s", text)
	}
	own, err := configuration.Parse([]byte(strings.Replace(text, "check:types snapshots", "check:types other", 1)), "x", configuration.Defaults{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.configured().Snapshots; got != own.Snapshots || strings.Contains(text, "\nsnapshots:") {
		t.Errorf("it is a setting:\n%s", text)
	}
}

// The working folder need not be at the mainline: where that has a folder, it may have a link.
func TestNothingIsWrittenThroughALinkOutOfTheClone(t *testing.T) {
	for _, folder := range []string{"site", "..site"} {
		r := newRepository(t)
		r.commit("one", files{"go.mod": "module shop\n\ngo 1.22\n", "a.go": "package shop\n", folder + "/Makefile": "test:\n\ttrue\n"})
		r.push()
		outside := t.TempDir()
		if err := os.RemoveAll(filepath.Join(r.clone, folder)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(r.clone, folder)); err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"--yes", "--force"} {
			if out, err := r.init(more); err == nil || !strings.Contains(err.Error(), "nothing is written") {
				t.Errorf("%s: %s: %v\n%s", folder, more, err, out)
			}
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Errorf("%s: outside is %v, %v", folder, entries, err)
		}
		if _, err := os.Stat(filepath.Join(r.clone, "landfall.config.yaml")); err == nil {
			t.Errorf("%s: the configuration is written", folder)
		}
	}
}

func TestNamesOfARepositorySteerNeitherTerminalNorShell(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{"go.mod": "module shop\n\ngo 1.22\n", "a.go": "package shop\n", "a; touch b/Makefile": "test:\n\ttrue\n"})
	r.push()
	if out, err := r.init("--yes"); err != nil || !strings.Contains(out, "git add 'a; touch b/landfall.yaml' ") {
		t.Errorf("the folder is no word of the shell in what to do next: %v\n%s", err, out)
	}
	r.commit("two", files{"odd\x1b[2J\x1b]0;title\x07/landfall.yaml": "targets: []\n"})
	r.push()
	if out, err := r.init("--yes", "--force"); err != nil || strings.ContainsAny(out, "\x1b\x07") || !strings.Contains(out, "odd") {
		t.Errorf("%v\n%q", err, out)
	}
}
