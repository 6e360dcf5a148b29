package gograph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
)

// ErrUnknownModule is what Requirements give for a module that they will never
// know. It is taken to depend on every other module.
var ErrUnknownModule = errors.New("what the module requires is not known")

// Requirements knows what external modules require in turn, so that a new
// version of one module affects only those targets that can reach it. Without
// it every external module is taken to depend on all others.
//
// What it answers is part of target hashes: for one version it must give the
// same, ErrUnknownModule too, at any time and to all services.
type Requirements interface {
	// GoMod returns the go.mod of a version. An error other than ErrUnknownModule
	// ends the load, which can be tried again.
	GoMod(ctx context.Context, path, version string) ([]byte, error)
}

// ProxyFolder is a folder laid out as a module proxy serves it, such as
// $GOMODCACHE/cache/download or one that a file:// GOPROXY names.
type ProxyFolder string

// GoMod implements Requirements. A file that is not there is an error that can
// be tried again: whoever fills the folder may not be done.
func (p ProxyFolder) GoMod(_ context.Context, path, version string) ([]byte, error) {
	escapedPath, err := module.EscapePath(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknownModule, err)
	}
	escapedVersion, err := module.EscapeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknownModule, err)
	}
	return os.ReadFile(filepath.Join(string(p), filepath.FromSlash(escapedPath), "@v", escapedVersion+".mod"))
}
