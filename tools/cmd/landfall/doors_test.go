package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/platform/access"
	"landfall.build/platform/journal/rights"
)

// changeNothing are the commands that change no queue: they read, or are the services themselves, or work on what is the user's own. A command
// is here, or it has a row in the table of doors.
var changeNothing = []string{
	"landfall", "landfall access", "landfall access explain", "landfall access kafka", "landfall affected", "landfall analytics", "landfall analyzer", "landfall archive", "landfall audit", "landfall broker",
	"landfall builder", "landfall completion", "landfall conflicts", "landfall dead-letters", "landfall demo", "landfall doctor", "landfall enumerator", "landfall explain",
	"landfall flakes", "landfall gateway", "landfall historian", "landfall history", "landfall hosts", "landfall hosts doctor", "landfall init", "landfall kills", "landfall kills intruder", "landfall lander", "landfall log", "landfall login", "landfall logout", "landfall logs",
	"landfall models", "landfall models compare", "landfall models list", "landfall models show", "landfall outcomes", "landfall plan", "landfall pools", "landfall prioritizer",
	"landfall profiler", "landfall queue", "landfall replay", "landfall selector", "landfall simulate", "landfall status", "landfall targets", "landfall timeline", "landfall token", "landfall token list",
	"landfall trace", "landfall tracer", "landfall train", "landfall train duration", "landfall train features", "landfall train outcome", "landfall train recorded", "landfall up", "landfall validate",
	"landfall version", "landfall watch", "landfall webhooks", "landfall webhooks list", "landfall whoami",
}

func TestEveryCommandIsInTheTableOfDoors(t *testing.T) {
	rows := map[string]access.Door{}
	for _, d := range access.Doors() {
		if d.Kind == access.Command || d.Kind == access.LogCommand {
			rows[d.Name] = d
		}
	}
	found := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := c.CommandPath()
		_, writes := rows[name]
		if reads := slices.Contains(changeNothing, name); reads == writes {
			t.Errorf("%s: in the table of doors: %v, in the list of those that change nothing: %v", name, writes, reads)
		}
		found[name] = true
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(root())
	for name := range rows {
		if !found[name] {
			t.Errorf("the table of doors has %s, which is no command", name)
		}
	}
	for _, name := range changeNothing {
		if !found[name] {
			t.Errorf("%s is no command", name)
		}
	}
}

// TestACommandThatWritesTheLogHasTheOperatorsAccount: the broker lets it write no more than the topics of such commands.
func TestACommandThatWritesTheLogHasTheOperatorsAccount(t *testing.T) {
	var topics []string
	for _, topic := range events.Topics() {
		if rights.Writes(rights.Operator, topic) {
			topics = append(topics, topic.Name)
		}
	}
	if got := strings.Join(topics, " "); got != "landfall.land-requests landfall.models landfall.dead-letters landfall.deliveries landfall.access" {
		t.Errorf("the account of commands writes %s", got)
	}
}

func TestEveryTopicThatOthersWriteIsInTheTable(t *testing.T) {
	for _, topic := range events.Topics() {
		row := slices.ContainsFunc(access.Doors(), func(d access.Door) bool { return d.Kind == access.Topic && d.Name == topic.Name })
		if others := rights.Writes(rights.Clients, topic); others != row {
			t.Errorf("%s is written by programs of others: %v, and in the table of doors: %v", topic.Name, others, row)
		}
	}
}
