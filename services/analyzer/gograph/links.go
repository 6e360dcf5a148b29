package gograph

import "strings"

// maxLinkHops is how many symbolic links one path may lead through, as on Linux.
const maxLinkHops = 40

// links are the texts of a tree's symbolic links, by entry.
type links map[int32]string

// follow walks a path as a file system does. It gives where the path ends, which
// need not exist, and the links on the way. ok is false for a loop and for a path
// that leaves the repository.
func (s *snapshot) follow(file string, all links) (end string, via []int32, ok bool) {
	if len(all) == 0 {
		return file, nil, true
	}
	at, rest := "", file
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := below(at, name)
		i := s.find(next)
		text, isLink := all[i]
		if i < 0 || !isLink {
			at = next
			continue
		}
		if via = append(via, i); len(via) > maxLinkHops {
			return "", via, false
		}
		target, inside := join(at, strings.TrimRight(text, "/"))
		if !inside || text == "" {
			return "", via, false
		}
		// What the link names can be behind links itself, so the walk begins anew.
		at, rest = "", below(target, rest)
	}
	return at, via, true
}
