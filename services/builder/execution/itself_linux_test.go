package execution

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/sandbox"
)

func init() {
	// helper-hold waits until helper-seize has found it, and prints what that could do.
	helpers["helper-hold"] = func([]string) {
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
			if text, err := os.ReadFile("seized"); err == nil {
				fmt.Print(string(text))
				return
			}
		}
	}
	// helper-seize waits for another program, and tries to set its permissions.
	helpers["helper-seize"] = func([]string) {
		own, _ := os.Stat("/proc/self/exe")
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
			running, _ := filepath.Glob("/proc/[0-9]*/exe")
			for _, path := range running {
				program, err := os.Open(path)
				if err != nil {
					continue
				}
				arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
				info, err := program.Stat()
				if err == nil && !os.SameFile(own, info) && strings.Contains(string(arguments), "helper-hold\x00") {
					text := fmt.Sprintf("mode: %v, time: %v\n", program.Chmod(info.Mode().Perm()), os.Chtimes(path, info.ModTime(), info.ModTime()))
					_ = os.WriteFile("seizing", []byte(text), 0o600)
					_ = os.Rename("seizing", "seized")
					return
				}
				program.Close()
			}
		}
	}
}

// The supervisor of a step, and a command before it begins, run the service's program. A step can have the kernel run that program as its
// own, and so reach its file, which is not in the sandbox. A step that could set the file's permissions could keep the service from starting
// any further step.
func TestAStepDoesNotReachTheProgramOfTheService(t *testing.T) {
	for how, argv := range map[string][]string{
		"by its path": {"/proc/self/exe", "helper-hold"}, "by a link": {"./link", "helper-hold"}, "as an interpreter": {"./script"},
	} {
		t.Run(how, func(t *testing.T) {
			request := boxed(t, shell("./helper helper-seize >/dev/null 2>&1 &"), Command{Name: "hold", Argv: argv})
			if err := os.Symlink("/proc/self/exe", filepath.Join(request.Worktree, "link")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(request.Worktree, "script"), []byte("#!/proc/self/exe helper-hold\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			request.Sandbox = &sandbox.Spec{}
			result := Run(t.Context(), request)
			mustEnd(t, result, Passed, "")
			if got := string(result.Tail); strings.Contains(got, "<nil>") || !strings.Contains(got, "mode: ") {
				t.Errorf("of the program of the service it could set %s", got)
			}
		})
	}
}
