package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	localLimit    = 2 * time.Minute  // a command on the mirror alone
	networkLimit  = 15 * time.Minute // a command that talks to the remote
	defaultOutput = 64 << 20         // bytes of standard output
	stderrBound   = 16 << 10
	killDelay     = 5 * time.Second // from kill to giving up on a process's pipes
	// pushKillDelay is killDelay of a push, which is busy with the remote's own files where that is a path. It is less than what waits for
	// it: 30 s where a lander loses its queue, and the 60 s in which Kubernetes lets a whole process end.
	pushKillDelay = 25 * time.Second
)

// settings is the configuration of every git process. The mirror's own file repeats none
// of it, so that a mirror made by another version behaves the same.
var settings = []string{
	"gc.auto=0", "maintenance.auto=false",
	"core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
	"core.fsmonitor=false", "core.untrackedCache=false", "core.logAllRefUpdates=false",
	// Other systems take a file named git~1 for .git; a worker's checkout is on none of them, and a name that git
	// would not check out would be found by whoever builds it.
	"core.protectNTFS=false", "core.protectHFS=false",
	"core.precomposeUnicode=false", "core.autocrlf=false", "core.safecrlf=false", "core.eol=lf",
	// A pack appears whole or not at all; loose objects of a killed fetch would leave a
	// commit behind whose trees are missing.
	"fetch.unpackLimit=1", "transfer.unpackLimit=1",
	"protocol.version=2", "advice.detachedHead=false", "commit.gpgSign=false",
}

const (
	priorityOfGroup = 1 // PRIO_PGRP, which package syscall does not name everywhere
	lowestPriority  = 19
)

// invocation is one run of git.
type invocation struct {
	args     []string
	stdin    []byte
	env      []string      // on top of the clean environment
	dir      string        // working directory; the mirror when empty
	network  bool          // talks to the remote
	maxBytes int           // bound of standard output; defaultOutput when 0
	limit    time.Duration // bound of its time; localLimit or networkLimit when 0
	nice     bool          // gives way to all other processes
	push     bool          // changes the remote
	memory   uint64        // bound of its memory, where the system keeps one; none when 0
	work     time.Duration // bound of its processor time, likewise
}

// environment returns all that a git process gets to see.
func (r *Repo) environment() []string {
	env := []string{
		"GIT_DIR=" + r.dir, "HOME=" + r.dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "GIT_EDITOR=true", "GIT_PAGER=cat",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "GIT_PROTOCOL_FROM_USER=0",
		"GIT_SSH_COMMAND=ssh -o BatchMode=yes", "GIT_OPTIONAL_LOCKS=0", "GIT_FLUSH=1",
	}
	if tmp := os.Getenv("TMPDIR"); tmp != "" {
		env = append(env, "TMPDIR="+tmp)
	}
	return env
}

// command prepares a git process in a group of its own, so that the helpers it starts
// (index-pack, ssh) end with it.
func (r *Repo) command(ctx context.Context, run invocation) *exec.Cmd {
	args := make([]string, 0, 2*len(settings)+len(run.args))
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, run.args...)...)
	cmd.Env = append(r.environment(), run.env...)
	if run.network {
		cmd.Env = append(cmd.Env, r.networkEnv...)
	}
	cmd.Dir = run.dir
	if cmd.Dir == "" {
		cmd.Dir = r.dir
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Asked to end, git takes its lock files away. A push to a repository on this machine that is killed would leave
	// the branch locked for ever, so it has more time for that: a busy machine took longer than killDelay.
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGTERM) }
	if cmd.WaitDelay = killDelay; run.push {
		cmd.WaitDelay = pushKillDelay
	}
	return cmd
}

func killGroup(cmd *exec.Cmd) error { return signalGroup(cmd, syscall.SIGKILL) }

func signalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	if cmd.Process == nil {
		return nil
	}
	if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return cmd.Process.Kill()
	}
	return nil
}

// run runs git and returns its standard output. A non-zero exit is a *CommandError, with
// the output nevertheless, since some commands answer by their exit code. So is ErrTooLarge, with the first maxBytes.
func (r *Repo) run(ctx context.Context, run invocation) ([]byte, error) {
	out, err := r.runOnce(ctx, run)
	if err != nil && r.freeLocks(err) {
		out, err = r.runOnce(ctx, run)
	}
	return out, err
}

func (r *Repo) runOnce(ctx context.Context, run invocation) ([]byte, error) {
	limit := localLimit
	if run.network {
		limit = networkLimit
	}
	if run.limit > 0 {
		limit = run.limit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %v", limit))
	defer cancel()
	bound := run.maxBytes
	if bound == 0 {
		bound = defaultOutput
	}
	cmd := r.command(ctx, run)
	stdout, stderr := &boundedBuffer{bound: bound, onFull: cancel}, &boundedBuffer{bound: stderrBound}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(run.stdin), stdout, stderr
	err, bounded, timed := cmd.Start(), false, false
	if err == nil {
		bounded = run.memory > 0 && boundMemory(cmd.Process.Pid, run.memory)
		timed = run.work > 0 && boundProcessor(cmd.Process.Pid, run.work)
		if run.nice {
			_ = syscall.Setpriority(priorityOfGroup, cmd.Process.Pid, lowestPriority)
		}
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		_ = killGroup(cmd) // helpers that did not end with it
	}
	if err == nil && !stdout.full {
		return stdout.Bytes(), nil
	}
	if stdout.full {
		return stdout.Bytes(), fmt.Errorf("output of git %s: %w (%d bytes)", run.args[0], ErrTooLarge, bound)
	}
	failure := &CommandError{Code: -1, Stderr: r.redact(stderr.String())}
	for _, arg := range run.args {
		failure.Args = append(failure.Args, r.redact(arg))
	}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		failure.Code = ended.ExitCode()
		failure.overMemory = bounded && outOfMemory(failure.Stderr, run.memory)
		status, is := ended.Sys().(syscall.WaitStatus)
		failure.overWork = timed && is && metProcessorBound(status)
	} else {
		failure.Stderr = strings.TrimSpace(failure.Stderr + "\n" + err.Error())
	}
	if ctx.Err() != nil {
		failure.Err = context.Cause(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(failure.Err, context.DeadlineExceeded) {
			failure.Err = fmt.Errorf("%w: %w", context.DeadlineExceeded, failure.Err)
		}
	}
	return stdout.Bytes(), failure
}

// outOfMemory reports whether a git process whose memory was bounded has said that it met the bound. Its words are "Out of memory, malloc
// failed" and "inflate: out of memory". It has ended, so that its bound is free unless the machine itself is short of memory. (Its Maxrss
// would not tell: that counts this process, which it was forked from.)
func outOfMemory(stderr string, bound uint64) bool {
	return strings.Contains(strings.ToLower(stderr), "out of memory") && isMemoryFree(bound)
}

// git runs a local command that has nothing special about it.
func (r *Repo) git(ctx context.Context, args ...string) ([]byte, error) {
	return r.run(ctx, invocation{args: args})
}

// redact takes the credentials of the remote's URL out of a text.
func (r *Repo) redact(text string) string {
	text = strings.ReplaceAll(text, r.remote, r.shownRemote)
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return text
}

// boundedBuffer keeps the first bytes written to it, and takes the rest without error so
// that the writer does not block; onFull, if there is one, ends the writer. It has no method
// of bytes.Buffer that takes more: what copies into it would use that.
type boundedBuffer struct {
	kept   bytes.Buffer
	bound  int
	full   bool
	onFull func()
}

func (b *boundedBuffer) Bytes() []byte  { return b.kept.Bytes() }
func (b *boundedBuffer) String() string { return b.kept.String() }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if room := b.bound - b.kept.Len(); len(p) > room {
		b.kept.Write(p[:room])
		if !b.full && b.onFull != nil {
			b.onFull()
		}
		b.full = true
		return len(p), nil
	}
	return b.kept.Write(p)
}
