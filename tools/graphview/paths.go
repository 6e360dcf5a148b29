package graphview

import (
	"context"
	"errors"
	"strings"

	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// pathSet is the paths that a change touches, with the folders that they are in.
type pathSet struct {
	files, folders map[string]bool
	// everything: there are too many to list.
	everything bool
}

// pathsOf lists what landing commits alter by themselves. Both sides of a rename are in it.
func (v *view) pathsOf(ctx context.Context, picks []landing.Pick) (pathSet, error) {
	s := pathSet{files: map[string]bool{}, folders: map[string]bool{}}
	for _, p := range picks {
		changed, err := v.DiffTrees(ctx, p.Base, p.Head)
		if errors.Is(err, gitrepo.ErrTooLarge) {
			s.everything = true
			return s, nil
		}
		if err != nil {
			return s, err
		}
		for _, c := range changed {
			s.files[c.Path] = true
			for at := strings.LastIndexByte(c.Path, '/'); at > 0; at = strings.LastIndexByte(c.Path[:at], '/') {
				s.folders[c.Path[:at]] = true
			}
		}
	}
	return s, nil
}

// meets reports whether two changes touch one path, or one has a file where the other has a folder. Only
// then can git find a conflict between them.
func (s pathSet) meets(t pathSet) bool {
	if s.everything || t.everything {
		return true
	}
	few, many := s, t
	if len(few.files) > len(many.files) {
		few, many = many, few
	}
	for file := range few.files {
		if many.files[file] || many.folders[file] {
			return true
		}
	}
	for folder := range few.folders {
		if many.files[folder] {
			return true
		}
	}
	return false
}
