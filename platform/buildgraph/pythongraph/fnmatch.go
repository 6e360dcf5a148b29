package pythongraph

import (
	"strings"
	"unicode/utf8"
)

// matchesPath reports whether a pattern of pytest's settings matches a path from the repository's root: its name, or the end of the
// path where the pattern has a slash. A star goes beyond slashes.
func matchesPath(pattern, file string) bool {
	if !strings.Contains(pattern, "/") {
		return fnmatch(pattern, nameOf(file))
	}
	return fnmatch("*/"+strings.TrimPrefix(pattern, "/"), "/"+file)
}

// fnmatch matches as Python's module of that name does: * ? [a-z] and [!a-z].
func fnmatch(pattern, text string) bool {
	star, from := -1, 0 // the last star, and where in the text what follows it is tried
	p, at := 0, 0
	for at < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, at
			p++
			continue
		}
		if p < len(pattern) {
			r, size := utf8.DecodeRuneInString(text[at:])
			if width, ok := matchesOne(pattern[p:], r); ok {
				p, at = p+width, at+size
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
		p, at = star+1, from
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchesOne reports whether the beginning of a pattern, which is no star, matches a character, and how long it is.
func matchesOne(pattern string, r rune) (width int, ok bool) {
	first, width := utf8.DecodeRuneInString(pattern)
	if first == '?' {
		return width, true
	}
	set := strings.TrimPrefix(pattern[1:], "!")
	end := -1
	if first == '[' && set != "" {
		end = strings.IndexByte(set[1:], ']') + 1 // A bracket right at the beginning is one of the set.
	}
	if end <= 0 {
		return width, first == r
	}
	in, members := false, []rune(set[:end])
	for i := 0; i < len(members); i++ {
		low, high := members[i], members[i]
		if i+2 < len(members) && members[i+1] == '-' {
			high = members[i+2]
			i += 2
		}
		in = in || low <= r && r <= high
	}
	negated := len(set) < len(pattern)-1
	return len(pattern) - len(set) + end + 1, in != negated
}
