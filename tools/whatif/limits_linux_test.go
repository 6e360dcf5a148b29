package whatif

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	limited = "priority 19, memory 268435456, ended first 1000"
	greedy  = "it needs more than 256 MiB of memory; ask for fewer changes"
)

// limits says what the present process has.
func limits() string {
	var memory unix.Rlimit
	for memory.Max != 1<<28 { // it is set when the process has begun
		if err := unix.Getrlimit(unix.RLIMIT_DATA, &memory); err != nil {
			return err.Error()
		}
	}
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	first, errFirst := os.ReadFile("/proc/self/oom_score_adj")
	return fmt.Sprintf("priority %d, memory %d, ended first %s %v", 20-nice, memory.Max, strings.TrimSpace(string(first)), errors.Join(err, errFirst))
}
