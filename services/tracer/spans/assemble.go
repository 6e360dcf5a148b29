package spans

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

const (
	// maxText bounds the texts of a span, in bytes, maxLinks its links and the changes that it lists.
	maxText  = 300
	maxLinks = 32
)

// Trace is the trace of one revision of a change.
type Trace struct {
	Queue, Change string
	Revision      uint64
	TraceID       trace.TraceID
	// Outcome is how the change ended: landed, rejected, ejected, cancelled or revised; "" if it is pending.
	Outcome string
	// Spans has the root first. The spans below a span come right behind it, in the order in which they began.
	Spans []Span
	// Left counts what the bounds of a trace left out.
	Left int
}

// Span is one span.
type Span struct {
	ID, Parent trace.SpanID
	// Service is which service did what it shows.
	Service, Name string
	Kind          trace.SpanKind
	Start, End    time.Time
	// Result is success, failure, error, timeout, cancellation or skip; "" if it has none, or none yet.
	Result string
	// Failed is set if the span's status is an error; Message says why.
	Failed     bool
	Message    string
	Attributes []attribute.KeyValue
	Events     []Event
	Links      []Link
	// Depth is 0 for the root.
	Depth int
}

// Event is something that happened within a span.
type Event struct {
	Name, Text string
	Time       time.Time
}

// Link leads to a span of another trace.
type Link struct {
	Span trace.SpanContext
	// Change is what the other trace is of.
	Change string
}

// requests is the topic of the requests, which the admissions name. It is not read.
const requests = "landfall.land-requests"

// Results, as OpenTelemetry's conventions for CI/CD name them.
const (
	success      = "success"
	failure      = "failure"
	failed       = "error"
	timeout      = "timeout"
	cancellation = "cancellation"
)

// assembly makes the spans of one change.
type assembly struct {
	*change
	// until is when the change ended, or now.
	until time.Time
	out   []Span
}

func text(key, value string) attribute.KeyValue { return attribute.String(key, clip(value)) }

// clip cuts a text to maxText bytes.
func clip(value string) string {
	value = strings.ToValidUTF8(value, "�")
	if len(value) <= maxText {
		return value
	}
	end := maxText
	for !utf8.RuneStart(value[end]) {
		end--
	}
	return value[:end] + "…"
}

// spanID returns the id of a span of a change, by what it is about.
func (c *change) spanID(kind string, about ...string) (id trace.SpanID) {
	of := c.root.SpanID()
	b, err := hex.DecodeString(events.DeriveID(of.String(), append([]string{kind}, about...)...))
	if err != nil {
		panic(err)
	}
	copy(id[:], b)
	return id
}

func (c *change) stepID(f *eventsv1.StepFinished) trace.SpanID {
	return c.spanID("step", f.Target, f.Hash, strconv.FormatUint(uint64(f.Attempt), 10))
}

// link returns a link to a span of the change, for another change; false if the change has no trace.
func (c *change) link(id trace.SpanID) (Link, bool) {
	return Link{Span: c.root.WithSpanID(id), Change: c.ref.change}, !c.unwanted && c.root.IsValid()
}

// assemble makes the trace of a change that ended at a time, or is pending then.
func (c *change) assemble(until time.Time) Trace {
	a := &assembly{change: c, until: until}
	a.rootSpan()
	a.admit()
	for i := range c.analyses {
		a.analysis(c.analyses[i])
	}
	for _, b := range c.builds {
		a.build(b)
	}
	for _, x := range c.attempts {
		a.attempt(x)
	}
	t := Trace{Queue: c.queue.name, Change: c.ref.change, Revision: c.revision, TraceID: c.root.TraceID(), Outcome: c.outcome, Left: c.left}
	t.Spans = inOrder(a.out)
	return t
}

// inOrder returns the spans in the order of Trace.Spans. The first one given is the root.
func inOrder(spans []Span) (out []Span) {
	below := map[trace.SpanID][]Span{}
	for _, s := range spans[1:] {
		below[s.Parent] = append(below[s.Parent], s)
	}
	var put func(s Span, depth int)
	put = func(s Span, depth int) {
		s.Depth = depth
		out = append(out, s)
		list := below[s.ID]
		slices.SortStableFunc(list, func(a, b Span) int {
			return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID.String(), b.ID.String()))
		})
		for _, s := range list {
			put(s, depth+1)
		}
	}
	put(spans[0], 0)
	return out
}

// add adds a span. It has it end no later than the trace, and no earlier than it begins.
func (a *assembly) add(s Span) {
	if s.End.IsZero() || s.End.After(a.until) {
		s.End = a.until
	}
	if s.End.Before(s.Start) {
		s.End = s.Start
	}
	if s.Kind == trace.SpanKindUnspecified {
		s.Kind = trace.SpanKindInternal
	}
	s.Name, s.Message = clip(s.Name), clip(s.Message)
	a.out = append(a.out, s)
}

// in reports whether what began at a time belongs to the trace.
func (a *assembly) in(at time.Time) bool { return !at.After(a.until) }

func (a *assembly) rootSpan() {
	admission := a.admission
	s := Span{
		ID: a.root.SpanID(), Service: events.ServiceGateway, Name: "RUN " + a.queue.name, Kind: trace.SpanKindServer, Start: a.received(), End: a.until,
		Attributes: []attribute.KeyValue{
			text("cicd.pipeline.name", a.queue.name), text("cicd.pipeline.run.id", fmt.Sprintf("%s@%d", a.ref.change, a.revision)),
			attribute.String("cicd.pipeline.action.name", "RUN"), text("vcs.change.id", a.ref.change), text("vcs.change.title", admission.Title),
			attribute.Int64("landfall.change.revision", int64(a.revision)), text("vcs.ref.base.revision", admission.Mainline),
		},
	}
	if a.parent.IsValid() {
		s.Parent = a.parent.SpanID()
	}
	if n := len(admission.LandingCommits); n > 0 {
		s.Attributes = append(s.Attributes, text("vcs.ref.head.revision", admission.LandingCommits[n-1].Head))
	}
	if n := len(admission.Entries); n > 0 && admission.Entries[n-1].Ref != "" {
		s.Attributes = append(s.Attributes, text("vcs.ref.head.name", admission.Entries[n-1].Ref))
	}
	for _, b := range a.builds {
		if b.scheduled.GetBranch() != "" {
			s.Attributes = append(s.Attributes, text("vcs.ref.base.name", b.scheduled.Branch), text("vcs.repository.name", b.scheduled.Repository))
			break
		}
	}
	for _, e := range a.events {
		if a.in(e.Time) {
			s.Events = append(s.Events, Event{Name: e.Name, Text: clip(e.Text), Time: e.Time})
		}
	}
	state := "closed"
	switch a.outcome {
	case "":
		state = "open"
	case "landed":
		s.Result, state = success, "merged"
	case "rejected":
		s.Result = failure
	case "ejected":
		s.Result = failed
		if a.reason.GetClass() == eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT {
			s.Result = timeout
		}
	default:
		s.Result = cancellation
	}
	s.Attributes = append(s.Attributes, attribute.String("vcs.change.state", state))
	if a.outcome != "" {
		s.Attributes = append(s.Attributes, attribute.String("cicd.pipeline.result", s.Result), attribute.String("landfall.outcome", a.outcome))
	}
	if a.reason != nil {
		s.Failed, s.Message = true, a.reason.Message
		s.Attributes = append(s.Attributes, attribute.String("error.type", lower(a.reason.Class.String(), "REASON_CLASS_")))
	}
	if a.left > 0 {
		s.Attributes = append(s.Attributes, attribute.Int("landfall.trace.left_out", a.left))
	}
	a.add(s)
}

// lower returns the name of an enum's value without its prefix.
func lower(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

// received is when the request was published; requests of earlier releases do not say.
func (c *change) received() time.Time {
	if us := c.admission.ReceivedUs; us > 0 && !time.UnixMicro(us).After(c.admitted) {
		return time.UnixMicro(us)
	}
	return c.admitted
}

func (a *assembly) admit() {
	s := Span{
		ID: a.spanID("admission"), Parent: a.root.SpanID(), Service: events.ServiceGateway, Name: "process " + requests, Kind: trace.SpanKindConsumer,
		Start: a.received(), End: a.admitted, Result: success,
		Attributes: []attribute.KeyValue{
			attribute.String("messaging.system", "kafka"), attribute.String("messaging.operation.name", "process"), attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", requests), text("messaging.message.id", a.admission.RequestId),
		},
	}
	if p := a.admission.Place; p != nil {
		s.Attributes = append(s.Attributes, attribute.String("messaging.destination.partition.id", strconv.Itoa(int(p.Partition))), attribute.Int64("messaging.kafka.offset", p.Offset))
	}
	a.add(s)
}

func (a *assembly) analysis(x analysis) {
	s := Span{
		ID: a.spanID("analysis", x.Base), Parent: a.root.SpanID(), Service: events.ServiceAnalyzer, Name: "analyze",
		Start: time.UnixMicro(x.StartedUs), End: time.UnixMicro(x.FinishedUs), Result: success,
		Attributes: []attribute.KeyValue{text("vcs.ref.base.revision", x.Base), attribute.Int("landfall.analysis.targets", len(x.Affected.GetTargets())),
			attribute.Bool("landfall.analysis.all", x.Affected.GetAll())},
	}
	if x.Outcome != eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED {
		s.fail(failure, lower(x.Outcome.String(), "ANALYSIS_OUTCOME_"), x.Message)
	}
	if a.in(s.Start) {
		a.add(s)
	}
}

// fail gives a span a result that is not success, with the reason. A cancellation is no error.
func (s *Span) fail(result, errorType, message string) {
	s.Result, s.Failed, s.Message = result, result != cancellation, message
	if s.Failed {
		s.Attributes = append(s.Attributes, attribute.String("error.type", errorType))
	} else {
		s.Attributes = append(s.Attributes, text("landfall.message", message))
	}
}

func (a *assembly) build(b *build) {
	s := Span{
		ID: a.spanID("build", b.id), Parent: a.root.SpanID(), Service: events.ServiceBuilder, Name: "build", Start: b.began(),
		Attributes: []attribute.KeyValue{text("landfall.build.id", b.id), text("vcs.ref.base.revision", b.base)},
	}
	if !a.in(s.Start) {
		return
	}
	if p := b.scheduled; p != nil {
		var assumed []string
		for _, other := range p.Assumed[:min(len(p.Assumed), maxLinks)] {
			assumed = append(assumed, clip(other.Change.GetChange()))
		}
		s.Attributes = append(s.Attributes, attribute.StringSlice("landfall.build.assumed", assumed), attribute.Int("landfall.build.targets", len(p.Targets)),
			attribute.Float64("landfall.build.needed", p.Needed), attribute.Float64("landfall.build.value", p.Value), text("landfall.why", p.Why))
		a.add(Span{ID: a.spanID("schedule", b.id), Parent: s.ID, Service: events.ServiceSelector, Name: "decide", Start: b.stamp, End: b.at, Result: success,
			Attributes: []attribute.KeyValue{attribute.String("landfall.decision", "build")}})
	}
	for _, other := range b.assumed {
		if l, ok := other.link(other.root.SpanID()); ok && len(s.Links) < maxLinks {
			s.Links = append(s.Links, l)
		}
	}
	result, message := "", ""
	last := b.at
	later := func(t time.Time) {
		if a.in(t) && t.After(last) {
			last = t
		}
	}
	if p := b.prepared; p != nil && a.in(time.UnixMicro(p.StartedUs)) {
		prepare := Span{ID: a.spanID("preparation", b.id), Parent: s.ID, Service: events.ServiceBuilder, Name: "prepare", Start: time.UnixMicro(p.StartedUs), End: time.UnixMicro(p.FinishedUs), Result: success,
			Attributes: []attribute.KeyValue{text("cicd.worker.name", p.Worker), attribute.Int("landfall.build.versions", len(b.versions))}}
		switch p.Outcome {
		case eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED:
		case eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE:
			prepare.fail(failed, "infrastructure", p.Message)
		default:
			prepare.fail(failure, lower(p.Outcome.String(), "PREPARATION_OUTCOME_"), p.Message)
		}
		result, message = prepare.Result, p.Message
		later(prepare.End)
		a.add(prepare)
	}
	ends := map[version]string{}
	for _, x := range b.steps {
		if !a.in(x.at) {
			continue
		}
		a.step(s.ID, x)
		later(time.UnixMicro(x.FinishedUs))
		ends[version{x.Target, x.Hash}] = resultOf(x.Outcome)
	}
	for _, worse := range []string{cancellation, failed, timeout, failure} {
		if slices.Contains(slices.Collect(maps.Values(ends)), worse) {
			result = worse
		}
	}
	switch {
	case !b.aborted.IsZero() && a.in(b.aborted):
		s.End, result, message = b.aborted, cancellation, b.why
	case a.outcome == "" && (b.prepared == nil || len(ends) < len(b.versions)): // it goes on
		result = ""
	case last.After(s.Start):
		s.End = last
	}
	switch result {
	case "":
	case success:
		s.Result = result
	default:
		s.fail(result, result, message)
	}
	if s.Result != "" {
		s.Attributes = append(s.Attributes, attribute.String("cicd.pipeline.result", s.Result))
	}
	a.add(s)
}

// began is when a build was scheduled, or, if that was not read, when its tree was begun.
func (b *build) began() time.Time {
	if b.scheduled == nil && b.prepared != nil {
		return time.UnixMicro(b.prepared.StartedUs)
	}
	if b.stamp.IsZero() || b.stamp.After(b.at) {
		return b.at
	}
	return b.stamp
}

func resultOf(o eventsv1.StepOutcome) string {
	switch o {
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
		return success
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
		return failure
	case eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT:
		return timeout
	case eventsv1.StepOutcome_STEP_OUTCOME_ABORTED:
		return cancellation
	}
	return failed
}

func (a *assembly) step(parent trace.SpanID, x *step) {
	s := Span{
		ID: a.stepID(x.StepFinished), Parent: parent, Service: events.ServiceBuilder, Name: x.Target, Start: time.UnixMicro(x.StartedUs), End: time.UnixMicro(x.FinishedUs),
		Result: success,
		Attributes: []attribute.KeyValue{
			text("cicd.pipeline.task.name", x.Target), text("cicd.pipeline.task.run.id", fmt.Sprintf("%s/%d", x.Hash, x.Attempt)),
			attribute.String("cicd.pipeline.task.run.result", resultOf(x.Outcome)), text("cicd.worker.name", x.Worker),
			text("landfall.build.id", x.Build), attribute.Int64("landfall.step.attempt", int64(x.Attempt)),
		},
	}
	if result := resultOf(x.Outcome); result != success {
		s.fail(result, lower(x.Outcome.String(), "STEP_OUTCOME_"), x.Reason)
		if x.FailedCommand != "" {
			s.Attributes = append(s.Attributes, text("landfall.step.command", x.FailedCommand))
		}
	}
	if x.owner == nil || x.owner.change != a.change {
		s.Attributes = append(s.Attributes, attribute.Bool("landfall.step.shared", true))
	}
	if x.owner != nil && x.owner.change != a.change {
		if l, ok := x.owner.change.link(x.owner.change.stepID(x.StepFinished)); ok {
			s.Links = append(s.Links, l)
		}
	}
	a.add(s)
}

func (a *assembly) attempt(x *attempt) {
	began := cmp.Or(x.decided, x.intended, x.finished)
	if !a.in(began) {
		return
	}
	s := Span{
		ID: a.spanID("attempt", x.id), Parent: a.root.SpanID(), Service: events.ServiceLander, Name: x.verdict, Start: began, End: x.finished,
		Attributes: []attribute.KeyValue{text("landfall.decision.id", x.id), text("landfall.why", x.why)},
	}
	if !x.stamp.IsZero() {
		if s.Start = x.stamp; x.stamp.After(began) {
			s.Start = began
		}
		a.add(Span{ID: a.spanID("decision", x.id), Parent: s.ID, Service: events.ServiceSelector, Name: "decide", Start: s.Start, End: x.decided, Result: success,
			Attributes: []attribute.KeyValue{attribute.String("landfall.decision", x.verdict)}})
	}
	if x.verdict == land && !x.intended.IsZero() {
		push := Span{
			ID: a.spanID("push", x.id), Parent: s.ID, Service: events.ServiceLander, Name: "push", Kind: trace.SpanKindClient, Start: x.intended, End: x.finished,
			Attributes: []attribute.KeyValue{text("vcs.ref.base.revision", x.base), attribute.Int("landfall.push.commits", len(x.commits))},
		}
		if n := len(x.commits); n > 0 {
			push.Attributes = append(push.Attributes, text("vcs.ref.head.revision", x.commits[n-1]))
		}
		switch x.result {
		case landed:
			push.Result = success
		case void:
			push.fail(failed, "push_failed", x.message)
		}
		a.add(push)
	}
	switch x.result {
	case "":
	case refused:
		s.fail(cancellation, "", x.message)
	case void:
		s.fail(failed, "push_failed", x.message)
	default: // the lander did what was decided
		s.Result = success
	}
	a.add(s)
}

// Status returns the status of a span as OpenTelemetry has it.
func (s Span) Status() codes.Code {
	if s.Failed {
		return codes.Error
	}
	return codes.Unset
}
