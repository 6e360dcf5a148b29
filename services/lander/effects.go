package lander

import (
	"context"
	"fmt"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// The effects on a mainline. Each has an Outcome.
type (
	// ReadHead asks the remote for the head.
	ReadHead struct{ Queue string }
	// ListMoves lists the commits that the mainline gained from one head to another.
	ListMoves struct{ Queue, From, To string }
	// FindDropped looks for the landings that a rewritten mainline does not contain.
	FindDropped struct {
		Queue, Head string
		Landings    landings
	}
	// MakeLanding makes the commits of a change on a base.
	MakeLanding struct {
		Queue, Base string
		Admission   *eventsv1.Admission
		StampUS     int64
		// Quarantined are names of targets; the commits name those that the change affects.
		Quarantined []string
	}
	// PushLanding pushes a commit if the branch is still at base (M22).
	PushLanding struct{ Queue, Base, Commit string }
	// MoveHeads moves branches under review to what lands, and TakeBackHeads back.
	MoveHeads struct {
		Queue string
		Heads []*eventsv1.ReviewHead
	}
	TakeBackHeads struct {
		Queue string
		Heads []*eventsv1.ReviewHead
	}
	// PushNothing pushes a commit without changes if the branch is still at base: no other push from base can arrive behind it.
	PushNothing struct {
		Queue, Base string
		StampUS     int64
	}
	// FindCommit asks whether a head contains a commit.
	FindCommit struct{ Queue, Head, Commit string }
)

// Measure shows what kind of trouble a queue's mainline is in, or that it is in none. It has no outcome.
type Measure struct {
	Queue   string
	Trouble eventsv1.MainlineTrouble
}

// CountRefusal counts a push that the remote refused. It has no outcome.
type CountRefusal struct {
	Queue   string
	Concern eventsv1.RefusalConcern
}

// MeasurePause shows whether the remote refuses every push of a queue. It has no outcome.
type MeasurePause struct {
	Queue  string
	Paused bool
}

// Outcome is what came of an effect on the mainline of a queue. With Err nothing else is known.
type Outcome struct {
	Queue   string
	Err     error
	Head    string
	Moves   []Move
	Forced  bool
	Dropped []*eventsv1.ChangeRef
	Landing *Landing
	There   bool
}

// perform carries out an effect on a mainline.
func (o Options) perform(ctx context.Context, e runner.Effect) any {
	var out Outcome
	switch e := e.(type) {
	case Measure:
		o.Measured.setTrouble(e.Queue, e.Trouble)
		return nil
	case CountRefusal:
		o.Measured.countRefusal(e.Queue, e.Concern)
		return nil
	case MeasurePause:
		o.Measured.setPaused(e.Queue, e.Paused)
		return nil
	case ReadHead:
		out.Queue = e.Queue
		out.Head, out.Err = o.Mainlines[e.Queue].Head(ctx)
	case ListMoves:
		out.Queue = e.Queue
		out.Moves, out.Forced, out.Err = o.Mainlines[e.Queue].Between(ctx, e.From, e.To)
	case FindDropped:
		out.Queue = e.Queue
		out.Dropped, out.Err = e.Landings.missing(ctx, o.Mainlines[e.Queue], e.Head)
	case MakeLanding:
		out.Queue = e.Queue
		out.Landing, out.Err = o.Mainlines[e.Queue].Make(ctx, e.Base, e.Admission, e.StampUS, e.Quarantined)
	case PushLanding:
		out.Queue = e.Queue
		began := time.Now()
		out.Err = o.Mainlines[e.Queue].Push(ctx, e.Base, e.Commit)
		o.Measured.pushed(e.Queue, began, out.Err)
	case MoveHeads:
		out.Queue = e.Queue
		out.Err = o.Mainlines[e.Queue].MoveHeads(ctx, e.Heads)
	case TakeBackHeads:
		out.Queue = e.Queue
		out.Err = o.Mainlines[e.Queue].TakeBackHeads(ctx, e.Heads)
	case PushNothing:
		out.Queue = e.Queue
		out.Err = o.Mainlines[e.Queue].PushNothing(ctx, e.Base, e.StampUS)
	case FindCommit:
		out.Queue = e.Queue
		out.There, out.Err = o.Mainlines[e.Queue].Contains(ctx, e.Head, e.Commit)
	default:
		panic(fmt.Sprintf("the lander has no effect %T", e))
	}
	return out
}
