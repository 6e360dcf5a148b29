package bounds

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"landfall.build/platform/configuration"
)

// TestStepsShareHalfOfTheProcessesThatTheirUserMayHave: it may be less than the machine allows (ulimit -u).
func TestStepsShareHalfOfTheProcessesThatTheirUserMayHave(t *testing.T) {
	const asked = "LANDFALL_TEST_PROCESSES"
	if os.Getenv(asked) != "" {
		fmt.Println("bound", For(configuration.Builder{Workers: 2}).Processes)
		return
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: min(4000, limit.Max), Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
	if machine := For(configuration.Builder{Workers: 2}).Processes; machine < 1000 {
		t.Skipf("this machine allows steps %d processes, which is less", machine)
	}
	other := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	other.Env = append(os.Environ(), asked+"=1")
	if os.Geteuid() == 0 {
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64_999, Gid: 64_999}}
	}
	said, err := other.CombinedOutput()
	if want := fmt.Sprintf("bound %d\n", min(4000, limit.Max)/4); err != nil || !strings.HasPrefix(string(said), want) {
		t.Errorf("%v, want %s:\n%s", err, want, said)
	}
}
