package cargograph

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// project is a repository of well-known packages by folder, "NAME VERSION" each. A package is published with the Cargo.toml
// of its repository, so that such a repository can be made again: workspaces, paths between members and all.
type project map[string]string

// histories are three versions of each repository, oldest first.
var histories = map[string][3]project{
	"regex": {
		{"": "regex 1.9.6", "regex-automata": "regex-automata 0.3.9", "regex-syntax": "regex-syntax 0.7.5", "regex-lite": "regex-lite 0.1.5"},
		{"": "regex 1.10.6", "regex-automata": "regex-automata 0.4.7", "regex-syntax": "regex-syntax 0.8.4", "regex-lite": "regex-lite 0.1.6"},
		{"": "regex 1.12.2", "regex-automata": "regex-automata 0.4.13", "regex-syntax": "regex-syntax 0.8.8", "regex-lite": "regex-lite 0.1.8"},
	},
	"clap": {
		{"": "clap 4.4.18", "clap_builder": "clap_builder 4.4.18", "clap_derive": "clap_derive 4.4.7", "clap_lex": "clap_lex 0.6.0", "clap_complete": "clap_complete 4.4.10", "clap_mangen": "clap_mangen 0.2.16"},
		{"": "clap 4.5.20", "clap_builder": "clap_builder 4.5.20", "clap_derive": "clap_derive 4.5.18", "clap_lex": "clap_lex 0.7.2", "clap_complete": "clap_complete 4.5.33", "clap_mangen": "clap_mangen 0.2.24"},
		{"": "clap 4.5.50", "clap_builder": "clap_builder 4.5.50", "clap_derive": "clap_derive 4.5.49", "clap_lex": "clap_lex 0.7.6", "clap_complete": "clap_complete 4.5.59", "clap_mangen": "clap_mangen 0.2.29"},
	},
	"crossbeam": {
		{"": "crossbeam 0.8.2", "crossbeam-channel": "crossbeam-channel 0.5.8", "crossbeam-deque": "crossbeam-deque 0.8.3", "crossbeam-epoch": "crossbeam-epoch 0.9.14", "crossbeam-queue": "crossbeam-queue 0.3.8", "crossbeam-utils": "crossbeam-utils 0.8.15"},
		{"": "crossbeam 0.8.3", "crossbeam-channel": "crossbeam-channel 0.5.10", "crossbeam-deque": "crossbeam-deque 0.8.4", "crossbeam-epoch": "crossbeam-epoch 0.9.17", "crossbeam-queue": "crossbeam-queue 0.3.10", "crossbeam-utils": "crossbeam-utils 0.8.18"},
		{"": "crossbeam 0.8.4", "crossbeam-channel": "crossbeam-channel 0.5.11", "crossbeam-deque": "crossbeam-deque 0.8.5", "crossbeam-epoch": "crossbeam-epoch 0.9.18", "crossbeam-queue": "crossbeam-queue 0.3.11", "crossbeam-utils": "crossbeam-utils 0.8.19"},
	},
	"rayon": {
		{"": "rayon 1.8.0", "rayon-core": "rayon-core 1.12.0"}, {"": "rayon 1.10.0", "rayon-core": "rayon-core 1.12.1"}, {"": "rayon 1.11.0", "rayon-core": "rayon-core 1.13.0"},
	},
	"rand": {
		{"": "rand 0.8.5", "rand_core": "rand_core 0.6.4", "rand_chacha": "rand_chacha 0.3.1", "rand_pcg": "rand_pcg 0.3.1", "rand_distr": "rand_distr 0.4.3"},
		{"": "rand 0.9.0", "rand_core": "rand_core 0.9.0", "rand_chacha": "rand_chacha 0.9.0", "rand_pcg": "rand_pcg 0.9.0"},
		{"": "rand 0.9.2", "rand_core": "rand_core 0.9.3", "rand_chacha": "rand_chacha 0.9.0", "rand_pcg": "rand_pcg 0.9.0"},
	},
	"thiserror": {
		{"": "thiserror 1.0.69", "impl": "thiserror-impl 1.0.69"}, {"": "thiserror 2.0.9", "impl": "thiserror-impl 2.0.9"}, {"": "thiserror 2.0.17", "impl": "thiserror-impl 2.0.17"},
	},
	"serde": {
		{"serde": "serde 1.0.190", "serde_derive": "serde_derive 1.0.190", "json": "serde_json 1.0.107"},
		{"serde": "serde 1.0.210", "serde_derive": "serde_derive 1.0.210", "json": "serde_json 1.0.128"},
		{"serde": "serde 1.0.228", "serde_core": "serde_core 1.0.228", "serde_derive": "serde_derive 1.0.228", "json": "serde_json 1.0.145"},
	},
	"anyhow":    {{"": "anyhow 1.0.70"}, {"": "anyhow 1.0.86"}, {"": "anyhow 1.0.100"}},
	"memchr":    {{"": "memchr 2.5.0"}, {"": "memchr 2.6.4"}, {"": "memchr 2.7.6"}},
	"log":       {{"": "log 0.4.17"}, {"": "log 0.4.22"}, {"": "log 0.4.28"}},
	"itertools": {{"": "itertools 0.12.1"}, {"": "itertools 0.13.0"}, {"": "itertools 0.14.0"}},
	"bytes":     {{"": "bytes 1.4.0"}, {"": "bytes 1.7.0"}, {"": "bytes 1.10.1"}},
	"semver":    {{"": "semver 1.0.17"}, {"": "semver 1.0.23"}, {"": "semver 1.0.27"}},
}

// serdeRoot stands for the root of serde's workspace, which no package is published with. The members find each other as
// patches, as in its repository.
const serdeRoot = `[workspace]
resolver = "2"
members = ["*"]

[workspace.dependencies]
proc-macro2 = { version = "1.0.74", default-features = false }
quote = { version = "1.0.35", default-features = false }
syn = { version = "2.0.81", default-features = false }

[patch.crates-io]
serde = { path = "serde" }
serde_derive = { path = "serde_derive" }
`

// cargo runs cargo in a folder.
func cargo(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("cargo", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CARGO_TERM_COLOR=never", "CARGO_NET_RETRY=3")
	out, err := cmd.Output()
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("cargo %q: %w\n%s", args, err, failed.Stderr)
	}
	return out, err
}

// needCargo skips a test where there is no cargo, unless LANDFALL_TEST_MODULES=required.
func needCargo(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("cargo"); err != nil {
		unavailable(t, err)
	}
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_MODULES") == "required" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// metadata is what cargo metadata says.
type metadata struct {
	Packages []struct {
		ID, Name, Version string
		Source            *string
		ManifestPath      string `json:"manifest_path"`
		Targets           []struct {
			Kind    []string
			SrcPath string `json:"src_path"`
		}
	}
	WorkspaceMembers []string `json:"workspace_members"`
	Resolve          struct {
		Nodes []struct {
			ID   string
			Deps []struct {
				Pkg      string
				DepKinds []struct{ Kind *string } `json:"dep_kinds"`
			}
		}
	}
}

func readMetadata(dir string, args ...string) (metadata, error) {
	var m metadata
	out, err := cargo(dir, append([]string{"metadata", "--format-version", "1", "--quiet"}, args...)...)
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	return m, err
}

// fetch has cargo download the packages of one version of each repository, and returns their folders.
func fetch(t testing.TB, version int, repositories []string) map[string]string {
	t.Helper()
	needCargo(t)
	dir := t.TempDir()
	text := "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[dependencies]\n"
	for _, repository := range repositories {
		for _, one := range slices.Sorted(maps.Values(histories[repository][version])) {
			name, number, _ := strings.Cut(one, " ")
			text += fmt.Sprintf("%s = { version = \"=%s\", default-features = false }\n", name, number)
		}
	}
	writeFiles(t, dir, map[string]string{"Cargo.toml": text, "src/lib.rs": ""})
	m, err := readMetadata(dir)
	if err != nil {
		unavailable(t, err)
	}
	folders := map[string]string{}
	for _, p := range m.Packages {
		folders[p.Name+" "+p.Version] = filepath.Dir(p.ManifestPath)
	}
	return folders
}

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o777), os.WriteFile(full, []byte(content), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}

// restore makes a repository of published packages in a folder.
func restore(t testing.TB, dir string, p project, folders map[string]string) {
	t.Helper()
	for _, at := range slices.Sorted(maps.Keys(p)) {
		from := folders[p[at]]
		if from == "" {
			t.Fatalf("cargo has not fetched %s", p[at])
		}
		copyPackage(t, filepath.Join(dir, at), from)
	}
	if p[""] == "" {
		root := serdeRoot
		if p["serde_core"] != "" {
			root += "serde_core = { path = \"serde_core\" }\n"
		}
		writeFiles(t, dir, map[string]string{"Cargo.toml": root})
	}
	for _, at := range slices.Sorted(maps.Keys(p)) {
		addMissing(t, dir, at)
	}
}

// copyPackage copies a package with the Cargo.toml of its repository.
func copyPackage(t testing.TB, into, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, file)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(into, rel), 0o777)
		case rel == manifestName || rel == "Cargo.lock" || rel == ".cargo-ok" || rel == ".cargo_vcs_info.json":
			return nil
		case rel == "Cargo.toml.orig":
			rel = manifestName
		}
		content, err := os.ReadFile(file)
		return errors.Join(err, os.WriteFile(filepath.Join(into, rel), content, 0o666))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// addMissing puts empty packages where a Cargo.toml leads to some that are not published.
func addMissing(t testing.TB, dir, at string) {
	t.Helper()
	var root map[string]any
	if _, err := toml.DecodeFile(filepath.Join(dir, at, manifestName), &root); err != nil {
		t.Fatal(err)
	}
	add := func(to, name, version string) {
		folder := filepath.Join(dir, at, to)
		if _, err := os.Stat(filepath.Join(folder, manifestName)); err == nil {
			return
		}
		for strings.Count(version, ".") < 2 {
			version += ".0"
		}
		writeFiles(t, folder, map[string]string{manifestName: fmt.Sprintf("[package]\nname = %q\nversion = %q\n", name, version), "src/lib.rs": ""})
	}
	var walk func(value any, key string)
	walk = func(value any, key string) {
		table, _ := value.(map[string]any)
		for name, inner := range table {
			walk(inner, name)
		}
		to, isPath := table["path"].(string)
		if _, err := os.Stat(filepath.Join(dir, at, to)); !isPath || err == nil && !strings.HasSuffix(to, "/") && isFile(filepath.Join(dir, at, to)) || strings.HasSuffix(to, ".rs") {
			return
		}
		version, _ := table["version"].(string)
		if name, is := table["package"].(string); is {
			key = name
		}
		if version == "" {
			version = "0"
		}
		add(to, key, strings.TrimPrefix(version, "="))
	}
	walk(root, "")
	if workspace, is := root["workspace"].(map[string]any); is {
		members, _ := workspace["members"].([]any)
		for _, member := range members {
			if text, _ := member.(string); !strings.ContainsAny(text, "*?[") {
				add(text, strings.ReplaceAll(path.Clean(text), "/", "-"), "0")
			}
		}
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
