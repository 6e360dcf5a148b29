package manifest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// pattern selects files by path. It is cut into segments at the slashes; "**"
// stands for any number of folders, and as the last segment for every file below.
type pattern struct {
	// text is the whole pattern, relative to the root and cleaned.
	text     string
	path     string // of the one file, if there are no wildcards
	segments []segment
}

type segment struct {
	text string
	any  bool // "**"
	meta bool // has *, ? or [
}

// parsePattern makes a pattern of a manifest in that folder relative to the
// root. Its errors continue a sentence.
func parsePattern(folder, text string) (*pattern, error) {
	switch {
	case text == "":
		return nil, errors.New("is empty; name a file or a pattern")
	case len(text) > maxPatternBytes:
		return nil, fmt.Errorf("is longer than %d bytes; shorten it", maxPatternBytes)
	case strings.ContainsRune(text, 0):
		return nil, errors.New("holds a NUL character; remove it")
	case strings.Contains(text, `\`):
		return nil, errors.New(`holds a backslash; write folders with /, and [*] for a star that is meant`)
	case strings.HasPrefix(text, "/"):
		return nil, errors.New("is absolute; write it relative to the manifest's folder")
	case strings.HasSuffix(text, "/"):
		return nil, errors.New("names a folder; add ** for all files below it")
	}
	p := &pattern{}
	for name := range strings.SplitSeq(folder, "/") {
		if name != "" {
			// A folder's own name is never a pattern, whatever is in it.
			p.segments = append(p.segments, segment{text: name})
		}
	}
	for name := range strings.SplitSeq(text, "/") {
		if err := p.append(name); err != nil {
			return nil, err
		}
	}
	if len(p.segments) == 0 {
		return nil, errors.New("names a folder; add ** for all files below it")
	}
	if len(p.segments) > maxSegments {
		return nil, fmt.Errorf("has more than %d parts; shorten it", maxSegments)
	}
	p.join()
	return p, nil
}

func (p *pattern) append(name string) error {
	switch name {
	case "", ".":
		return nil
	case "..":
		if len(p.segments) == 0 {
			return errors.New("leads out of the repository; a target can only have files of the repository")
		}
		if last := p.segments[len(p.segments)-1]; last.any || last.meta {
			return errors.New("has .. after a pattern; write the folder's name")
		}
		p.segments = p.segments[:len(p.segments)-1]
		return nil
	case "**":
		if len(p.segments) == 0 || !p.segments[len(p.segments)-1].any {
			p.segments = append(p.segments, segment{text: name, any: true})
		}
		return nil
	}
	if strings.Contains(name, "**") {
		return errors.New("has ** next to something else; ** must stand alone between slashes")
	}
	if _, err := path.Match(name, ""); err != nil {
		return fmt.Errorf("is no proper pattern (%w); close each [", err)
	}
	p.segments = append(p.segments, segment{text: name, meta: strings.ContainsAny(name, "*?[")})
	return nil
}

// join writes the pattern so that a literal segment is never read as a pattern.
func (p *pattern) join() {
	texts := make([]string, len(p.segments))
	names := make([]string, len(p.segments))
	wild := false
	for i, s := range p.segments {
		texts[i], names[i] = s.text, s.text
		wild = wild || s.meta || s.any
		if !s.meta && !s.any && strings.ContainsAny(s.text, "*?[") {
			texts[i] = `\` + s.text // neither patterns nor folders hold a backslash
		}
	}
	p.text = strings.Join(texts, "/")
	if !wild {
		p.path = strings.Join(names, "/")
	}
}

// matches tells whether one name fits the segment.
func (s segment) matches(name string) bool {
	switch {
	case s.any:
		return true
	case s.meta:
		ok, err := path.Match(s.text, name)
		return ok && err == nil
	}
	return s.text == name
}

// states is a set of segments that come next, one bit each. Walking with sets
// visits each folder once, however many ways a pattern fits it.
type states uint64

func (p *pattern) start() states { return p.close(1) }

// close adds what follows each "**", as it may stand for no folder at all.
func (p *pattern) close(s states) states {
	for i := range len(p.segments) - 1 {
		if s&(1<<i) != 0 && p.segments[i].any {
			s |= 1 << (i + 1)
		}
	}
	return s
}

// enter gives the states inside the named folder; 0 when nothing in it fits.
func (p *pattern) enter(s states, name string) states {
	var next states
	for i, seg := range p.segments {
		switch {
		case s&(1<<i) == 0:
		case seg.any:
			next |= 1 << i
		case i < len(p.segments)-1 && seg.matches(name):
			next |= 1 << (i + 1)
		}
	}
	return p.close(next)
}

// accepts tells whether the file of that name fits.
func (p *pattern) accepts(s states, name string) bool {
	last := len(p.segments) - 1
	return s&(1<<last) != 0 && p.segments[last].matches(name)
}

// matchesFile tells whether a path from the root fits.
func (p *pattern) matchesFile(file string) bool {
	s := p.start()
	for s != 0 {
		folder, rest, deeper := strings.Cut(file, "/")
		if !deeper {
			return p.accepts(s, file)
		}
		s, file = p.enter(s, folder), rest
	}
	return false
}

func excluded(file string, exclude []*pattern) bool {
	return slices.ContainsFunc(exclude, func(p *pattern) bool { return p.matchesFile(file) })
}

// literal gives the one path that a pattern without wildcards names.
func (p *pattern) literal() (string, bool) { return p.path, p.path != "" }
