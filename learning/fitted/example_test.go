package fitted_test

import (
	"context"
	"fmt"
	"strings"

	"landfall.build/learning/fitted"
	"landfall.build/learning/table"
)

// A model that was written by one program is asked by another, of a table with the same columns.
func Example() {
	var csv strings.Builder
	csv.WriteString("began,tests,passed\n")
	for i := range 400 {
		fmt.Fprintf(&csv, "%d,%d,%d\n", i, i%10, map[bool]int{true: 1}[(i%10 > 4) != (i%7 == 0)])
	}
	rows, _ := table.Read(strings.NewReader(csv.String()), table.Options{})
	m, _, err := fitted.TrainOutcome(context.Background(), rows, fitted.Columns{Target: "passed", Time: "began"})
	if err != nil {
		fmt.Println(err)
		return
	}
	file, _ := m.MarshalBinary()

	asked, _ := fitted.UnmarshalOutcome(file)
	newer, _ := table.Read(strings.NewReader("tests\n0\n9\n"), table.Options{})
	p, _ := asked.Predict(newer)
	fmt.Println("trained until", asked.Until(), "–", p[0] < 0.3, p[1] > 0.7)
	// Output: trained until 399 – true true
}
