package trace

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Commit is a commit of a repository, as conflict_commits.csv has it.
type Commit struct {
	ID string
	// At is in seconds.
	At float64
	// Affected is how many targets it affected, 0 for one that touched none (documentation).
	Affected int
	// Folders are the packages that it touched directly, at most 40.
	Folders []string
}

// Commits reads those of one repository, by time. A repository that the file does not have is an error that
// names those that it has.
func Commits(file, repository string) ([]Commit, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	column := map[string]int{}
	for i, h := range header {
		column[h] = i
	}
	for _, h := range []string{"repo", "commit", "commit_time", "affected_targets", "direct_packages"} {
		if _, has := column[h]; !has {
			return nil, fmt.Errorf("%s: line 1: there is no column %s", file, h)
		}
	}
	var list []Commit
	known := map[string]bool{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		at := func(h string) string { return row[column[h]] }
		line, _ := r.FieldPos(0)
		known[at("repo")] = true
		if at("repo") != repository {
			continue
		}
		when, err := time.Parse(time.RFC3339, at("commit_time"))
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: commit_time: %w", file, line, err)
		}
		affected, err := strconv.Atoi(at("affected_targets"))
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: affected_targets is %q", file, line, at("affected_targets"))
		}
		list = append(list, Commit{ID: at("commit"), At: float64(when.UnixMicro()) / 1e6, Affected: affected, Folders: strings.Fields(at("direct_packages"))})
	}
	if len(list) == 0 {
		var names []string
		for n := range known {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("%s has no commits of %q; it has those of %s", file, repository, strings.Join(names, ", "))
	}
	slices.SortStableFunc(list, func(a, b Commit) int { return cmp.Compare(a.At, b.At) })
	return list, nil
}

// OnGraph makes a workload of commits: each affects the targets of the packages that it touched and all that
// depend on them, on one graph. Two that share a target are in potential conflict. A build takes from shortest
// to longest, by the share of the targets. Green is drawn; see Recorded.Failure.
func OnGraph(commits []Commit, g *ImportGraph, shortest, longest time.Duration) Recorded {
	r := Recorded{targets: g.Targets}
	seen := map[string]int{}
	for _, c := range commits {
		affected := g.Affected(nil)
		if c.Affected != 0 {
			affected = g.Affected(c.Folders)
		}
		n := 0
		for t := range g.Targets {
			if affected.has(t) {
				n++
			}
		}
		id := c.ID
		if seen[c.ID]++; seen[c.ID] > 1 {
			id = fmt.Sprintf("%s %d", c.ID, seen[c.ID])
		}
		r.Runs = append(r.Runs, Run{
			Name: id, Start: c.At, Green: true,
			Duration: shortest.Seconds() + (longest-shortest).Seconds()*float64(n)/float64(g.Targets),
		})
		r.affected = append(r.affected, affected)
	}
	return r
}

// InSteps has the targets of each run built for themselves, as p says of steps. Runs that affect no target need no worker, and are left
// out.
func (r Recorded) InSteps(p Paper) Recorded {
	out := r
	out.Steps, out.Runs, out.affected = &p, nil, nil
	for i, run := range r.Runs {
		if slices.ContainsFunc(r.affected[i], func(word uint64) bool { return word != 0 }) {
			out.Runs, out.affected = append(out.Runs, run), append(out.affected, r.affected[i])
		}
	}
	return out
}
