package builder

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/folders"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/groups"
	"landfall.build/services/builder/reading"
)

const (
	// reportsEvery is how often a file of reports is looked at while its tool runs.
	reportsEvery = 100 * time.Millisecond
	// mostReported bounds what is read of it, in bytes. What stands behind that is not believed.
	mostReported = 512 << 20
	// mostReport bounds what is read of one report of JUnit's kind. A longer one is cut, and so is no whole document.
	mostReport = 64 << 20
	// mostShown bounds what is shown of a file that a tool names.
	mostShown = 256 << 10
)

// reportFile is a file that a tool writes its reports to, in a folder of the group's own. Without one, name is "".
type reportFile struct {
	dir, name string
	root      *os.Root
	file      *os.File
	to        io.Writer
	read      int64
	// junit takes reports of JUnit's kind, once the tool has ended; nil for other tools.
	junit *groups.JUnit
}

// listen has the reports of the command's tool read: of its output, or of a file that it is told to write.
func (g *groupRun) listen(labels []string) (*reportFile, error) {
	r := &reportFile{}
	switch results := g.command.Group.Results; results {
	case targets.GoTest:
		g.place.request.Reports = groups.GoTests(g.tally, g.logs.write)
	case targets.GoBuild:
		g.place.request.Reports = groups.GoBuilds(g.tally, g.logs.write)
	case targets.BazelBuild, targets.BazelTest:
		g.place.request.Reports = writes(func(text []byte) { g.logs.write("", text) })
		r.to = groups.BazelEvents(g.tally, results == targets.BazelTest, g.logs.write, g.shown)
		r.name = "events-" + g.job.lease + ".json"
		if err := g.openFolder(r); err != nil {
			return nil, err
		}
		c := &g.place.step.Target.Commands[0]
		at := slices.Index(c.Argv, "--")
		c.Argv = slices.Insert(slices.Clone(c.Argv), at, "--build_event_json_file="+filepath.Join(r.dir, r.name))
	case targets.Lines:
		g.place.request.Reports = writes(func(text []byte) { g.logs.write("", text) })
		r.to, r.name = groups.ResultLines(g.tally), "results"
		if err := g.openFolder(r); err != nil {
			return nil, err
		}
		return r, g.ask(r, labels, "LANDFALL_GROUP_RESULTS="+filepath.Join(r.dir, r.name))
	case targets.JUnit:
		g.place.request.Reports = writes(func(text []byte) { g.logs.write("", text) })
		r.junit = groups.NewJUnit(g.tally, g.logs.write)
		if err := g.openFolder(r); err != nil {
			return nil, err
		}
		if err := r.root.Mkdir(junitFolder, 0o700); err != nil {
			return nil, err
		}
		return r, g.ask(r, labels, "LANDFALL_GROUP_REPORTS="+filepath.Join(r.dir, junitFolder))
	}
	return r, nil
}

// junitFolder is where, in the folder of a group, its tool leaves reports of JUnit's kind.
const junitFolder = "reports"

// ask gives the tool a file with the targets that it is to verify, and the variable that says where to report.
func (g *groupRun) ask(r *reportFile, labels []string, where string) error {
	asked := filepath.Join(r.dir, "targets")
	c := &g.place.step.Target.Commands[0]
	c.Env = append(slices.Clone(c.Env), "LANDFALL_GROUP_TARGETS="+asked, where)
	return os.WriteFile(asked, []byte(strings.Join(labels, "\n")+"\n"), 0o600)
}

// openFolder gives the step a folder for its reports: an empty one, or that of its server, where each group has a file of its own.
func (g *groupRun) openFolder(r *reportFile) (err error) {
	r.dir = g.reportsFolder()
	if g.place.server == nil {
		if err := execution.RemoveAll(r.dir); err != nil {
			return err
		}
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return err
		}
		g.place.step.Paths = append(g.place.step.Paths, r.dir)
	}
	r.root, err = os.OpenRoot(r.dir)
	return err
}

// poll reads what the tool has written since.
func (r *reportFile) poll() {
	if r.root == nil || r.to == nil {
		return
	}
	if r.file == nil {
		file, err := openIn(r.root, r.name)
		if err != nil {
			return // not yet
		}
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			file.Close()
			return
		}
		r.file = file.(*os.File)
	}
	n, _ := io.Copy(r.to, io.LimitReader(r.file, mostReported-r.read))
	r.read += n
}

// finish reads what there is once the tool has ended.
func (r *reportFile) finish() {
	r.poll()
	if r.junit == nil {
		return
	}
	visited := 0
	// Errors are of single files and folders.
	_ = fs.WalkDir(folders.Bounded(r.root, reading.MostNames), junitFolder, func(name string, entry fs.DirEntry, err error) error {
		visited++
		switch {
		case err != nil, reading.TooDeep(name, entry):
			r.junit.Unreadable()
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".xml":
			r.readJUnit(name)
		}
		if r.read >= mostReported || visited > mostVisited {
			r.junit.Unreadable()
			return fs.SkipAll
		}
		return nil
	})
	r.junit.Report()
}

// readJUnit reads one report, which must be a regular file.
func (r *reportFile) readJUnit(name string) {
	file, err := openIn(r.root, name)
	if err != nil {
		r.junit.Unreadable()
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		r.junit.Unreadable()
		return
	}
	r.read += info.Size()
	r.junit.Read(io.LimitReader(file, mostReport))
}

// closeReports also removes them, unless a server has their folder.
func (g *groupRun) closeReports(r *reportFile) {
	if r.root == nil {
		return
	}
	if r.file != nil {
		r.file.Close()
	}
	r.root.Close()
	if g.place.server == nil {
		_ = execution.RemoveAll(r.dir)
	}
}

// shown returns the end of a file that the tool names, with secrets masked.
func (g *groupRun) shown(name string) []byte {
	file, err := openGiven(g.place, name)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	at, is := file.(io.ReaderAt)
	if !is {
		return nil
	}
	content, _ := io.ReadAll(io.NewSectionReader(at, max(0, info.Size()-mostShown), mostShown))
	return execution.Mask(content, g.place.request.Secrets)
}

// writes is an io.Writer.
type writes func([]byte)

func (w writes) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
