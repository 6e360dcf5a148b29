// Package supply_test tests what the Makefile says of the binary's parts, and that the binary is the same wherever it is built.
package supply_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheCheckOfVulnerabilitiesFailsForFindings, and says in one line what it could not do.
func TestTheCheckOfVulnerabilitiesFailsForFindings(t *testing.T) {
	copied := t.TempDir()
	for name, c := range map[string]struct {
		program, database string
		fails             bool
		want              string
	}{
		"nothing is known":                  {"exit 0", "", false, "no vulnerability is known in landfall (https://vuln.go.dev)\n"},
		"something is found":                {"echo 'Vulnerability #1: GO-2026-0001'; exit 3", "", true, "Vulnerability #1: GO-2026-0001\n"},
		"the database is away":              {"echo 'govulncheck: fetching vulnerabilities: Get \"https://vuln.go.dev/index/db.json.gz\": no such host' >&2; exit 1", "", false, "vulnerabilities: nothing was checked, since https://vuln.go.dev cannot be reached; LANDFALL_VULNERABILITY_DB takes a copy of it (a folder or a URL)\n"},
		"a copy is asked":                   {`[ "$*" = "-mode=binary -db file://` + copied + ` landfall" ] || exit 1`, copied, false, "no vulnerability is known in landfall (file://" + copied + ")\n"},
		"a mirror is asked":                 {`[ "$*" = "-mode=binary -db https://vuln.example.com landfall" ] || exit 1`, "https://vuln.example.com", false, "no vulnerability is known in landfall (https://vuln.example.com)\n"},
		"the copy is not there":             {"exit 0", copied + "/none", true, "LANDFALL_VULNERABILITY_DB names no folder\n"},
		"the mirror is away":                {"echo 'govulncheck: fetching vulnerabilities: refused'; exit 1", "https://vuln.example.com", true, "govulncheck: fetching vulnerabilities: refused\n"},
		"the check itself does not work":    {"echo 'could not parse the binary'; exit 1", "", true, "could not parse the binary\n"},
		"a finding while something is away": {"echo 'see https://vuln.go.dev/GO-2026-0001'; exit 3", "", true, "see https://vuln.go.dev/GO-2026-0001\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tools := t.TempDir()
			if err := os.WriteFile(filepath.Join(tools, "govulncheck-v9"), []byte("#!/bin/sh\n"+c.program+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), "./run", "vulnerabilities", tools, "v9", "landfall")
			command.Env = append(os.Environ(), "LANDFALL_VULNERABILITY_DB="+c.database)
			out, err := command.Output()
			if (err != nil) != c.fails || string(out) != c.want {
				t.Errorf("%v, %q, want %q", err, out, c.want)
			}
		})
	}
}

// TestABuildIsTheSameFromAnyFolder: two copies of the sources, in different folders, give the same bytes.
func TestABuildIsTheSameFromAnyFolder(t *testing.T) {
	tracked, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z", "--", "Makefile", "go.work", "go.work.sum", "events", "engine", "learning", "platform", "services", "tools").Output()
	if err != nil {
		t.Skipf("the sources are in no checkout: %v", err)
	}
	var sums []string
	for _, folder := range []string{filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "another", "place")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		archive := exec.CommandContext(t.Context(), "tar", "-C", "../..", "--null", "-T", "-", "-cf", "-")
		archive.Stdin = bytes.NewReader(tracked)
		unpack := exec.CommandContext(t.Context(), "tar", "-C", folder, "-xf", "-")
		if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
			t.Fatal(err)
		}
		if err := archive.Start(); err != nil {
			t.Fatal(err)
		}
		if err := unpack.Run(); err != nil {
			t.Fatal(err)
		}
		if err := archive.Wait(); err != nil {
			t.Fatal(err)
		}
		build := exec.CommandContext(t.Context(), "make", "-C", folder, "build", "RELEASE=1", "VERSION=test")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		sums = append(sums, sumOf(t, filepath.Join(folder, "bin", "landfall"), folder))
	}
	if sums[0] != sums[1] {
		t.Errorf("the binaries are %s", strings.Join(sums, " and "))
	}
}

// sumOf returns the digest of a binary, which does not name the folder that it was built in.
func sumOf(t *testing.T, binary, folder string) string {
	t.Helper()
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(folder)) {
		t.Errorf("the binary names %s", folder)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
