package access

import (
	"fmt"
	"strings"
)

// Markdown returns the table of doors: for each verb the least role, and every door behind which it is.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| what | least role | doors |\n|---|---|---|\n")
	row := func(what, role string, in func(Door) bool) {
		var names []string
		for _, d := range Doors() {
			if in(d) {
				name := "`" + d.Name + "`"
				if d.Kind == LogCommand || d.Kind == Topic {
					name += " (Kafka's ACLs)"
				}
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", what, role, strings.Join(names, ", "))
		}
	}
	row("what is of no queue", "none, and no proof", func(d Door) bool { return d.For == Everybody })
	row("that there is news at a code host (`landfall hosts`)", "none; the webhooks' secret", func(d Door) bool { return d.For == Signers })
	row("who somebody is", "none", func(d Door) bool { return d.For == Known })
	for _, n := range needs {
		role := n.role.String()
		if n.own != NoRole {
			role = fmt.Sprintf("%s of one's own, %s of others", n.own, n.role)
		}
		row(n.doing, role, func(d Door) bool { return d.Verb == n.verb })
	}
	return b.String()
}
