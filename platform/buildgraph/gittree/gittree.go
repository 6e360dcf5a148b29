// Package gittree is a tree of a repository as the adapters read it.
package gittree

import (
	"context"
	"errors"
	"fmt"

	"landfall.build/platform/gitrepo"
)

// ErrTooLarge is what a Tree's Blob wraps when the blob is larger than its limit.
var ErrTooLarge = errors.New("the blob is larger than its limit")

// Entry is one path of a tree that is not itself a folder.
type Entry struct {
	// Path is relative to the root, with slashes.
	Path string
	// Mode is git's: 0o100644, 0o100755, 0o120000 (symbolic link), 0o160000
	// (submodule).
	Mode uint32
	// Kind is git's: blob, commit; entries of kind tree are ignored.
	Kind string
	// Object is the content's id.
	Object string
}

// Tree is one tree of a repository, unchanging. Its methods are called from several goroutines at once.
type Tree interface {
	// Entries returns all paths below the root, in any order.
	Entries(ctx context.Context) ([]Entry, error)
	// Blob returns a content by its id; an error that wraps ErrTooLarge when it is
	// longer than max bytes.
	Blob(ctx context.Context, object string, max int64) ([]byte, error)
}

// Mirror is what New needs of a git mirror; *gitrepo.Repo is one.
type Mirror interface {
	Tree(ctx context.Context, treeish string) ([]gitrepo.Entry, error)
	Blob(ctx context.Context, id string, maxBytes int64) ([]byte, error)
}

// New returns a tree of a mirror by its id.
func New(mirror Mirror, id string) Tree { return tree{mirror, id} }

type tree struct {
	mirror Mirror
	id     string
}

// Entries implements Tree.
func (t tree) Entries(ctx context.Context) ([]Entry, error) {
	files, err := t.mirror.Tree(ctx, t.id)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(files))
	for i, f := range files {
		entries[i] = Entry{Path: f.Path, Mode: f.Mode, Kind: "blob", Object: f.Object}
		if f.Kind == gitrepo.Submodule {
			entries[i].Kind = "commit"
		}
	}
	return entries, nil
}

// Blob implements Tree.
func (t tree) Blob(ctx context.Context, object string, max int64) ([]byte, error) {
	content, err := t.mirror.Blob(ctx, object, max)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return content, err
}
