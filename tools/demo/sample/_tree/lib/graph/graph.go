// Package graph finds ways through weighted directed graphs.
package graph

import "slices"

// Graph has the length of each edge, by its ends.
type Graph map[string]map[string]int

// Connect adds an edge in both directions.
func (g Graph) Connect(a, b string, length int) {
	for _, ends := range [][2]string{{a, b}, {b, a}} {
		if g[ends[0]] == nil {
			g[ends[0]] = map[string]int{}
		}
		g[ends[0]][ends[1]] = length
	}
}

// Shortest gives a shortest way from one node to another and its length; nil if there is none.
func (g Graph) Shortest(from, to string) ([]string, int) {
	distance, before := map[string]int{from: 0}, map[string]string{}
	done := map[string]bool{}
	for {
		at, found := "", false
		for node, d := range distance {
			if !done[node] && (!found || d < distance[at] || d == distance[at] && node < at) {
				at, found = node, true
			}
		}
		if !found {
			return nil, 0
		}
		if at == to {
			break
		}
		done[at] = true
		for next, length := range g[at] {
			if d, seen := distance[next]; !seen || distance[at]+length < d {
				distance[next], before[next] = distance[at]+length, at
			}
		}
	}
	way := []string{to}
	for way[len(way)-1] != from {
		way = append(way, before[way[len(way)-1]])
	}
	slices.Reverse(way)
	return way, distance[to]
}
