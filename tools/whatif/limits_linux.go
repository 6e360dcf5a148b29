package whatif

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const lowestPriority = 19

// confine gives the present thread the lowest priority, which the process inherits, and has the process end with this one.
func confine(cmd *exec.Cmd) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowestPriority)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// limit bounds the memory of a process, and has the kernel end it before others if memory runs out, as in a container that it shares with the
// gateway. One that has ended needs no bound.
func limit(pid int, memory uint64) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}, nil)
}
