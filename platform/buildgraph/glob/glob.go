// Package glob selects paths by patterns: those of manifests, of analysis.inputs and of //go:embed.
//
// In a pattern *, ? and [a-z] stay within one name, as in path.Match. ** alone between slashes is any number of
// folders, also none; at the end it is everything below.
package glob

import (
	"errors"
	"path"
	"strings"
)

// Kind is what a segment of a pattern matches.
type Kind uint8

// The kinds.
const (
	// Literal is the name itself, whatever characters it has.
	Literal Kind = iota
	// Wildcard is every name that path.Match accepts.
	Wildcard
	// Deep is **: any number of names.
	Deep
)

// Segment is what stands between two slashes of a pattern.
type Segment struct {
	Text string
	Kind Kind
}

// NewSegment returns the segment that a text without slashes is in a pattern.
func NewSegment(text string) (Segment, error) {
	if text == "**" {
		return Segment{text, Deep}, nil
	}
	if _, err := path.Match(text, ""); err != nil {
		return Segment{}, err
	}
	if strings.ContainsAny(text, `*?[\`) {
		return Segment{text, Wildcard}, nil
	}
	return Segment{text, Literal}, nil
}

// Matches reports whether the segment matches one name.
func (s Segment) Matches(name string) bool {
	switch s.Kind {
	case Literal:
		return s.Text == name
	case Wildcard:
		ok, err := path.Match(s.Text, name)
		return ok && err == nil
	}
	return true
}

// Pattern is a pattern cut at its slashes.
type Pattern []Segment

// ErrNotRelative is the error for a text that is no clean path below the root of a repository.
var ErrNotRelative = errors.New("write a path relative to the repository's root, with neither . nor .. in it")

// Parse returns the pattern that a text relative to a repository's root is.
func Parse(text string) (Pattern, error) {
	if text == "" || text == "." || text == ".." || strings.HasPrefix(text, "../") || path.IsAbs(text) || path.Clean(text) != text {
		return nil, ErrNotRelative
	}
	var p Pattern
	for name := range strings.SplitSeq(text, "/") {
		s, err := NewSegment(name)
		if err != nil {
			return nil, err
		}
		p = append(p, s)
	}
	return p, nil
}

var quoted = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]", `\`, `[\\]`)

// Quote returns the pattern that matches a path alone.
func Quote(path string) string { return quoted.Replace(path) }

// ParseAll parses several patterns.
func ParseAll(texts []string) ([]Pattern, error) {
	patterns := make([]Pattern, len(texts))
	for i, text := range texts {
		p, err := Parse(text)
		if err != nil {
			return nil, err
		}
		patterns[i] = p
	}
	return patterns, nil
}

// MatchesFile reports whether the pattern matches the path of a file. ** at the end takes at least one name.
func (p Pattern) MatchesFile(file string) bool {
	names := strings.Split(file, "/")
	if len(p) > 0 && p[len(p)-1].Kind == Deep {
		names = names[:len(names)-1]
	}
	return p.matches(names)
}

// MatchesFolder reports whether the pattern matches the path of a folder, "" being the root. a/** matches a as well.
func (p Pattern) MatchesFolder(folder string) bool {
	if folder == "" {
		return p.matches(nil)
	}
	return p.matches(strings.Split(folder, "/"))
}

// matches goes back to the last ** only: what an earlier one could take instead, the last one can take too.
func (p Pattern) matches(names []string) bool {
	at, next := 0, 0 // the segment and the name that are compared
	deep, taken := -1, 0
	for next < len(names) {
		switch {
		case at < len(p) && p[at].Kind == Deep:
			deep, taken = at, next
			at++
		case at < len(p) && p[at].Matches(names[next]):
			at, next = at+1, next+1
		case deep >= 0:
			taken++
			at, next = deep+1, taken
		default:
			return false
		}
	}
	for at < len(p) && p[at].Kind == Deep {
		at++
	}
	return at == len(p)
}
