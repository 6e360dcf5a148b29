package cargograph

import (
	"fmt"
	"slices"
	"strings"
)

// lockFile is what one Cargo.lock says.
type lockFile struct {
	found    []problem
	packages []locked
	byName   map[string][]int32
	// unknown is why its packages cannot be known, or empty.
	unknown string
	// compared counts how many packages were looked at for what others name.
	compared int
}

// maxCompared bounds that. A lock file that cargo has written has few packages of one name.
const maxCompared = 20_000_000

// locked is a package of a lock file.
type locked struct {
	name, version string
	// source is where it comes from; empty for a folder.
	source   string
	checksum string
	deps     []int32
	replace  int32 // what stands in its place, or -1
}

// id names a package within its lock file.
func (p *locked) id() string {
	switch p.source {
	case "":
		return p.name + " " + p.version + " (folder)"
	case "registry+https://github.com/rust-lang/crates.io-index":
		return p.name + " " + p.version
	}
	return p.name + " " + p.version + " (" + p.source + ")"
}

// newestLock is the newest version of the format that is understood.
const newestLock = 4

// parseLock reads a Cargo.lock.
func parseLock(content []byte) *lockFile {
	d := parseTOML(content)
	l := &lockFile{byName: map[string][]int32{}}
	if version, is := d.root["version"].(int64); is && version > newestLock {
		l.unknown = fmt.Sprintf("format %d is newer than this adapter", version)
	}
	tables := d.tables(d.root, "package")
	if root := d.table(d.root, "root"); root != nil {
		tables = append(tables, root) // The first format has the root package by itself.
	}
	for _, table := range tables {
		p := locked{name: d.text(table, "name"), version: d.text(table, "version"), source: d.text(table, "source"), checksum: d.text(table, "checksum"), replace: -1}
		l.byName[p.name] = append(l.byName[p.name], int32(len(l.packages)))
		l.packages = append(l.packages, p)
	}
	for i, table := range tables {
		p := &l.packages[i]
		for _, text := range d.texts(table, "dependencies") {
			p.deps = append(p.deps, l.named(text)...)
		}
		slices.Sort(p.deps)
		p.deps = slices.Compact(p.deps)
		if text := d.text(table, "replace"); text != "" {
			for _, other := range l.named(text) {
				p.replace = other
			}
		}
	}
	for key, value := range d.table(d.root, "metadata") {
		// Until the third format: "checksum NAME VERSION (SOURCE)".
		if text, is := strings.CutPrefix(key, "checksum "); is {
			for _, i := range l.named(text) {
				l.packages[i].checksum, _ = value.(string)
			}
		}
	}
	l.found = d.found
	return l
}

// named returns the packages that "NAME", "NAME VERSION" or "NAME VERSION (SOURCE)" can mean; one, in a lock file that
// cargo has written. The source of a git repository is named without its commit.
func (l *lockFile) named(text string) []int32 {
	name, rest, _ := strings.Cut(text, " ")
	version, source, _ := strings.Cut(rest, " ")
	source = strings.TrimSuffix(strings.TrimPrefix(source, "("), ")")
	var all []int32
	if l.compared += len(l.byName[name]); l.compared > maxCompared {
		l.unknown = "too many of its packages have the same name"
		return nil
	}
	for _, i := range l.byName[name] {
		p := &l.packages[i]
		if (version == "" || p.version == version) && (source == "" || p.source == source || strings.HasPrefix(p.source, source+"#")) {
			all = append(all, i)
		}
	}
	return all
}

// folderPackage returns the package of that name and version that a folder holds, or -1.
func (l *lockFile) folderPackage(name, version string) int32 {
	found := int32(-1)
	for _, i := range l.byName[name] {
		if p := &l.packages[i]; p.source == "" && (p.version == version || found < 0) {
			found = i
			if p.version == version {
				return i
			}
		}
	}
	return found
}
