package replay

import (
	"encoding/json"
	"time"

	"landfall.build/tools/replay/recompute"
)

// Summary is a verification as one JSON value.
type Summary struct {
	Log         string    `json:"log"`
	Version     string    `json:"version"`
	AllVersions bool      `json:"all_versions"`
	Compared    int64     `json:"compared"`
	Differences int64     `json:"differences"`
	Seconds     float64   `json:"seconds"`
	Services    []Service `json:"services"`
	// First is the first difference, in the order of the flow.
	First *Difference `json:"first_difference,omitempty"`
}

// Service is what was found of one service (recompute.Service).
type Service struct {
	Service       string           `json:"service"`
	Topic         string           `json:"topic"`
	Records       int64            `json:"records"`
	Compared      int64            `json:"compared"`
	Identical     int64            `json:"identical"`
	Different     int64            `json:"different"`
	Missing       int64            `json:"missing"`
	Silent        int64            `json:"silences"`
	Given         int64            `json:"given"`
	NotCounted    int64            `json:"not_counted"`
	OtherVersions map[string]int64 `json:"other_versions"`
	Unanswered    bool             `json:"unanswered"`
	Torn          int64            `json:"torn_offsets"`
}

// Difference is one record that is not what this code says.
type Difference struct {
	Service   string `json:"service"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Offset is -1 where this code writes a record and none was written.
	Offset   int64           `json:"offset"`
	Queue    string          `json:"queue"`
	Version  string          `json:"version"`
	Reason   string          `json:"reason"`
	Written  json.RawMessage `json:"written,omitempty"`
	Computed json.RawMessage `json:"computed,omitempty"`
	Fields   []Field         `json:"fields,omitempty"`
	Inputs   []Input         `json:"inputs"`
}

// Input is a record that a difference answers.
type Input struct {
	Topic     string          `json:"topic"`
	Partition int32           `json:"partition"`
	Offset    int64           `json:"offset"`
	Time      time.Time       `json:"time"`
	Source    string          `json:"source"`
	Type      string          `json:"type"`
	Event     json.RawMessage `json:"event"`
}

func summaryOf(r *recompute.Report, took time.Duration) Summary {
	s := Summary{
		Log: r.LogID, Version: r.Version, AllVersions: r.AllVersions, Compared: r.Compared(), Differences: r.Differences(),
		Seconds: took.Round(time.Millisecond).Seconds(), Services: []Service{},
	}
	for _, x := range r.Services {
		s.Services = append(s.Services, Service{
			Service: x.Service, Topic: x.Topic, Records: x.Records, Compared: x.Compared, Identical: x.Identical, Different: x.Different,
			Missing: x.Missing, Silent: x.Silent, Given: x.Given, NotCounted: x.NotCounted, OtherVersions: x.Others, Unanswered: x.Unanswered, Torn: x.Torn,
		})
	}
	if d := r.First(); d != nil {
		s.First = differenceOf(d)
	}
	return s
}

func differenceOf(d *recompute.Difference) *Difference {
	out := &Difference{
		Service: d.Service, Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Queue: d.Queue, Version: d.Version, Reason: d.Reason,
		Written: body(d.Written), Computed: body(d.Computed), Inputs: []Input{},
	}
	if d.Written != nil && d.Computed != nil {
		out.Fields = Fields(d.Written, d.Computed)
	}
	for _, e := range d.Causes {
		out.Inputs = append(out.Inputs, Input{e.Topic, e.Partition, e.Offset, e.Time, e.Source, typeOf(e.Message), body(e.Message)})
	}
	return out
}
