package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenOf are the ids of the processes that a process has started, as far as they are not zombies. Of a process that is gone there are none, nor
// on systems without /proc.
func childrenOf(pid int) ([]int, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var out []int
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("%s has %q", file, word)
			}
			out = append(out, child)
		}
	}
	return out, nil
}
