package gograph

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
)

// remembrance is what the last tree's folders held, so that the names in the
// next one are hashed again only where they are others.
type remembrance struct {
	mu   sync.Mutex
	last map[string]named
}

// named is the names in and below a folder.
type named struct {
	names   []string // of the files in the folder
	subs    []string // of the folders in it
	digest  string
	digests []string // of these folders
}

// digests gives, for each folder, a digest of the names in and below it.
func (l *Loader) digests(s *snapshot) []string {
	l.remembrance.mu.Lock()
	last := l.remembrance.last
	l.remembrance.mu.Unlock()
	next := make(map[string]named, len(s.all))
	digests := make([]string, len(s.all))
	for i, f := range slices.Backward(s.all) {
		known, ok := last[f.path]
		if !ok || !s.holds(f, known, digests) {
			known = s.digest(f, digests)
		}
		digests[i] = known.digest
		next[f.path] = known
	}
	l.remembrance.mu.Lock()
	l.remembrance.last = next
	l.remembrance.mu.Unlock()
	return digests
}

// holds reports whether a folder has the same names in and below it as before.
func (s *snapshot) holds(f *folder, n named, digests []string) bool {
	if len(f.files) != len(n.names) || len(f.subs) != len(n.subs) {
		return false
	}
	for i, entry := range f.files {
		if s.name(f, entry) != n.names[i] {
			return false
		}
	}
	for i, sub := range f.subs {
		if digests[sub.index] != n.digests[i] || nameOf(sub.path) != n.subs[i] {
			return false
		}
	}
	return true
}

// digest hashes the names in a folder and the digests of those below. No name
// holds a NUL or a slash, so these separate.
func (s *snapshot) digest(f *folder, digests []string) named {
	n := named{names: make([]string, len(f.files)), subs: make([]string, len(f.subs)), digests: make([]string, len(f.subs))}
	var all strings.Builder
	for i, entry := range f.files {
		n.names[i] = s.name(f, entry)
		all.WriteString(n.names[i])
		all.WriteByte(0)
	}
	for i, sub := range f.subs {
		n.subs[i], n.digests[i] = nameOf(sub.path), digests[sub.index]
		all.WriteString(n.subs[i])
		all.WriteByte('/')
		all.WriteString(n.digests[i])
		all.WriteByte(0)
	}
	sum := sha256.Sum256([]byte(all.String()))
	n.digest = string(sum[:])
	return n
}
