package events

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// OutcomeTypePrefix is what the types (ce_type) of outcomes begin with; the state follows.
const OutcomeTypePrefix = "build.landfall.change."

// OutcomeStates returns the states of an outcome, in the order in which documents name them.
func OutcomeStates() []string {
	return []string{"admitted", "revised", "refused", "unchanged", "testing", "held", "released", "landed", "rejected", "ejected", "cancelled", "dropped", "restored"}
}

// JSON of the outcomes is written by these structs, since that of protojson has other spaces in each build of a program and
// numbers in quotes, and two owners of a partition must write the same bytes.
type outcomeJSON struct {
	Queue     string      `json:"queue"`
	Subject   string      `json:"subject"`
	Change    string      `json:"change,omitempty"`
	Revision  uint64      `json:"revision,omitempty"`
	State     string      `json:"state"`
	Sequence  int64       `json:"sequence"`
	Time      string      `json:"time"`
	RequestID string      `json:"request_id,omitempty"`
	Head      string      `json:"head,omitempty"`
	Commits   []string    `json:"commits,omitempty"`
	Author    string      `json:"author,omitempty"`
	Title     string      `json:"title,omitempty"`
	URI       string      `json:"uri,omitempty"`
	Who       string      `json:"who,omitempty"`
	Reason    *reasonJSON `json:"reason,omitempty"`
}

type reasonJSON struct {
	Class  string `json:"class,omitempty"`
	Text   string `json:"text,omitempty"`
	Target string `json:"target,omitempty"`
	Step   string `json:"step,omitempty"`
	Whose  string `json:"whose,omitempty"`
	Log    string `json:"log,omitempty"`
	Other  string `json:"other,omitempty"`
	Now    string `json:"now,omitempty"`
}

// OutcomeJSON returns an outcome as landfall.outcomes holds it in JSON.
func OutcomeJSON(m *eventsv1.ChangeOutcome) ([]byte, error) {
	out := outcomeJSON{
		Queue: m.Queue, Subject: m.Subject, Change: m.Change, Revision: m.Revision, State: m.State, Sequence: m.Sequence, Time: m.Time,
		RequestID: m.RequestId, Head: m.Head, Commits: m.Commits, Author: m.Author, Title: m.Title, URI: m.Uri, Who: m.Who,
	}
	if r := m.Reason; r != nil {
		out.Reason = &reasonJSON{Class: r.Class, Text: r.Text, Target: r.Target, Step: r.Step, Whose: r.Whose, Log: r.Log, Other: r.Other, Now: r.Now}
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// decodeOutcome reads an outcome. No message in Protobuf that has a queue begins with a brace.
func decodeOutcome(value []byte) (*eventsv1.ChangeOutcome, error) {
	m := &eventsv1.ChangeOutcome{}
	var err error
	if len(value) > 0 && value[0] == '{' {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, m)
	} else {
		err = proto.Unmarshal(value, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: outcome: %v", ErrUndecodable, err)
	}
	return m, nil
}

// encodeMessage returns the value of an event, its type and its content type.
func encodeMessage(e Envelope) (value []byte, typeName, content string, err error) {
	typeName, content = TypeOf(e.Message), contentProtobuf
	if outcome, is := e.Message.(*eventsv1.ChangeOutcome); is {
		typeName = OutcomeTypePrefix + outcome.State
		if e.JSON {
			value, err = OutcomeJSON(outcome)
			return value, typeName, contentJSON, err
		}
	}
	value, err = marshal(e.Message)
	return value, typeName, content, err
}
