package gograph

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/gittree"
)

// readPackages finds out what the files of packages say.
func (l *loading) readPackages(ctx context.Context, s *survey, packages []*pkg) error {
	wanted := map[factKey][]*source{}
	var keys []factKey
	var fresh []*pkg
	for _, p := range packages {
		if p.read {
			continue
		}
		p.read = true
		fresh = append(fresh, p)
		for _, list := range [][]source{p.sources, p.tests} {
			for i := range list {
				one := &list[i]
				one.content = s.resolveLinks(one.entry)
				key, ok := s.factKey(one)
				if !ok {
					continue
				}
				if one.facts = l.loader.facts.get(key); one.facts != nil {
					continue
				}
				if wanted[key] == nil {
					keys = append(keys, key)
				}
				wanted[key] = append(wanted[key], one)
			}
		}
	}
	if err := l.readFacts(ctx, keys, wanted); err != nil {
		return err
	}
	for _, p := range fresh {
		s.noteProblems(p)
	}
	return l.followHeaders(ctx, s, fresh)
}

// factKey returns the key under which the facts of a file are known; false for what is
// not examined into.
func (s *survey) factKey(one *source) (factKey, bool) {
	object := s.object(one.content)
	if object == "" {
		return factKey{}, false
	}
	return factKeyOf(s.entries[one.entry].Path, object)
}

// factKeyOf is factKey for a file by its name and content.
func factKeyOf(file, object string) (factKey, bool) {
	if classOf(nameOf(file)) == otherFile {
		return factKey{}, false
	}
	switch suffix := path.Ext(file); suffix {
	case ".go":
		return factKey{object: object, forTests: classOf(nameOf(file)) == testFile || isTestFolder(folderOf(file))}, true
	case ".syso":
		return factKey{}, false
	}
	return factKey{object: object, foreign: true}, true
}

func (l *loading) readFacts(ctx context.Context, keys []factKey, wanted map[factKey][]*source) error {
	objects := make([]string, len(keys))
	for i, key := range keys {
		objects[i] = key.object
	}
	found := make([]*facts, len(keys))
	err := l.read(ctx, objects, maxGoBytes, func(i int, content []byte, err error) error {
		switch {
		case errors.Is(err, gittree.ErrTooLarge):
			found[i] = &facts{unread: true}
		case err != nil:
			return fmt.Errorf("read blob %s: %w", objects[i], err)
		default:
			found[i] = parseFacts(keys[i], content)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, key := range keys {
		l.loader.facts.put(key, found[i])
		for _, one := range wanted[key] {
			one.facts = found[i]
		}
	}
	return nil
}

// parseFacts keeps a parser that panics from taking the service with it: it runs
// in goroutines of its own.
func parseFacts(key factKey, content []byte) (f *facts) {
	defer func() {
		if recover() != nil {
			f = &facts{unread: true}
		}
	}()
	if key.foreign {
		return parseForeign(content)
	}
	return parseGo(content, key.forTests)
}

// maxReasons bounds how many reasons a graph gives for being incomplete.
const maxReasons = 20

func (s *survey) noteIncomplete(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if len(s.incomplete) < maxReasons && !slices.Contains(s.incomplete, reason) {
		s.incomplete = append(s.incomplete, reason)
	}
}

// noteUnread notes that a file was not read.
func (s *survey) noteUnread(entry int32) {
	s.noteIncomplete("%s is too large to be read, or has too many imports, patterns or paths", strings.ToValidUTF8(s.entries[entry].Path, "\uFFFD"))
}

// noteProblems notes what makes the graph incomplete, as far as only a package's facts show it.
func (s *survey) noteProblems(p *pkg) {
	for _, list := range [][]source{p.sources, p.tests} {
		for _, one := range list {
			if one.facts == nil {
				continue
			}
			p.native = p.native || one.facts.cgo
			if one.facts.unread {
				s.noteUnread(one.entry)
			}
		}
	}
}
