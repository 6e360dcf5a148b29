// Package delivery finds the way of a parcel, and the day on which it is there.
package delivery

import (
	"fmt"
	"time"

	"bookshop.example/lib/calendar"
	"bookshop.example/lib/graph"
)

// perDay is how far a parcel comes on a working day.
const perDay = 400

// Network of the depots, with distances in kilometres.
func Network() graph.Graph {
	g := graph.Graph{}
	g.Connect("Hamburg", "Berlin", 290)
	g.Connect("Hamburg", "Cologne", 425)
	g.Connect("Berlin", "Leipzig", 190)
	g.Connect("Leipzig", "Munich", 430)
	g.Connect("Cologne", "Munich", 575)
	return g
}

// Arrival is the day on which a parcel posted on a day arrives.
func Arrival(g graph.Graph, from, to string, posted time.Time) (time.Time, error) {
	way, length := g.Shortest(from, to)
	if way == nil {
		return time.Time{}, fmt.Errorf("there is no way from %s to %s", from, to)
	}
	day := calendar.NextWorking(posted)
	return calendar.After(day, length/perDay), nil
}
