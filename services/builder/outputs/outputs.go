// Package outputs keeps what the steps of a target leave for those of its dependents, by target version, and lays it into their
// workspaces (decision 0086).
//
// A [Folder] of this machine keeps files by their digests, and for each target version an entry that names them. A [Remote] may
// stand behind it, which several machines share. Neither is trusted: entries and files are checked whenever they are read, and
// what is not as it was kept counts as missing. What is missing is made again, in the workspace of the step that needs it
// ([Keeper.Give]).
package outputs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ErrMissing is the error for an entry or a file that is not kept, or not as it was kept.
var ErrMissing = errors.New("it is not kept")

// Entry is what the steps of one target version have left.
type Entry struct {
	// Files are sorted by path.
	Files []File `json:"files"`
}

// File is a file or a symbolic link that a step has left.
type File struct {
	// Path is relative to the workspace, with slashes.
	Path string `json:"path"`
	// Link is where a symbolic link points to, relative to its folder; "" for a file, which has the other fields.
	Link string `json:"link,omitempty"`
	Digest
	Executable bool `json:"executable,omitempty"`
}

// Digest identifies content.
type Digest struct {
	// Hash is the content's SHA-256, in hexadecimal digits.
	Hash string `json:"sha256,omitempty"`
	Size int64  `json:"size,omitempty"`
}

func digestOf(content []byte) Digest {
	sum := sha256.Sum256(content)
	return Digest{hex.EncodeToString(sum[:]), int64(len(content))}
}

// Bounds limit what one target leaves, in bytes.
type Bounds struct {
	// Each is for one output, Total for all of a target; 0 is no limit.
	Each, Total int64
}

// mostFiles bounds how many files one target leaves, mostVisited how many files and folders are looked at for that, and mostDeep how
// deep folders are nested: a walk takes memory and time by the square of that.
const (
	mostFiles   = 50_000
	mostVisited = 2 * mostFiles
	mostDeep    = 100
)

// Size returns how many bytes the files have together.
func (e Entry) Size() (size int64) {
	for _, f := range e.Files {
		size += f.Size
	}
	return size
}

// String returns a summary for people: 3 files, 1.2 MB.
func (e Entry) String() string {
	noun := "files"
	if len(e.Files) == 1 {
		noun = "file"
	}
	return fmt.Sprintf("%d %s, %s", len(e.Files), noun, shown(e.Size()))
}

// shown writes a number of bytes as people read it.
func shown(bytes int64) string {
	value, unit := float64(bytes), 0
	for value >= 999.5 && unit < 4 {
		value, unit = value/1000, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, []string{"", "kB", "MB", "GB", "TB"}[unit])
}

// digests returns those of all files, each once.
func (e Entry) digests() []Digest {
	var list []Digest
	seen := map[string]bool{}
	for _, f := range e.Files {
		if f.Link == "" && !seen[f.Hash] {
			seen[f.Hash] = true
			list = append(list, f.Digest)
		}
	}
	return list
}

// encode returns the entry as it is kept.
func (e Entry) encode() ([]byte, error) { return json.Marshal(e) }

// decode reads the entry of a target with these outputs. The error is ErrMissing if its steps cannot have left it.
func decode(content []byte, outputs []string) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(content, &e); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err := e.check(outputs); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return e, nil
}

// check returns what is wrong with the entry of a target with these outputs. The files of one that passes lie in the outputs, and
// so does whatever their links lead to.
func (e Entry) check(outputs []string) error {
	if len(e.Files) > mostFiles {
		return fmt.Errorf("it has more than %d files", mostFiles)
	}
	kinds := map[string]File{}
	for i, f := range e.Files {
		within := outputOf(f.Path, outputs)
		switch {
		case i > 0 && e.Files[i-1].Path >= f.Path:
			return errors.New("its files are not in order")
		case f.Path != path.Clean(f.Path) || within == "":
			return fmt.Errorf("%q is in none of the outputs", f.Path)
		case f.Link != "" && (f.Digest != Digest{} || f.Executable):
			return fmt.Errorf("%q is a link and a file", f.Path)
		case f.Link != "" && !staysWithin(f, within):
			return fmt.Errorf("%q leads out of %s", f.Path, within)
		case f.Link == "" && (!isHash(f.Hash) || f.Size < 0):
			return fmt.Errorf("%q has no digest", f.Path)
		}
		kinds[f.Path] = f
	}
	for _, f := range e.Files {
		for above := path.Dir(f.Path); above != "."; above = path.Dir(above) {
			if _, is := kinds[above]; is {
				return fmt.Errorf("%q lies below a file", f.Path)
			}
		}
	}
	for _, output := range outputs {
		if !slices.ContainsFunc(e.Files, func(f File) bool { return outputOf(f.Path, []string{output}) != "" }) {
			return fmt.Errorf("it has nothing of %s", output)
		}
	}
	return nil
}

// isHash reports whether a text is a SHA-256 in hexadecimal digits. It is part of paths.
func isHash(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// outputOf returns the output that a path is or lies in, "" for none.
func outputOf(file string, outputs []string) string {
	for _, output := range outputs {
		if below, is := strings.CutPrefix(file, output); is && (below == "" || below[0] == '/') {
			return output
		}
	}
	return ""
}

// staysWithin reports whether a link points into the output that it lies in, however its target is followed: the only steps up
// come first, where the folders are real ones.
func staysWithin(f File, output string) bool {
	rest := f.Link
	for rest == ".." || strings.HasPrefix(rest, "../") {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
	}
	if path.IsAbs(f.Link) || strings.ContainsRune(f.Link, 0) || slices.Contains(strings.Split(rest, "/"), "..") {
		return false
	}
	return outputOf(path.Join(path.Dir(f.Path), f.Link), []string{output}) != ""
}
