package graphview

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTheCommandsLookThroughBazel at a workspace that has neither manifests nor Go modules.
func TestTheCommandsLookThroughBazel(t *testing.T) {
	if _, err := exec.LookPath("bazel"); err != nil {
		const missing = "there is no Bazel on this machine: run tools/bazel/install (Debian: apt-get install bazel-bootstrap)"
		if os.Getenv("LANDFALL_TEST_BAZEL") == "required" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	f := newFixture(t, files{
		"WORKSPACE": "", "a/BUILD": "filegroup(name = \"a\", srcs = glob([\"*.txt\"]), visibility = [\"//visibility:public\"])\n", "a/a.txt": "1\n",
		"b/BUILD": "filegroup(name = \"b\", srcs = [\"//a\"])\n", "c/BUILD": "filegroup(name = \"c\", srcs = [\"c.txt\"])\n", "c/c.txt": "1\n",
	})
	f.branch("glob", "main", files{"a/BUILD": "filegroup(name = \"a\", srcs = glob([\"*.txt\", \"*.md\"]), visibility = [\"//visibility:public\"])\n"})
	f.branch("file", "main", files{"a/new.md": "1\n"})
	f.branch("apart", "main", files{"c/c.txt": "2\n"})
	out, err := f.run("targets", "--rev", "main")
	if err != nil || !strings.Contains(out, "//b:b") || !strings.Contains(out, "//a [package]") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = f.run("affected", "--base", "main", "--head", "file")
	if err != nil || !strings.Contains(out, "//a [package]") || strings.Contains(out, "//b:b") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = f.run("conflicts", "--base", "main", "--change", "glob", "--change", "file", "--change", "apart", "--json")
	var found Matrix
	if err == nil {
		err = json.Unmarshal([]byte(out), &found)
	}
	if err != nil || len(found.Conflicts) != 1 || found.Conflicts[0].A != "glob" || found.Conflicts[0].B != "file" || len(found.Independent) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
