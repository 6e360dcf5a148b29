package nodegraph

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestProjectsWithArchivesOfTheRepositoryShareNoCache since package managers take an archive from there by what the lock file
// says of it, whatever the file is.
func TestProjectsWithArchivesOfTheRepositoryShareNoCache(t *testing.T) {
	for name, c := range map[string]struct {
		file, lock string
		alone      bool
	}{
		"npm":                        {"package-lock.json", `{"lockfileVersion": 3, "packages": {"node_modules/v": {"resolved": "https://host/v.tgz"}, "node_modules/m": {"resolved": "packages/m", "link": true}}}`, false},
		"npm with an archive":        {"package-lock.json", `{"lockfileVersion": 3, "packages": {"node_modules/v": {"resolved": "file:vendor/v.tgz"}}}`, true},
		"npm with an escaped name":   {"package-lock.json", `{"lockfileVersion": 3, "packages": {"node_modules/v": {"resolved": "f\u0069le:vendor/v.tgz"}}}`, true},
		"an old one with an archive": {"package-lock.json", `{"lockfileVersion": 1, "dependencies": {"v": {"version": "file:vendor/v.tgz"}}}`, true},
		"pnpm":                       {"pnpm-lock.yaml", "lockfileVersion: '9.0'\npackages:\n  v@1.0.0:\n    resolution: {integrity: sha512-x}\n", false},
		"pnpm with an archive":       {"pnpm-lock.yaml", "lockfileVersion: '9.0'\npackages:\n  v@file:vendor/v.tgz:\n    resolution: {integrity: sha512-x, tarball: file:vendor/v.tgz}\n", true},
		"yarn 1":                     {"yarn.lock", "v@^1.0.0:\n  version \"1.0.0\"\n  resolved \"https://host/v.tgz\"\n", false},
		"yarn 1 with an archive":     {"yarn.lock", "\"v@./vendor/v.tgz\":\n  version \"1.0.0\"\n  resolved \"./vendor/v.tgz\"\n", true},
		"yarn with an archive":       {"yarn.lock", "__metadata:\n  version: 8\n\n\"v@file:./vendor/v.tgz::locator=r%40workspace%3A.\":\n  version: 1.0.0\n", true},
	} {
		graph := load(t, memoryTree{
			"package.json": `{"name": "r", "version": "1.0.0", "scripts": {"build": "true", "test": "true"}, "dependencies": {"v": "1.0.0"}}`, c.file: c.lock, "vendor/v.tgz": "x",
		})
		for found := range graph.Targets() {
			for _, command := range found.Commands {
				script := strings.Join(command.Argv, " ")
				if got := slices.Contains(command.Env, "npm_config_cache=") && strings.Contains(script, "unset npm_config_cache "); got != c.alone {
					t.Errorf("%s: %s has no shared cache: %t, want %t: %q %s", name, found.Name, got, c.alone, command.Env, script)
				}
			}
		}
	}
}

// TestAnArchiveThatIsNotWhatTheLockFileSaysIsRefusedWithAWarmCache by npm itself.
func TestAnArchiveThatIsNotWhatTheLockFileSaysIsRefusedWithAWarmCache(t *testing.T) {
	program(t, npm)
	dir, cache := t.TempDir(), t.TempDir()
	pack := func(content string) string {
		source := t.TempDir()
		memoryTree{"package.json": `{"name": "vend", "version": "1.0.0"}`, "index.js": content}.write(t, source)
		runHere(t, dir, cache, "npm", "pack", "--silent", "--pack-destination", dir, source)
		archive, err := os.ReadFile(filepath.Join(dir, "vend-1.0.0.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		return string(archive)
	}
	first, second := pack("exports.answer = 42\n"), pack("exports.answer = 43\n")
	tree := memoryTree{"package.json": `{"name": "r", "version": "1.0.0", "scripts": {"test": "true"}, "dependencies": {"vend": "file:vendor/vend-1.0.0.tgz"}}`, "vendor/vend-1.0.0.tgz": first}
	tree.write(t, dir)
	runHere(t, dir, cache, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts")
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("npm_config_cache", cache)
	for _, c := range []struct {
		archive string
		want    bool
	}{{first, true}, {second, false}} {
		now := tree.with(memoryTree{"package-lock.json": string(lock), "vendor/vend-1.0.0.tgz": c.archive})
		for found := range load(t, now).Targets() {
			for _, command := range found.Commands {
				if out, err := runStep(t, now, command, os.Getenv("PATH")); (err == nil) != c.want {
					t.Errorf("%s with the archive of the lock file: %t: %v\n%s", found.Name, c.want, err, out)
				}
			}
		}
	}
}

func runHere(t *testing.T, dir, cache string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "npm_config_cache="+cache, "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}
