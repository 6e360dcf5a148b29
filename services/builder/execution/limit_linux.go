package execution

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// errUnlimited: the command was not started, since it would have had no limit.
var errUnlimited = errors.New("its memory could not be limited")

// refusalsDescriptor is where a process that cannot become its command writes why.
const refusalsDescriptor = 3

// refusal is why a process did not become its command.
type refusal struct {
	Errno syscall.Errno
	// Limit is set if it could not have the limit.
	Limit bool
}

// forkExec starts a command with a memory limit in bytes, 0 for none. A command
// that was limited once it runs could have taken its memory, or started what is
// under no limit, before: a process of ours has the limit first, and then becomes
// the command. (The supervisor cannot lower its own for the time of a fork: it
// may have more memory than a command is given.)
func forkExec(path string, argv []string, limit int64, attributes *syscall.ProcAttr) (int, error) {
	if limit == 0 {
		return syscall.ForkExec(path, argv, attributes)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnlimited, err)
	}
	defer reader.Close()
	limited := *attributes
	limited.Files = append(append([]uintptr(nil), attributes.Files...), writer.Fd())
	pid, err := syscall.ForkExec("/proc/self/exe", append([]string{"landfall", limitedArgument, strconv.FormatInt(limit, 10), path}, argv...), &limited)
	writer.Close()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnlimited, err)
	}
	var why refusal
	if json.NewDecoder(reader).Decode(&why) != nil {
		return pid, nil // the pipe was closed by the exec, or by an end that its status shows
	}
	if why.Limit {
		return 0, fmt.Errorf("%w: %w", errUnlimited, why.Errno)
	}
	return 0, why.Errno
}

// becomeLimited gives this process the limit and makes it the command of
// arguments: limit, path, argv. It does not return.
func becomeLimited(arguments []string) {
	refusals := os.NewFile(refusalsDescriptor, "refusals")
	refuse := func(why refusal) {
		_ = json.NewEncoder(refusals).Encode(why)
		syscall.Exit(1)
	}
	if len(arguments) < 3 {
		syscall.Exit(1) // somebody typed the hidden argument
	}
	limit, err := strconv.ParseUint(arguments[0], 10, 63)
	if err != nil {
		syscall.Exit(1)
	}
	syscall.CloseOnExec(refusalsDescriptor)
	var errno syscall.Errno
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		errors.As(err, &errno)
		refuse(refusal{Errno: errno, Limit: true})
	}
	errors.As(syscall.Exec(arguments[1], arguments[2:], os.Environ()), &errno)
	refuse(refusal{Errno: errno})
}
