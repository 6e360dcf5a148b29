// Package gitrepotest has remotes for tests: real git, at the other end of a wire.
package gitrepotest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Remote is a repository that git reaches by ssh, with a program in the place of ssh that runs git on this machine.
type Remote struct {
	t testing.TB
	// Dir has the program, as ssh.
	Dir string
	// URL is for gitrepo.Options.Remote, Env for gitrepo.Options.RemoteEnv.
	URL string
	Env []string
}

// New makes a remote of the bare repository in a folder. Each connection waits for latency before git answers.
func New(t testing.TB, bare string, latency time.Duration) *Remote {
	t.Helper()
	r := &Remote{t: t, Dir: t.TempDir()}
	script := fmt.Sprintf(`#!/bin/sh
echo "$*" >>'%[1]s/connections'
for last; do :; done
if test -e '%[1]s/hangs'; then exec sleep 600; fi
if test -e '%[1]s/away'; then echo 'ssh: no route to host' >&2; exit 255; fi
sleep %[2]f
exec sh -c "$last"
`, r.Dir, latency.Seconds())
	program := filepath.Join(r.Dir, "ssh")
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r.URL, r.Env = "ssh://host"+bare, []string{"GIT_SSH_COMMAND='" + program + "' -o BatchMode=yes"}
	return r
}

// Connections returns how often git has connected to the remote.
func (r *Remote) Connections() int {
	text, err := os.ReadFile(filepath.Join(r.Dir, "connections"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// SetAway says whether the remote can be reached from now on.
func (r *Remote) SetAway(away bool) { r.mark("away", away) }

// SetHangs says whether connections from now on get no answer.
func (r *Remote) SetHangs(hangs bool) { r.mark("hangs", hangs) }

func (r *Remote) mark(name string, set bool) {
	r.t.Helper()
	path := filepath.Join(r.Dir, name)
	err := os.Remove(path)
	if set {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
}
