// Package churn counts the lines that a change adds and deletes, with bounded effort: features of
// models and figures for people; no decision rests on them.
package churn

import "bytes"

// maxEdits bounds the search for the shortest edit of one file. Above it lines are counted without their
// order, which finds fewer edits where lines moved.
const maxEdits = 1000

// binaryProbe is how much of a file is looked at for a NUL byte, as git does.
const binaryProbe = 8000

// Lines counts the lines that turning old into new adds and deletes; none for binary content. A last line
// without its newline differs from the same line with one.
func Lines(old, new []byte) (added, deleted int) {
	if Binary(old) || Binary(new) {
		return 0, 0
	}
	ids := map[string]int32{}
	a, b := number(ids, old), number(ids, new)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if edits, ok := shortestEdit(a, b); ok {
		// edits = added + deleted, and the lengths differ by added - deleted.
		added = (edits + len(b) - len(a)) / 2
		return added, edits - added
	}
	return unordered(a, b)
}

// Binary reports whether content is no text, as git does.
func Binary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), binaryProbe)], 0) >= 0
}

// number returns a number for each line, equal ones for equal lines.
func number(ids map[string]int32, content []byte) []int32 {
	var lines []int32
	for line := range bytes.Lines(content) {
		id, ok := ids[string(line)]
		if !ok {
			id = int32(len(ids))
			ids[string(line)] = id
		}
		lines = append(lines, id)
	}
	return lines
}

// shortestEdit returns the number of insertions and deletions of Myers' O(ND) algorithm; false above maxEdits.
func shortestEdit(a, b []int32) (int, bool) {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return n + m, true
	}
	limit := min(n+m, maxEdits)
	// furthest[k+offset] is the furthest x on diagonal k = x - y.
	offset := limit + 1
	furthest := make([]int, 2*offset+1)
	for d := 0; d <= limit; d++ {
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && furthest[k-1+offset] < furthest[k+1+offset] {
				x = furthest[k+1+offset]
			} else {
				x = furthest[k-1+offset] + 1
			}
			y := x - k
			for x < n && y < m && x >= 0 && y >= 0 && a[x] == b[y] {
				x, y = x+1, y+1
			}
			furthest[k+offset] = x
			if x >= n && y >= m {
				return d, true
			}
		}
	}
	return 0, false
}

// unordered compares the lines as multisets.
func unordered(a, b []int32) (added, deleted int) {
	counts := map[int32]int{}
	for _, id := range b {
		counts[id]++
	}
	for _, id := range a {
		counts[id]--
	}
	for _, n := range counts {
		added += max(n, 0)
		deleted += max(-n, 0)
	}
	return added, deleted
}
