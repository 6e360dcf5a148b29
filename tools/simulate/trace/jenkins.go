package trace

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// maxRuns bounds how many recorded builds are taken.
const maxRuns = 1_000_000

// Jenkins reads the recorded builds of the LRTS data set (ISSTA 2024): the files *.training.csv and
// *.testing.csv of a folder, which have a row for each build and stage. A build that was aborted, or not
// built, is left out: how long it would have taken, and how it would have ended, is not known. SUCCESS is
// green; UNSTABLE and FAILURE are not.
func Jenkins(folder string) ([]Run, error) {
	var files []string
	for _, pattern := range []string{"*.training.csv", "*.testing.csv"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no *.training.csv or *.testing.csv; name the folder of the LRTS data set", folder)
	}
	slices.Sort(files)
	seen := map[string]bool{}
	var runs []Run
	for _, name := range files {
		list, err := jenkinsFile(name, seen)
		if err != nil {
			return nil, err
		}
		if runs = append(runs, list...); len(runs) > maxRuns {
			return nil, fmt.Errorf("%s: more than %d builds", folder, maxRuns)
		}
	}
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name)) })
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s has no build that ended by itself", folder)
	}
	return runs, nil
}

func jenkinsFile(name string, seen map[string]bool) (runs []Run, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	column := map[string]int{}
	for i, h := range header {
		column[h] = i
	}
	for _, h := range []string{"project", "pr_name", "build_id", "build_duration", "build_timestamp", "build_result"} {
		if _, has := column[h]; !has {
			return nil, fmt.Errorf("%s: line 1: there is no column %s", name, h)
		}
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return runs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		at := func(h string) string { return row[column[h]] }
		id := at("project") + "/" + at("pr_name") + "/" + at("build_id")
		result := at("build_result")
		if seen[id] || result == "ABORTED" || result == "NOT_BUILT" {
			continue
		}
		seen[id] = true
		run := Run{Name: id, Green: result == "SUCCESS"}
		line, _ := r.FieldPos(0)
		if run.Start, err = strconv.ParseFloat(at("build_timestamp"), 64); err != nil || !(run.Start >= 0) {
			return nil, fmt.Errorf("%s: line %d: build_timestamp is %q", name, line, at("build_timestamp"))
		}
		if run.Duration, err = strconv.ParseFloat(at("build_duration"), 64); err != nil || !(run.Duration > 0 && run.Duration <= maxSeconds) {
			return nil, fmt.Errorf("%s: line %d: build_duration is %q", name, line, at("build_duration"))
		}
		runs = append(runs, run)
	}
}
