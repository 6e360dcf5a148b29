package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// line is the measurements that differ in n only, by n.
type line struct {
	name   string
	points []point
}

// point is one measurement: nanoseconds for one operation.
type point struct{ n, ns float64 }

var (
	result = regexp.MustCompile(`^(Benchmark\w+)/(\S+?)(?:-\d+)?\s+\d+\s+([0-9.e+]+) ns/op`)
	size   = regexp.MustCompile(`(?:^|/)n=([0-9_]+)(/|$)`)
)

// read finds the results of a benchmark. Of several counts the fastest stands: whatever else the machine does only
// adds to what an operation costs.
func read(in io.Reader, benchmark string) ([]line, error) {
	fastest := map[string]map[float64]float64{}
	s := bufio.NewScanner(in)
	for s.Scan() {
		m := result.FindStringSubmatch(s.Text())
		if m == nil || m[1] != benchmark {
			continue
		}
		at := size.FindStringSubmatch(m[2])
		if at == nil {
			continue
		}
		n, errN := strconv.ParseFloat(strings.ReplaceAll(at[1], "_", ""), 64)
		ns, errNS := strconv.ParseFloat(m[3], 64)
		if errN != nil || errNS != nil || !(n > 0) || !(ns > 0) {
			return nil, fmt.Errorf("%q is no result", s.Text())
		}
		name := strings.Trim(strings.Replace(m[2], strings.TrimSuffix(at[0], "/"), "", 1), "/")
		if fastest[name] == nil {
			fastest[name] = map[float64]float64{}
		}
		if old, again := fastest[name][n]; !again || ns < old {
			fastest[name][n] = ns
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	var lines []line
	for name, of := range fastest {
		l := line{name: strings.ReplaceAll(name, "/", ", ")}
		for n, ns := range of {
			l.points = append(l.points, point{n, ns})
		}
		slices.SortFunc(l.points, func(a, b point) int { return cmp.Compare(a.n, b.n) })
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("nothing that was read is a result of %s with the parameter n", benchmark)
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.name, b.name) })
	return lines, nil
}
