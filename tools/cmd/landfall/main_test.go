package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// run runs a command line and returns what it prints on each stream.
func run(args ...string) (stdout, stderr string, err error) {
	var out, progress bytes.Buffer
	c := root()
	c.SetOut(&out)
	c.SetErr(&progress)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), progress.String(), err
}

// TestNoCommandIsAnErrorWithHelp: a script that forgets it must not pass for one that has done something.
func TestNoCommandIsAnErrorWithHelp(t *testing.T) {
	out, progress, err := run()
	if err == nil || out != "" || !strings.Contains(progress, "landfall [command]") {
		t.Errorf("%v; on standard output %q, on standard error %q", err, out, progress)
	}
	if _, _, err := run("nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("an unknown command: %v", err)
	}
}

func TestVersionIsPrinted(t *testing.T) {
	out, _, err := run("version")
	if err != nil || !strings.HasPrefix(out, "landfall "+version+" (go") {
		t.Errorf("%q, %v", out, err)
	}
	out, _, err = run("version", "--json")
	var v map[string]string
	if err != nil || json.Unmarshal([]byte(out), &v) != nil || v["version"] != version || v["os"] == "" {
		t.Errorf("%q, %v", out, err)
	}
}
