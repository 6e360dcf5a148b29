//go:build !linux || !(amd64 || arm64)

package lookups

import (
	"errors"
	"os"
)

// Watch sees nothing on this system.
type Watch struct{}

// New returns a watch that sees nothing.
func New(root string, missing Missing) *Watch { return &Watch{} }

// Found returns nothing.
func (w *Watch) Found() []Lookup { return nil }

// Err returns nil.
func (w *Watch) Err() error { return nil }

// Serve closes a listener.
func (w *Watch) Serve(listener *os.File) { listener.Close() }

// Install returns an error.
func Install(socket int) error { return errors.ErrUnsupported }

// Receive returns an error.
func Receive(socket int) (*os.File, error) { return nil, errors.ErrUnsupported }
