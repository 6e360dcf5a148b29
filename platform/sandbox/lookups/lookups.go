// Package lookups finds out which files a program, and all that it starts, looks for in a folder that lacks them: the files of a
// repository that a closed workspace does not hold.
//
// A process calls [Install] before it becomes the program. Before each system call that looks a path up the kernel then asks the
// process that holds the listener (seccomp_unotify(2)). A [Watch] answers that the call goes on, and records the paths that the folder
// lacks. Processes of other users, and those that a container runtime starts, are not seen.
package lookups

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Lookup is a path that was looked for.
type Lookup struct {
	// Path is relative to the folder, with slashes. Below an absent or hollow folder it may be one that the repository lacks, too.
	Path string
	// Listed is set for a folder that was listed and lacks some of its entries, Read for one of Missing.Tools.
	Listed, Read bool
	// Program is the name of the program that looked; "" if the folder holds it, or it is not known.
	Program string
}

// Bounds of what a watch remembers, in bytes of paths. A program may look for any number of paths, each of up to 4096 bytes.
const (
	mostFound = 4 << 20
	mostKnown = 16 << 20 // of each of the sets of paths that need not be looked at again
)

// Missing is what a folder lacks. All paths are relative to it, with slashes, and sorted.
type Missing struct {
	// Absent are files and folders that are not there. What is in an absent folder is not named.
	Absent []string
	// Empty are files that stand for those with content. To read one is to look for it.
	Empty []string
	// Hollow are folders that stand for those with entries. To list one, or to look below it, is to look for it.
	Hollow []string
	// Shown are folders with an Empty or Hollow entry for each one that they lack. Python and make may list them.
	Shown []string
	// Names are folders, "" for the root, in and below which all names are there and known: to list one there is no lookup.
	Names []string
	// Tools are files with content that are there for tools of package systems. To read one is to look for it, unless such a tool does.
	// Where the value is set an interpreter may, too: many read the manifests of the folders above a program.
	Tools map[string]bool
	// Crates are folders with Rust packages, "." for the root, whose own targets fail if cargo cannot make out what they consist of.
	Crates []string
	// Believe is set if tools of package systems may list all folders and read Tools. The adapters know what these tools depend on.
	Believe bool
}

// initFile makes a folder a Python package. pytest looks for it in folders from which nothing is imported.
const initFile = "__init__.py"

// Of returns what a folder lacks that holds, of all files (sorted), only those of held. Files whose value in held is false are empty.
//
// Of adds empty files to held. One stands for each entry that the folder lacks and that shown or always asks for: for a file under its
// own path, for a folder as the first file below it and as its __init__.py. shown is given a folder, "" for the root. names says that
// all its entries are asked for once the folder is there, and alone that it counts as there wherever the entries of the folder above
// are asked for. always is given the name of an entry of any folder that is there.
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
