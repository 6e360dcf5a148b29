package builder

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"landfall.build/engine/decisive"
	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/folders"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/reading"
)

// Bounds on what is read of the reports that a step leaves.
const (
	mostReports     = 20
	mostReportBytes = 16 << 20
	mostVisited     = 200_000 // files and folders of a tree
)

// reportsOf returns the reports that a step has left since it started: those that match the queue's patterns, and those of
// tests that Bazel ran. Secrets are masked in them.
func (w *worker) reportsOf(place *workplace, output []byte, started time.Time) (reports [][]byte) {
	total := 0
	take := func(file fs.File, err error) bool {
		if err != nil {
			return false
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(started.Truncate(time.Second)) {
			return false
		}
		content, err := io.ReadAll(io.LimitReader(file, decisive.MaxReport))
		if err != nil || len(content) == 0 {
			return false
		}
		total += len(content)
		reports = append(reports, execution.Mask(content, place.request.Secrets))
		return true
	}
	full := func() bool { return len(reports) >= mostReports || total >= mostReportBytes }
	if err := w.reportsInTree(place, take, full); err != nil {
		w.Logger.Warn("the reports of a step could not be read", "tree", place.request.Worktree, "error", err)
	}
	if slices.ContainsFunc(place.request.Commands, func(c execution.Command) bool { return c.Image != "" }) {
		return reports // its paths are not those of this machine
	}
	for _, folder := range decisive.BazelReports(output, mostReports) {
		if full() {
			break
		}
		if !take(openGiven(place, folder+"test.xml")) {
			take(openGiven(place, folder+"test.log"))
		}
	}
	return reports
}

// reportsInTree takes the files that match the queue's patterns. It never leaves the tree.
func (w *worker) reportsInTree(place *workplace, take func(fs.File, error) bool, full func() bool) error {
	patterns, err := glob.ParseAll(place.step.Queue.Steps.Reports)
	if err != nil || len(patterns) == 0 {
		return err
	}
	root, err := os.OpenRoot(place.request.Worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	visited := 0
	return fs.WalkDir(folders.Bounded(root, reading.MostNames), ".", func(name string, entry fs.DirEntry, err error) error {
		if visited++; visited > mostVisited || full() {
			return fs.SkipAll
		}
		switch {
		case err != nil: // what the step has made unreadable
			return fs.SkipDir
		case entry.IsDir() && name == ".git", reading.TooDeep(name, entry):
			return fs.SkipDir
		case entry.Type().IsRegular() && slices.ContainsFunc(patterns, func(p glob.Pattern) bool { return p.MatchesFile(name) }):
			take(openIn(root, name))
		}
		return nil
	})
}

// openIn opens a file below a folder. It neither leaves the folder by a link nor waits for who writes to a pipe.
func openIn(root *os.Root, name string) (fs.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// openGiven opens a file that a step's output names, if it lies in a folder that the step could write.
func openGiven(place *workplace, name string) (fs.File, error) {
	// The scratch folder as a whole: a step can put a link in place of its home, but not of what it is given itself.
	given := slices.Concat([]string{place.request.Worktree, place.step.Scratch}, place.request.Paths, place.step.Queue.Steps.Write)
	for _, o := range place.request.Overlays { // what it has written there is outside of its sandbox
		if below, is := strings.CutPrefix(filepath.Clean(name), o.Path+"/"); is {
			name = filepath.Join(o.Dir, o.Upper, below)
			given = append(given, filepath.Join(o.Dir, o.Upper))
		}
	}
	for _, folder := range given {
		names := []string{filepath.Clean(folder)}
		if resolved, err := filepath.EvalSymlinks(folder); err == nil {
			names = append(names, resolved)
		}
		for _, prefix := range names {
			below, is := strings.CutPrefix(filepath.Clean(name), prefix+"/")
			if !is {
				continue
			}
			root, err := os.OpenRoot(folder)
			if err != nil {
				return nil, err
			}
			defer root.Close()
			return openIn(root, below)
		}
	}
	return nil, fs.ErrNotExist
}
