package execution

import (
	"os"
	"strings"
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
	request := boxed(t, shell(`ls -la / /tmp /dev /etc $HOME; id; cat /proc/mounts; hostname; grep Cap /proc/self/status; ls /root /home /work; mount -t tmpfs x /tmp; ls -la /proc; ps aux`))
	result := Run(t.Context(), request)
	t.Logf("%v %s\n%s", result.Outcome, result.Reason, result.Tail)
	_ = os.Getpid
	_ = strings.Cut
}

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"without", "sandbox"} {
		b.Run(name, func(b *testing.B) {
			request := boxed(b, Command{Name: "true", Argv: []string{"true"}})
			if name == "without" {
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
