package recorded

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrRecording occurs when a file is not a recording of builds in the form that ReadJenkins takes.
var ErrRecording = errors.New("not a recording of builds")

// sizesFile has the sizes of changes.
const sizesFile = "change_stats.csv"

// ReadJenkins reads a folder of recordings of Jenkins' builds of pull requests, one CSV file or more for each
// project, one row for each build and stage (the form of the LRTS data set): project, pr_name, pr_base_branch,
// build_id, build_duration (seconds), build_timestamp (seconds since 1970), build_result, build_head_sha; and, in
// change_stats.csv, num_changed_files, num_addition and num_deletion. passcount, failcount and ts_duration (seconds of all
// tests together) may be there: they are known of a build that has ended. Each build is given once.
func ReadJenkins(folder string) ([]Build, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.csv"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: %s has no CSV file", ErrRecording, folder)
	}
	slices.Sort(files)
	sizes := map[string][3]int{}
	if path := filepath.Join(folder, sizesFile); slices.Contains(files, path) {
		err := eachRow(path, []string{"project", "pr_name", "build_id", "num_changed_files", "num_addition", "num_deletion"}, func(c []string) error {
			numbers, err := integers(c[3:])
			if err == nil {
				sizes[strings.Join(c[:3], "\x00")] = [3]int(numbers)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var builds []Build
	seen := map[string]bool{}
	for _, path := range files {
		if filepath.Base(path) == sizesFile {
			continue
		}
		columns := []string{"project", "pr_name", "build_id", "pr_base_branch", "build_duration", "build_timestamp", "build_result", "build_head_sha", "passcount?", "failcount?", "ts_duration?"}
		err := eachRow(path, columns, func(c []string) error {
			key := strings.Join(c[:3], "\x00")
			if seen[key] {
				return nil
			}
			seen[key] = true
			b, err := buildOf(c)
			if size, known := sizes[key]; known {
				b.Files, b.Added, b.Deleted = size[0], size[1], size[2]
			}
			builds = append(builds, b)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return builds, nil
}

func buildOf(c []string) (Build, error) {
	b := Build{Project: c[0], Change: c[1], Branch: c[3], Result: c[6], Head: c[7], Files: -1, Added: -1, Deleted: -1, TestsPassed: -1, TestsFailed: -1, TestSeconds: -1}
	number, err := strconv.Atoi(c[2])
	if err != nil {
		return b, err
	}
	took, err := strconv.ParseFloat(c[4], 64)
	if err != nil {
		return b, err
	}
	at, err := strconv.ParseFloat(c[5], 64)
	if err != nil {
		return b, err
	}
	if !(took >= 0 && took < 1e8 && at > 0 && at < 1e11) {
		return b, fmt.Errorf("a build that began at %s and took %s s", c[5], c[4])
	}
	for k, to := range []*float64{&b.TestsPassed, &b.TestsFailed, &b.TestSeconds} {
		if cell := c[8+k]; cell != "" {
			if *to, err = strconv.ParseFloat(cell, 64); err != nil || !(*to >= 0 && *to < 1e12) {
				return b, fmt.Errorf("%q is no count of tests, or of their seconds", cell)
			}
		}
	}
	b.Number, b.Started, b.Took = number, time.UnixMilli(int64(at*1000)), time.Duration(took*1000)*time.Millisecond
	return b, nil
}

func integers(cells []string) ([]int, error) {
	out := make([]int, len(cells))
	for i, c := range cells {
		x, err := strconv.ParseFloat(c, 64)
		if err != nil || !(x >= -1 && x < 1e12) {
			return nil, fmt.Errorf("%q is no count", c)
		}
		out[i] = int(x)
	}
	return out, nil
}

// eachRow returns the named columns of each row. One whose name ends in ? may be missing: its cells are empty then.
func eachRow(path string, names []string, take func(cells []string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.ReuseRecord = true
	header, err := lines.Read()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRecording, path, err)
	}
	at := make([]int, len(names))
	for i, name := range names {
		name, optional := strings.CutSuffix(name, "?")
		if at[i] = slices.Index(header, name); at[i] < 0 && !optional {
			return fmt.Errorf("%w: %s has no column %s", ErrRecording, path, name)
		}
	}
	for {
		row, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrRecording, path, err)
		}
		cells := make([]string, len(at))
		for i, k := range at {
			if k >= 0 {
				cells[i] = strings.Clone(row[k])
			}
		}
		if err := take(cells); err != nil {
			line, _ := lines.FieldPos(0)
			return fmt.Errorf("%w: %s, line %d: %w", ErrRecording, path, line, err)
		}
	}
}
