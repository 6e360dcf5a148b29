// Package lookups finds what a program, and all that it starts, looks for in a folder and does not find there although it should:
// the files of a repository that a closed workspace does not hold.
//
// A process calls [Install] before it becomes the program. The kernel then asks, before each system call that looks a path up, the
// process that holds the listener (seccomp_unotify(2)). A [Watch] answers, and remembers what it is there for. No call is refused
// or changed. Programs that another user's process or a container runtime starts are not seen.
package lookups

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Lookup is a path that was looked for.
type Lookup struct {
	// Path is relative to the folder, with slashes. Below what is absent or hollow it can be one that should not be there either.
	Path string
	// Listed is set of a folder that is there and was listed, without some of what it should hold.
	Listed bool
	// Program is the path of the program that looked, "" if it is not known.
	Program string
}

// most bounds how many lookups a watch remembers, and mostKnown how many paths it knows to be of no interest.
const (
	most      = 20_000
	mostKnown = 50_000
)

// Missing says what a folder lacks. All paths are relative to it, with slashes, and sorted.
type Missing struct {
	// Absent are the files and folders that should be there and are not. Of a folder that is absent what is in it is not named.
	Absent []string
	// Empty are the files that are there without what they should hold: to read one of them is to look for it.
	Empty []string
	// Hollow are the folders that are there by their names alone: to list one of them, or to look below it, is to look for it.
	Hollow []string
	// Shown are folders that lack something besides what is always there by its name, of which all names are there: Python and make,
	// which list whatever they run in, may list them.
	Shown []string
	// Believe is set if the tools of package systems may list what they lack: who has said what the folder holds knows the tools.
	Believe bool
}

// initFile is what Python looks for in a folder, also in one from which nothing is imported.
const initFile = "__init__.py"

// Of returns what a folder lacks of files that it should hold, sorted, if it holds those of held alone, and without content where the
// value is false. Of folders that are there and shown, "" for the root, all entries are there by their names, and of all others
// those that always names: Of adds to held an empty file for each, for a folder its __init__.py and the first one below it. A folder
// that is shown alone, in one that is shown, is there by the names in it.
func Of(all []string, held map[string]bool, shown func(folder string) (names, alone bool), always func(name string) bool) Missing {
	folders := map[string]bool{"": true}
	for name := range held {
		for at := strings.LastIndexByte(name, '/'); at > 0 && !folders[name[:at]]; at = strings.LastIndexByte(name[:at], '/') {
			folders[name[:at]] = true
		}
	}
	missing, last, lastShown := Missing{}, "", false
	for _, name := range all {
		if len(name) > len(last) && name[len(last)] == '/' && name[:len(last)] == last { // It is in a folder that is not there.
			if lastShown && name[len(last)+1:] == initFile {
				held[name] = false
				missing.Empty = append(missing.Empty, name)
			}
			continue
		}
		if whole, in := held[name]; in {
			if !whole {
				missing.Empty = append(missing.Empty, name)
			}
			continue
		}
		entry, folder := absentPart(name, folders)
		names, _ := shown(folder)
		for names && entry != name {
			_, alone := shown(entry)
			if !alone {
				break
			}
			folders[entry] = true
			entry, folder = absentPart(name, folders)
		}
		switch {
		case !names && !always(path.Base(entry)):
			missing.Absent = append(missing.Absent, entry)
		case entry == name:
			held[name] = false
			missing.Empty = append(missing.Empty, name)
		default:
			held[name] = false
			missing.Hollow = append(missing.Hollow, entry)
			if names && name == entry+"/"+initFile {
				missing.Empty = append(missing.Empty, name)
			}
		}
		if last, lastShown = entry, names; names && !always(path.Base(entry)) {
			missing.Shown = append(missing.Shown, cmp.Or(folder, "."))
		}
	}
	slices.Sort(missing.Shown)
	missing.Shown = slices.Compact(missing.Shown)
	// The order of files is not that of the folders above them.
	slices.Sort(missing.Absent)
	slices.Sort(missing.Hollow)
	return missing
}

// absentPart returns the first part of a path that is not among the folders that are there, and the folder that it would be in.
func absentPart(name string, folders map[string]bool) (entry, folder string) {
	for end := 0; ; end++ {
		next := strings.IndexByte(name[end:], '/')
		if next < 0 {
			return name, folder
		}
		if end += next; !folders[name[:end]] {
			return name[:end], folder
		}
		folder = name[:end]
	}
}

// inOrder sorts lookups by path.
func inOrder(found []Lookup) {
	slices.SortFunc(found, func(a, b Lookup) int { return cmp.Compare(a.Path, b.Path) })
}
