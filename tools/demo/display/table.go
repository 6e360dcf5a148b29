package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"landfall.build/services/gateway/view"
)

// barWidth is that of the bar of decided changes.
const barWidth = 30

// rows are the head of the table and the pending changes in queue order, at most so many.
func (l *Live) rows(most int) []string {
	count := map[string]int{}
	var pending []view.Summary
	for _, c := range l.changes {
		count[c.State]++
		if !view.Final(c.State) {
			pending = append(pending, c)
		}
	}
	decided := len(l.changes) - len(pending)
	filled := min(barWidth, barWidth*decided/max(1, l.total))
	rows := []string{
		fmt.Sprintf("%s  [%s%s] %d of %d decided: %d landed, %d rejected, %d ejected, %d cancelled; %d builds under way", l.clock(),
			strings.Repeat("█", filled), strings.Repeat("·", barWidth-filled), decided, l.total,
			count[view.StateLanded], count[view.StateRejected], count[view.StateEjected], count[view.StateCancelled], l.queue.Running),
	}
	slices.SortFunc(pending, func(a, b view.Summary) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Change, b.Change))
	})
	for i, c := range pending {
		if i == most-1 && len(pending) > most {
			return append(rows, fmt.Sprintf("        … and %d more", len(pending)-i))
		}
		steps := ""
		if c.StepsTotal > 0 {
			steps = fmt.Sprintf("%d/%d", c.StepsDone, c.StepsTotal)
		}
		mark := " "
		if c.Urgent {
			mark = "!"
		}
		rows = append(rows, fmt.Sprintf("%5d %s %-30s %-16s %-8s %6s  %s", c.Position, mark, clean(c.Change), clean(c.Author), c.State, steps, clean(c.Why)))
	}
	return rows
}
