package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
)

// TestShellsComplete: a real bash, without the package bash-completion, completes commands, flags and pending changes; zsh and
// fish, where they are installed, take their scripts.
func TestShellsComplete(t *testing.T) {
	dir, binary := t.TempDir(), built(t, "landfall", ".")
	backend := apitest.New("main")
	handler, err := api.NewHandler(api.Options{Backend: backend})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	environment := append(os.Environ(), "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"), "LANDFALL_SERVER="+server.URL)
	shell := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = environment
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	shell(binary, "land", "feature/one", "--title", "First")
	for line, want := range map[string]string{
		"landfall canc":            "cancel",
		"landfall land --reque":    "--request-id",
		"landfall explain feat":    "feature/one",
		"landfall cancel ":         "feature/one",
		"landfall completion fi":   "fish",
		"landfall status --server": "--server",
	} {
		script := `compopt() { :; } # works within a completion only
source <(landfall completion bash)
COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
read -ra COMP_WORDS <<<"$COMP_LINE"
[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
__start_landfall
printf '%s\n' "${COMPREPLY[@]}"`
		got := shell("bash", "--norc", "-c", script, "bash", line)
		if fields := strings.Fields(got); len(fields) == 0 || fields[0] != want {
			t.Errorf("%q: %q, want %s", line, got, want)
		}
	}
	for _, name := range []string{"zsh", "fish"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("%s is not installed", name)
			continue
		}
		script := filepath.Join(dir, "script")
		if err := os.WriteFile(script, []byte(shell(binary, "completion", name)), 0o644); err != nil {
			t.Fatal(err)
		}
		shell(name, "-n", script)
	}
}

func TestCompletionNamesTheShells(t *testing.T) {
	for _, args := range [][]string{{}, {"csh"}, {"bash", "zsh"}} {
		c := completionCommand()
		c.SetArgs(args)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.Execute()
		for _, shell := range []string{"bash", "zsh", "fish"} {
			if err == nil || !strings.Contains(err.Error(), shell) {
				t.Errorf("completion %v does not name %s: %v", args, shell, err)
			}
		}
	}
}
