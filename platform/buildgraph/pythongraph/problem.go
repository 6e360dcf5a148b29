package pythongraph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoProject is the error for a tree without a Python project.
var ErrNoProject = errors.New("no Python project: neither pyproject.toml, setup.py, setup.cfg nor requirements.txt")

// maxProblems bounds how many problems one error lists.
const maxProblems = 20

// Problem is one mistake in one file that defines projects.
type Problem struct {
	// File is the file's path; Line counts from 1, 0 when the problem is the file as a whole.
	File string
	Line int
	// Message says what is wrong and what to do.
	Message string
}

// String returns file:line: message.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// Invalid is the error for a tree whose projects are defined wrongly. Trying again changes nothing.
type Invalid struct {
	// Problems are the first 20, by file and line.
	Problems []Problem
	// More is how many others there are.
	More int
}

// Error lists the problems, one a line.
func (e *Invalid) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// problems collects the mistakes of a tree.
type problems []Problem

func (p *problems) add(file string, line int, format string, args ...any) {
	*p = append(*p, Problem{File: strings.ToValidUTF8(file, "\uFFFD"), Line: line, Message: fmt.Sprintf(format, args...)})
}

// invalid returns the error, or nil if there are no problems.
func (p problems) invalid() error {
	if len(p) == 0 {
		return nil
	}
	sorted := slices.Clone(p)
	slices.SortStableFunc(sorted, func(x, y Problem) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Message, y.Message))
	})
	sorted = slices.Compact(sorted)
	shown := min(len(sorted), maxProblems)
	return &Invalid{Problems: sorted[:shown], More: len(sorted) - shown}
}
