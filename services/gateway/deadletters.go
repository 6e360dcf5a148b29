package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/deadletters"
	"landfall.build/platform/runner"
	"landfall.build/services/gateway/api"
)

const (
	// shownLetters is how many dead letters are kept for people; the others bound the value and the headers of each.
	shownLetters     = 1000
	keptLetterValue  = 4 << 10
	keptLetterHeader = 50
)

// foldLetter takes a record of landfall.dead-letters: its position is reported, and it is shown to people.
func (g *Gateway) foldLetter(m proto.Message) {
	if d, is := m.(*eventsv1.DeadLetter); is {
		g.buried.put(position{d.Topic, d.Partition, d.Offset})
		d.Headers = d.Headers[:min(len(d.Headers), keptLetterHeader)]
		d.Value = slices.Clone(d.Value[:min(len(d.Value), keptLetterValue)])
	}
	g.lettersMu.Lock()
	g.letters.Apply(m)
	g.lettersMu.Unlock()
	g.lists.Changed(api.PartDeadLetters, "")
}

// bury reports a record that cannot be handled; the queue continues without it once the report is written.
func (g *Gateway) bury(ctx context.Context, d runner.DeadLetter) {
	if !g.buried.put(position{d.Entry.Topic, d.Entry.Partition, d.Entry.Offset}) {
		return
	}
	runner.PutDeadLetter(ctx, g.Log, g.Logger, events.ServiceGateway, g.Instance, d)
}

// DeadLetters implements api.DeadLetterStore.
func (g *Gateway) DeadLetters() (letters []deadletters.Letter, older int) {
	g.lettersMu.Lock()
	defer g.lettersMu.Unlock()
	for _, l := range g.letters.Letters() {
		letters = append(letters, *l)
	}
	slices.SortStableFunc(letters, func(a, b deadletters.Letter) int { return cmp.Compare(a.StampUs, b.StampUs) })
	return letters, g.letters.Dropped()
}

// SendAgain implements api.DeadLetterStore.
func (g *Gateway) SendAgain(ctx context.Context, d *eventsv1.DeadLetter, by *eventsv1.DeadLetterSent) error {
	// It is finished even if the client waits no longer.
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendWait)
	defer cancel()
	offset, err := deadletters.Send(finish, g.Log, d, by, events.ServiceGateway, g.Instance)
	switch {
	case errors.Is(err, deadletters.ErrUnsendable):
		return err
	case err != nil:
		g.Logger.Error("the log did not confirm that a dead letter was sent again", "at", deadletters.Place(d), "error", err)
		return fmt.Errorf("%w: %w", api.ErrUnconfirmed, err)
	}
	if err := g.lettersFolded[d.Partition].wait(ctx, offset); err != nil {
		return api.ErrUnanswered
	}
	return nil
}
