package nodegraph

import (
	"path"
	"strings"
)

// maxClimb bounds how many folders up a path is followed with what other texts name from there.
const maxClimb = 8

// isClimb reports whether a path leads to a folder above, and no further. There are maxClimb such folders.
func isClimb(spec string) bool {
	clean := path.Clean(spec)
	for up := range maxClimb {
		if clean == strings.Repeat("../", up)+".." {
			return true
		}
	}
	return false
}

// fromAbove adds what the texts of a file name in a folder above that the file has a path to, and may keep by a name:
// root = path.resolve(__dirname, "../.."), then path.join(root, "data/x.json").
func (s *scanner) fromAbove() {
	climbs := map[string]bool{}
	for _, specs := range []map[string]bool{s.imports, s.paths} {
		for spec := range specs {
			if isClimb(spec) {
				climbs[path.Clean(spec)] = true
			}
		}
	}
	if len(climbs) == 0 {
		return
	}
	rests, joined := map[string]bool{}, -1
	for i, c := range s.text {
		switch {
		case c == '"' || c == '\'' || c == '`':
			if text, end, ok := s.literal(i); ok && text != "" && text[0] != '.' && text[0] != '*' {
				rests[text] = true
				if s.isAdded(text, i, end) {
					rests[text+"*"] = true
				}
				if i > joined { // Else it is part of what was joined before.
					whole, at := s.joined(text, end)
					rests[whole], joined = true, at
				}
			}
		case c == '}' && i+1 < len(s.text) && s.text[i+1] == '/':
			// The rest of a template, behind a name of the folder.
			end := i + 1
			for end < len(s.text) && end-i < maxPathBytes && isPathByte(s.text[end]) && s.text[end] != '$' {
				end++
			}
			rest := string(s.text[i+1 : end])
			if end < len(s.text) && s.text[end] == '$' {
				rest += "*" + s.tail(end)
			}
			rests[rest] = true
		}
	}
	for rest := range rests {
		if rest = strings.Trim(rest, "/"); rest == "" || strings.ContainsAny(rest, " \t\r:") {
			continue
		}
		for climb := range climbs {
			s.paths[climb+"/"+rest] = true
		}
	}
}

// wordsFromAbove returns what the words of a script name in the folders above that it goes to: cd .. && node b/check.js.
func wordsFromAbove(text string) []string {
	words := wordsOf(text)
	var paths []string
	climbs := map[string]bool{}
	for _, word := range words {
		if isClimb(word) {
			climbs[path.Clean(word)] = true
			continue
		}
		if word[0] == '-' || word[0] == '/' || strings.Contains(word, ":") {
			continue
		}
		for climb := range climbs {
			paths = append(paths, climb+"/"+word)
		}
	}
	return paths
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;&|()<>=", r) })
}

// goingTo are the words before a folder that a command runs in.
var goingTo = map[string]bool{"cd": true, "pushd": true, "-C": true, "--prefix": true, "--cwd": true, "--dir": true}

// givenFromAbove returns the folders above that a script gives to a tool, which may go through them: eslint .., cd .. && eslint .
func givenFromAbove(text string) []string {
	var climbs []string
	before, here := "", ""
	for _, word := range wordsOf(text) {
		switch {
		case isClimb(word) && goingTo[before]:
			here = path.Clean(word)
		case isClimb(word):
			climbs = append(climbs, path.Clean(word))
		case here != "" && path.Clean(word) == ".":
			climbs = append(climbs, here)
		}
		before = word
	}
	return climbs
}
