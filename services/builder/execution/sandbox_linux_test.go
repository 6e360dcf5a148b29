package execution

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"landfall.build/platform/sandbox"
)

// boxed is a step in a sandbox.
func boxed(t testing.TB, commands ...Command) Request {
	t.Helper()
	request := step(t, commands...)
	request.ScratchDir = t.TempDir()
	home, tmp := ScratchPaths(request.ScratchDir)
	request.Environment = Environment("/usr/local/bin:/usr/bin:/bin", home, tmp, nil)
	request.Sandbox = &sandbox.Spec{}
	return request
}

func TestASandboxShowsTheSystemAndWhatIsGiven(t *testing.T) {
	given := t.TempDir()
	request := boxed(t, shell(`for path in /usr/bin/env /etc/passwd /dev/null "$HOME" /tmp `+given+`; do test -e "$path" || echo "$path is missing"; done
		for path in /root /home /boot /etc/shadow /dev/kmsg /sys/kernel `+t.TempDir()+`; do test ! -e "$path" || echo "$path is there"; done
		for path in /usr /etc `+given+`; do test ! -w "$path" || echo "$path can be written"; done
		! mount -t tmpfs x /tmp 2>/dev/null || echo "something can be mounted"
		cat /proc/sys/kernel/hostname`))
	request.Sandbox.Read = []string{given}
	result := Run(t.Context(), request)
	mustEnd(t, result, Passed, "")
	if got := string(result.Tail); got != "landfall\n" {
		t.Errorf("output:\n%s", got)
	}
}

func TestAStepFindsNothingOfTheOneBeforeBesideItsHome(t *testing.T) {
	request := boxed(t, shell(`echo left >"$HOME/../go.mod"; mkdir -p "$HOME/../node_modules/left"; chmod 500 "$HOME/../node_modules"`))
	mustEnd(t, Run(t.Context(), request), Passed, "")
	request.Commands = []Command{shell(`ls "$HOME/.."`)}
	result := Run(t.Context(), request)
	mustEnd(t, result, Passed, "")
	if got := string(result.Tail); got != "home\ntmp\n" {
		t.Errorf("beside its home it finds %q", got)
	}
	if _, err := os.Lstat(request.ScratchDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func BenchmarkStep(b *testing.B) {
	for _, network := range append([]sandbox.Network{""}, sandbox.Networks...) {
		name := string(network)
		if network == "" {
			name = "no sandbox"
		}
		b.Run(name, func(b *testing.B) {
			request := boxed(b, Command{Name: "true", Argv: []string{"true"}})
			if request.Sandbox.Network = network; network == "" {
				request.Sandbox = nil
			}
			for b.Loop() {
				if result := Run(b.Context(), request); result.Outcome != Passed {
					b.Fatal(result.Reason)
				}
			}
		})
	}
}

func TestAStepReadsAllLayersAndWritesToItsOwn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := LayersAvailable(t.Context(), dir); err != nil {
		t.Skip(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"low", "high", "upper", "work", "view"} {
		if err := os.Mkdir(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"low/a": "low a\n", "low/b": "low b\n", "high/b": "high b\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	request := boxed(t, shell("cd "+at("view")+" && cat a b && echo changed >a && rm b && echo new >c && ls; ls "+dir))
	request.Overlays = []Overlay{{Overlay: sandbox.Overlay{Path: at("view"), Dir: dir, Lower: []string{"high", "low"}, Upper: "upper", Work: "work"}}}
	result := Run(t.Context(), request)
	mustEnd(t, result, Passed, "")
	if got, want := string(result.Tail), "low a\nhigh b\na\nc\nview\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	for name, want := range map[string]string{"low/a": "low a\n", "low/b": "low b\n", "high/b": "high b\n", "upper/a": "changed\n", "upper/c": "new\n"} {
		if text, err := os.ReadFile(at(name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	request.Sandbox = nil
	mustEnd(t, Run(t.Context(), request), CouldNotRun, "")
}
