// Package codeowners reads CODEOWNERS files: who owns which files of a repository, as GitHub and GitLab define it.
//
// Patterns follow GitHub's rules, which are those of .gitignore without negations and ranges of characters, and with one
// exception: "docs/*" takes the files in docs alone, not those below. The last pattern that matches wins; one without owners
// makes its files unowned. Sections are GitLab's: the last match of each section counts, and a section may have owners for
// its patterns that name none. A line that is wrong is skipped, as both hosts do.
package codeowners

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"landfall.build/platform/buildgraph/glob"
)

// Paths are where a repository may have the file; the first that is there counts.
var Paths = []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"}

// MaxBytes is the size above which a file is not read: GitHub's limit.
const MaxBytes = 3 << 20

// MaxOwners bounds the owners of one pattern and of one file.
const MaxOwners = 20

// File is a CODEOWNERS file. The nil File owns nothing.
type File struct {
	// sections are in the order of the file; the first has what stands before any heading.
	sections []*section
}

type section struct {
	name   string
	owners []string // of patterns that name none
	rules  []rule
}

type rule struct {
	pattern glob.Pattern
	// below: a folder that matches gives its files too.
	below  bool
	owners []string
}

var heading = regexp.MustCompile(`^\^?\[([^\]]+)\](?:\[[0-9]*\])?(?:\s+(.*))?$`)

// Parse reads a file.
func Parse(content []byte) *File {
	f := &File{sections: []*section{{}}}
	now := f.sections[0]
	for line := range strings.Lines(strings.ToValidUTF8(string(content), "\uFFFD")) {
		line = strings.TrimSpace(line)
		if m := heading.FindStringSubmatch(line); m != nil {
			now = f.section(m[1])
			if owners, ok := ownersOf(fields(m[2])); ok && len(owners) > 0 {
				now.owners = owners
			}
			continue
		}
		words := fields(line)
		if len(words) == 0 {
			continue
		}
		r, ok := newRule(words[0])
		if !ok {
			continue
		}
		if r.owners, ok = ownersOf(words[1:]); !ok {
			continue
		}
		if len(r.owners) == 0 && !strings.HasPrefix(words[0], "!") {
			r.owners = now.owners
		}
		now.rules = append(now.rules, r)
	}
	return f
}

// section returns the section of a name, in any case: a name that comes again goes on with its section.
func (f *File) section(name string) *section {
	for _, s := range f.sections[1:] {
		if strings.EqualFold(s.name, name) {
			return s
		}
	}
	s := &section{name: name}
	f.sections = append(f.sections, s)
	return s
}

// fields cuts a line at blanks that no backslash precedes, up to a comment.
func fields(line string) (words []string) {
	var word strings.Builder
	escaped := false
	for _, r := range line + " " {
		switch {
		case !escaped && r == '#' && word.Len() == 0:
			return words
		case !escaped && unicode.IsSpace(r):
			if word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			continue
		}
		escaped = !escaped && r == '\\'
		word.WriteRune(r)
	}
	return words
}

// ownersOf returns the owners that words name; false if one of them is neither an @name nor an e-mail address.
func ownersOf(words []string) (owners []string, ok bool) {
	for _, w := range words {
		if at := strings.IndexByte(w, '@'); at < 0 || at == len(w)-1 || strings.ContainsFunc(w, unicode.IsControl) || len(w) > 200 {
			return nil, false
		}
		if len(owners) < MaxOwners && !slices.Contains(owners, w) {
			owners = append(owners, w)
		}
	}
	return owners, true
}

// newRule reads a pattern.
func newRule(text string) (r rule, ok bool) {
	text = strings.TrimPrefix(text, "!") // GitLab's exclusion; a file that matches has no owner here
	folder := strings.HasSuffix(text, "/")
	names := strings.Split(strings.Trim(text, "/"), "/")
	if names[0] == "" && len(names) == 1 {
		return r, false
	}
	anchored := strings.HasPrefix(text, "/") || len(names) > 1
	if !anchored {
		names = append([]string{"**"}, names...)
	}
	for _, name := range names {
		segment, err := glob.NewSegment(strings.ReplaceAll(name, "[", `\[`))
		if err != nil {
			return r, false
		}
		r.pattern = append(r.pattern, segment)
	}
	last := names[len(names)-1]
	if r.below = last != "**" && !(anchored && last == "*"); folder {
		r.pattern, r.below = append(r.pattern, glob.Segment{Text: "**", Kind: glob.Deep}), false
	}
	return r, true
}

func (r *rule) matches(file string) bool {
	if first := r.pattern[0]; first.Kind == glob.Literal {
		if rest, begins := strings.CutPrefix(file, first.Text); !begins || rest != "" && rest[0] != '/' {
			return false
		}
	}
	return r.pattern.MatchesFile(file) ||
		r.below && append(slices.Clip(r.pattern), glob.Segment{Text: "**", Kind: glob.Deep}).MatchesFile(file)
}

// Owners returns who owns a file, in the order of the CODEOWNERS file; nil for nobody. Not to be changed.
func (f *File) Owners(file string) (owners []string) {
	if f == nil {
		return nil
	}
	for _, s := range f.sections {
		for i := len(s.rules) - 1; i >= 0; i-- {
			if !s.rules[i].matches(file) {
				continue
			}
			if owners == nil {
				owners = s.rules[i].owners
				break
			}
			for _, o := range s.rules[i].owners {
				if len(owners) < MaxOwners && !slices.Contains(owners, o) {
					owners = append(slices.Clip(owners), o)
				}
			}
			break
		}
	}
	return owners
}
