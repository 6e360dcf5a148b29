//go:build !linux

package bounds

import (
	"errors"
	"syscall"
)

// Tree cannot be had here: only Linux has cgroups.
type Tree struct{}

// Group is none.
type Group struct{}

// Delegated fails.
func Delegated() (*Tree, error) { return nil, errors.New("there are cgroups on Linux only") }

// Open returns no group.
func (*Tree) Open(Limits) (*Group, error) { return nil, nil }

// Join does nothing.
func (*Group) Join(*syscall.SysProcAttr) {}

// Exceeded returns "".
func (*Group) Exceeded() string { return "" }

// Exceeded returns "": nothing is counted here.
func (Limits) Exceeded(root int, shared string) string { return "" }

// Close does nothing.
func (*Group) Close() error { return nil }

func machine() (memory int64, processes int) { return 0, 0 }
