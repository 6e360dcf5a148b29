package sandbox

import "errors"

// enterArgument is os.Args[1] of a process that enters a sandbox and then becomes a program. What it needs follows.
const enterArgument = "__landfall-sandboxed"

// exitUnavailable is the exit code of one that cannot enter. It says why on its standard error.
const exitUnavailable = 125

// errNotCalled keeps a program from starting itself without end.
var errNotCalled = errors.New("this program does not call sandbox.MaybeEnter first thing in main")

// called is set once this process has called MaybeEnter.
var called bool

// entry holds the settings of a process that enters a sandbox.
type entry struct {
	Spec Spec
	// Path is the program; "" for one that ends once it is in the sandbox.
	Path, Dir string
	Args      []string
}
