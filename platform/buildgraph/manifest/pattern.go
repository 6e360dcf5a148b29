package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

// pattern is a pattern of a manifest, relative to the root and cleaned.
type pattern struct {
	glob.Pattern
	text string
	// path is that of the one file that a pattern without wildcards names; else empty.
	path string
}

// parsePattern reads a pattern of a manifest in a folder, which is relative to the root. Its errors continue a sentence.
func parsePattern(folder, text string) (*pattern, error) {
	switch {
	case text == "":
		return nil, errors.New("is empty; name a file or a pattern")
	case len(text) > maxPatternBytes:
		return nil, fmt.Errorf("is longer than %d bytes; shorten it", maxPatternBytes)
	case strings.ContainsRune(text, 0):
		return nil, errors.New("holds a NUL character; remove it")
	case strings.Contains(text, `\`):
		return nil, errors.New(`holds a backslash; write folders with /, and [*] for a literal *`)
	case strings.HasPrefix(text, "/"):
		return nil, errors.New("is absolute; write it relative to the manifest's folder")
	case strings.HasSuffix(text, "/"):
		return nil, errors.New("names a folder; add ** for all files below it")
	}
	p := &pattern{}
	for name := range strings.SplitSeq(folder, "/") {
		if name != "" {
			// A folder's own name is never a pattern, whatever is in it.
			p.Pattern = append(p.Pattern, glob.Segment{Text: name, Kind: glob.Literal})
		}
	}
	for name := range strings.SplitSeq(text, "/") {
		if err := p.append(name); err != nil {
			return nil, err
		}
	}
	if len(p.Pattern) == 0 {
		return nil, errors.New("names a folder; add ** for all files below it")
	}
	if len(p.Pattern) > glob.MaxSegments {
		return nil, fmt.Errorf("has more than %d parts; shorten it", glob.MaxSegments)
	}
	p.join()
	return p, nil
}

func (p *pattern) append(name string) error {
	switch name {
	case "", ".":
		return nil
	case "..":
		if len(p.Pattern) == 0 {
			return errors.New("leads out of the repository; a target can only have files of the repository")
		}
		if p.Pattern[len(p.Pattern)-1].Kind != glob.Literal {
			return errors.New("has .. after a pattern; write the folder's name")
		}
		p.Pattern = p.Pattern[:len(p.Pattern)-1]
		return nil
	case "**":
		if len(p.Pattern) > 0 && p.Pattern[len(p.Pattern)-1].Kind == glob.Deep {
			return nil
		}
	default:
		if strings.Contains(name, "**") {
			return errors.New("has ** next to something else; ** must stand alone between slashes")
		}
	}
	segment, err := glob.NewSegment(name)
	if err != nil {
		return fmt.Errorf("is not a valid pattern (%w); close each [", err)
	}
	p.Pattern = append(p.Pattern, segment)
	return nil
}

// join writes the pattern so that a literal segment is never read as a wildcard.
func (p *pattern) join() {
	texts := make([]string, len(p.Pattern))
	names := make([]string, len(p.Pattern))
	literal := true
	for i, s := range p.Pattern {
		texts[i], names[i] = s.Text, s.Text
		literal = literal && s.Kind == glob.Literal
		if s.Kind == glob.Literal && strings.ContainsAny(s.Text, "*?[") {
			texts[i] = `\` + s.Text // neither patterns nor folders hold a backslash
		}
	}
	p.text = strings.Join(texts, "/")
	if literal {
		p.path = strings.Join(names, "/")
	}
}

func excluded(file string, exclude []*pattern) bool {
	return slices.ContainsFunc(exclude, func(p *pattern) bool { return p.MatchesFile(file) })
}

// literal returns the one path that a pattern without wildcards names.
func (p *pattern) literal() (string, bool) { return p.path, p.path != "" }
