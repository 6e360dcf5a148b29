package adopt_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fetch runs a client of a registry in a folder of its own, and skips the test where no registry answers.
func fetch(t *testing.T, folder string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = folder
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		missing(t, strings.Join(argv, " ")+": "+err.Error()+"\n"+complaint.String())
	}
	return strings.TrimSpace(string(out))
}

// put writes files into a folder.
func put(t *testing.T, folder string, all files) {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// below returns files with a folder before their names.
func below(folder string, all files) files {
	moved := files{}
	for name, text := range all {
		moved[folder+"/"+name] = text
	}
	return moved
}

// edit replaces a text that must be there.
func edit(t *testing.T, text, old, new string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("there is no %q in\n%s", old, text)
	}
	return strings.Replace(text, old, new, 1)
}

// npmPackage returns the files of a version of a package, with the scripts that a member of a workspace has.
func npmPackage(t *testing.T, version string) files {
	t.Helper()
	folder := t.TempDir()
	archive := fetch(t, folder, "npm", "pack", "--silent", version)
	fetch(t, folder, "tar", "-xzf", archive)
	all := filesBelow(t, filepath.Join(folder, "package"))
	var document map[string]any
	if err := json.Unmarshal([]byte(all["package.json"]), &document); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"devDependencies", "eslintConfig", "husky", "lint-staged"} {
		delete(document, field)
	}
	document["scripts"] = map[string]string{"test": "node --test"}
	text, _ := json.MarshalIndent(document, "", "  ")
	all["package.json"] = string(text) + "\n"
	return all
}

func TestANodeRepositoryIsAdopted(t *testing.T) {
	need(t, "node", "npm")
	r := newRepository(t)
	root := files{
		"README.md": "# shop\n", ".gitignore": "node_modules\n",
		"package.json":                   `{"name": "shop", "private": true, "workspaces": ["packages/*"]}` + "\n",
		"packages/clock/package.json":    `{"name": "clock", "version": "1.0.0", "dependencies": {"ms": "^2.0.0", "bytes": "3.1.2"}, "scripts": {"test": "node --test"}}` + "\n",
		"packages/clock/clock.js":        "module.exports = (text) => require('ms')(text) / 1000 + require('bytes')('1kb');\n",
		"packages/clock/clock.test.js":   "require('node:test')('a day', () => require('node:assert').equal(require('./clock')('1d'), 86400 + 1024));\n",
		"packages/words/package.json":    `{"name": "words", "version": "1.0.0", "scripts": {"test": "node --test"}}` + "\n",
		"packages/words/words.js":        "exports.one = 'one';\n",
		"packages/words/words.test.js":   "require('node:test')('one', () => require('node:assert').ok(require('./words').one));\n",
		"packages/ms/ms.test.js":         "require('node:test')('an hour', () => require('node:assert').equal(require('./index')('1h'), 3600000));\n",
		"packages/ms/node_modules/.keep": "",
	}
	delete(root, "packages/ms/node_modules/.keep")
	var ms files
	for _, version := range []string{"ms@2.1.2", "ms@2.1.3"} {
		ms = npmPackage(t, version)
		maps.Copy(root, below("packages/ms", ms))
		folder := t.TempDir()
		put(t, folder, root)
		fetch(t, folder, "npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
		root["package-lock.json"] = filesBelow(t, folder)["package-lock.json"]
		r.become(version, root)
	}
	r.push()
	r.branch("words", files{"packages/words/words.js": "exports.one = 'ONE';\n"})
	r.branch("broken", files{"packages/ms/index.js": edit(t, ms["index.js"], "var d = h * 24", "var d = h * 25")})
	adopts(t, r, nil, []string{"words"}, "broken")
}

func TestARustRepositoryIsAdopted(t *testing.T) {
	need(t, "cargo")
	r := newRepository(t)
	root := files{
		"README.md": "# shop\n", ".gitignore": "target\n",
		"Cargo.toml":       "[workspace]\nresolver = \"2\"\nmembers = [\"fnv\", \"sums\", \"words\"]\n",
		"sums/Cargo.toml":  "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nfnv = { path = \"../fnv\" }\nitoa = \"1\"\n",
		"sums/src/lib.rs":  "pub fn sum(bytes: &[u8]) -> String {\n    use std::hash::Hasher;\n    let mut hasher = fnv::FnvHasher::default();\n    hasher.write(bytes);\n    itoa::Buffer::new().format(hasher.finish()).to_string()\n}\n\n#[test]\nfn of_a() {\n    assert_eq!(sum(b\"a\"), \"12638187200555641996\");\n}\n",
		"words/Cargo.toml": "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"words/src/lib.rs": "pub fn one() -> u8 {\n    1\n}\n\n#[test]\nfn is_one() {\n    assert_eq!(one(), 1);\n}\n",
	}
	var fnv files
	for _, version := range []string{"1.0.6", "1.0.7"} {
		folder := t.TempDir()
		put(t, folder, files{"Cargo.toml": "[package]\nname = \"x\"\nversion = \"0.1.0\"\n\n[dependencies]\nfnv = \"=" + version + "\"\n", "src/lib.rs": ""})
		fetch(t, folder, "cargo", "vendor", "--quiet")
		fnv = filesBelow(t, filepath.Join(folder, "vendor", "fnv"))
		delete(fnv, ".cargo-checksum.json")
		maps.Copy(root, below("fnv", fnv))
		folder = t.TempDir()
		put(t, folder, root)
		fetch(t, folder, "cargo", "generate-lockfile", "--quiet")
		root["Cargo.lock"] = filesBelow(t, folder)["Cargo.lock"]
		r.become("fnv "+version, root)
	}
	r.push()
	r.branch("words", files{"words/src/lib.rs": "/// One.\n" + root["words/src/lib.rs"]})
	r.branch("broken", files{"fnv/lib.rs": edit(t, fnv["lib.rs"], "0x100000001b3", "0x100000001b5")})
	adopts(t, r, nil, []string{"words"}, "broken")
}

// needUV puts a uv on PATH and returns the folder of its environment.
func needUV(t *testing.T) (tools string) {
	t.Helper()
	need(t, "python3")
	tools = filepath.Join(t.TempDir(), "tools")
	fetch(t, "", "python3", "-m", "venv", tools)
	fetch(t, "", filepath.Join(tools, "bin", "pip"), "install", "--quiet", "uv")
	t.Setenv("PATH", filepath.Join(tools, "bin")+":"+os.Getenv("PATH"))
	return tools
}

func TestAPythonRepositoryIsAdopted(t *testing.T) {
	tools := needUV(t)
	r := newRepository(t)
	root := files{
		"README.md": "# shop\n", ".gitignore": ".venv\n",
		"pyproject.toml":      "[project]\nname = \"shop\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\ndependencies = []\n\n[project.optional-dependencies]\ntests = [\"pytest\"]\n",
		"words/__init__.py":   "def one():\n    return 1\n",
		"tests/test_words.py": "import words\n\n\ndef test_one():\n    assert words.one() == 1\n",
		"checks/test_six.py":  "import six\n\n\ndef test_text():\n    assert six.ensure_str(b\"one\") == \"one\"\n",
	}
	for _, version := range []string{"1.16.0", "1.17.0"} {
		folder := t.TempDir()
		fetch(t, folder, filepath.Join(tools, "bin", "pip"), "install", "--quiet", "--no-deps", "--target", ".", "six=="+version)
		root["six.py"] = filesBelow(t, folder)["six.py"]
		folder = t.TempDir()
		put(t, folder, root)
		fetch(t, folder, filepath.Join(tools, "bin", "uv"), "lock", "--quiet")
		root["uv.lock"] = filesBelow(t, folder)["uv.lock"]
		r.become("six "+version, root)
	}
	r.push()
	r.branch("words", files{"words/__init__.py": "def one():\n    return 3 - 2\n"})
	r.branch("broken", files{"six.py": edit(t, root["six.py"], "def ensure_str(s, encoding='utf-8', errors='strict'):", "def ensure_str(s, encoding='utf-16', errors='strict'):")})
	adopts(t, r, nil, []string{"words"}, "broken")
}
