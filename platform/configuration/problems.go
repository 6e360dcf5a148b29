package configuration

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxProblems bounds a report: a file of another kind would fill the screen.
const maxProblems = 100

// Problem is one thing that is wrong with the file.
type Problem struct {
	// File is the name the file was given by.
	File string `json:"file"`
	// Line counts from 1. For what is missing it is the line of what it is missing
	// in; 0 if the problem is with the file as a whole.
	Line int `json:"line"`
	// Path is where the value is, as in queues.main.workers; empty for the file.
	Path string `json:"path,omitempty"`
	// Message is what is wrong, with the wrong value and what is allowed.
	Message string `json:"message"`
	// Advice is what to do about it.
	Advice string `json:"advice,omitempty"`
}

// String returns one line: file:line: path: message; advice.
func (p Problem) String() string {
	var text strings.Builder
	text.WriteString(p.File)
	if p.Line > 0 {
		text.WriteString(":" + strconv.Itoa(p.Line))
	}
	if p.Path != "" {
		text.WriteString(": " + p.Path)
	}
	text.WriteString(": " + p.Message)
	if p.Advice != "" {
		text.WriteString("; " + p.Advice)
	}
	return text.String()
}

// Problems is everything that is wrong with a file, by line. Load and Parse return
// it as their error.
type Problems []Problem

// Error prints one problem per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// path is a place in the file; its text is what a person reads.
type path struct {
	text   string
	parent *path
}

var root = &path{}

func (p *path) child(name string) *path {
	if !plainName().MatchString(name) {
		name = quote(name)
	}
	if p.text == "" {
		return &path{text: name, parent: p}
	}
	return &path{text: p.text + "." + name, parent: p}
}

func (p *path) index(i int) *path {
	return &path{text: p.text + "[" + strconv.Itoa(i) + "]", parent: p}
}

// findings collects the problems of one file, and knows the line of every value.
type findings struct {
	file  string
	lines map[string]int
	wrong map[string]bool
	list  Problems
	more  int
}

func newFindings(file string) *findings {
	return &findings{file: file, lines: map[string]int{}, wrong: map[string]bool{}}
}

// given reports whether the file has a value at this place.
func (f *findings) given(at *path) bool {
	_, given := f.lines[at.text]
	return given
}

// sound reports whether nothing was found wrong at these places: rules over several
// fields hold back while one of them is wrong by itself.
func (f *findings) sound(places ...*path) bool {
	return !slices.ContainsFunc(places, func(at *path) bool { return f.wrong[at.text] })
}

// line returns the line of the value, or of the closest thing around it that the file has.
func (f *findings) line(at *path) int {
	for ; at != nil; at = at.parent {
		if line, given := f.lines[at.text]; given {
			return line
		}
	}
	return 0
}

func (f *findings) add(at *path, message, advice string) {
	f.addLine(f.line(at), at, message, advice)
}

func (f *findings) addLine(line int, at *path, message, advice string) {
	f.wrong[at.text] = true
	if len(f.list) == maxProblems {
		f.more++
		return
	}
	f.list = append(f.list, Problem{File: f.file, Line: line, Path: at.text, Message: message, Advice: advice})
}

// problems returns the report in the order of the file, or nil.
func (f *findings) problems() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	if f.more > 0 {
		f.list = append(f.list, Problem{
			File:    f.file,
			Message: fmt.Sprintf("%d more problems are not listed", f.more),
			Advice:  "correct these first",
		})
	}
	return f.list
}

// quote makes any text of the file printable on one line, and bounds it.
func quote(text string) string {
	const limit = 80
	if len(text) <= limit {
		return strconv.Quote(text)
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strconv.Quote(text[:cut]) + "…"
}
