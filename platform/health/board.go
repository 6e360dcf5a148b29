package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"landfall.build/events"
)

// TopicPartition is a partition of a topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Beat is what an instance of a service posts of itself.
type Beat struct {
	Service, Instance, Version string
	// Boot identifies the process.
	Boot string
	// Started is when the process began, and At when it posted this, by its clock.
	Started, At   time.Time
	Workers, Busy int
	// Can holds what a builder can run.
	Can        Capacity
	Trouble    string
	Partitions []Posted
}

// Capacity says what a builder's machine is and has.
type Capacity struct {
	Pool      string         `json:"pool,omitempty"`
	Labels    []string       `json:"labels,omitempty"`
	Resources map[string]int `json:"resources,omitempty"`
	// Untold is set if there is more than fits into a beat.
	Untold bool `json:"untold,omitempty"`
}

// maxCapacity bounds how many bytes of a beat tell a capacity.
const maxCapacity = 2500

// bounded returns what of a capacity fits into a beat.
func (c Capacity) bounded() Capacity {
	if text, err := json.Marshal(c); err != nil || len(text) > maxCapacity {
		return Capacity{Pool: c.Pool, Untold: true}
	}
	return c
}

// Posted is a partition that an instance works on.
type Posted struct {
	Partition int32
	Term      int64
	Since     time.Time
	CaughtUp  bool
	// Next is how far each topic is read.
	Next map[string]int64
}

// Board is where processes post what their services do.
type Board interface {
	// Ends returns where every partition of the topics ends.
	Ends(ctx context.Context, topics []string) (map[TopicPartition]int64, error)
	// Post replaces what the process posted of the services before.
	Post(ctx context.Context, beats []Beat) error
	// Read returns what was posted last by each instance, however long ago.
	Read(ctx context.Context) ([]Beat, error)
}

// GroupPrefix begins the name of the consumer group of an instance: landfall.status.SERVICE.INSTANCE. It has no members.
const GroupPrefix = "landfall.status."

// kafkaBoard keeps beats as committed offsets.
type kafkaBoard struct{ admin *kadm.Client }

// NewBoard returns the board of a Kafka.
func NewBoard(admin *kadm.Client) Board { return kafkaBoard{admin} }

// Ends implements Board.
func (b kafkaBoard) Ends(ctx context.Context, topics []string) (map[TopicPartition]int64, error) {
	listed, err := b.admin.ListEndOffsets(ctx, topics...)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of topics: %w", err)
	}
	ends := map[TopicPartition]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[TopicPartition{o.Topic, o.Partition}] = o.Offset })
	return ends, nil
}

// standby is the topic of the offset that an instance commits while it works on no partition.
const standby = events.TopicChanges

// note is the metadata of a committed offset. Kafka allows 4,096 bytes.
type note struct {
	Boot    string `json:"boot"`
	Version string `json:"version"`
	// Started, At and Since are milliseconds since 1970.
	Started int64 `json:"started"`
	At      int64 `json:"at"`
	// Idle is set if the instance works on no partition.
	Idle     bool   `json:"idle,omitempty"`
	Term     int64  `json:"term"`
	Since    int64  `json:"since,omitempty"`
	CaughtUp bool   `json:"caught_up,omitempty"`
	Workers  int    `json:"workers,omitempty"`
	Busy     int    `json:"busy,omitempty"`
	Trouble  string `json:"trouble,omitempty"`
	Capacity
}

const (
	maxTrouble  = 500
	maxVersion  = 100
	maxInstance = 200
)

// clip returns at most some bytes of a text, as valid UTF-8.
func clip(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// Post implements Board.
func (b kafkaBoard) Post(ctx context.Context, beats []Beat) error {
	var errs []error
	for _, beat := range beats {
		n := note{
			Boot: beat.Boot, Version: clip(beat.Version, maxVersion), Started: beat.Started.UnixMilli(), At: beat.At.UnixMilli(), Term: NoTerm,
			Workers: beat.Workers, Busy: beat.Busy, Trouble: clip(beat.Trouble, maxTrouble), Capacity: beat.Can.bounded(),
		}
		offsets := kadm.Offsets{}
		commit := func(topic string, partition int32, at int64) error {
			text, err := json.Marshal(n)
			offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1, Metadata: string(text)})
			return err
		}
		for _, p := range beat.Partitions {
			n.Term, n.Since, n.CaughtUp = p.Term, p.Since.UnixMilli(), p.CaughtUp
			for topic, next := range p.Next {
				errs = append(errs, commit(topic, p.Partition, next))
			}
		}
		if len(offsets) == 0 {
			n.Idle = true
			errs = append(errs, commit(standby, 0, 0))
		}
		group := GroupPrefix + beat.Service + "." + clip(beat.Instance, maxInstance)
		if err := b.admin.CommitAllOffsets(ctx, group, offsets); err != nil {
			errs = append(errs, fmt.Errorf("post to the group %s: %w", group, err))
		}
	}
	return errors.Join(errs...)
}

// Read implements Board. A group whose notes are not ours is left out.
func (b kafkaBoard) Read(ctx context.Context) ([]Beat, error) {
	groups, err := b.admin.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var names []string
	for _, name := range groups.Groups() {
		if strings.HasPrefix(name, GroupPrefix) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	var out []Beat
	fetched := b.admin.FetchManyOffsets(ctx, names...)
	if err := fetched.Error(); err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	for name, response := range fetched {
		if beat, ok := beatOf(name, response.Fetched); ok {
			out = append(out, beat)
		}
	}
	return out, nil
}

// beatOf returns the beat of a group's newest commits; older ones are of partitions that the instance has given up.
func beatOf(group string, fetched kadm.OffsetResponses) (beat Beat, ok bool) {
	service, instance, ok := strings.Cut(strings.TrimPrefix(group, GroupPrefix), ".")
	if !ok {
		return Beat{}, false
	}
	var newest note
	notes := map[TopicPartition]note{}
	fetched.Each(func(o kadm.OffsetResponse) {
		var n note
		if json.Unmarshal([]byte(o.Metadata), &n) != nil {
			return
		}
		notes[TopicPartition{o.Topic, o.Partition}] = n
		if n.At > newest.At {
			newest = n
		}
	})
	if len(notes) == 0 {
		return Beat{}, false
	}
	beat = Beat{
		Service: service, Instance: instance, Version: newest.Version, Boot: newest.Boot, Started: time.UnixMilli(newest.Started), At: time.UnixMilli(newest.At),
		Workers: newest.Workers, Busy: newest.Busy, Can: newest.Capacity, Trouble: newest.Trouble,
	}
	byNumber := map[int32]Posted{}
	for at, n := range notes {
		if n.Idle || n.At != newest.At {
			continue
		}
		p, known := byNumber[at.Partition]
		if !known {
			p = Posted{Partition: at.Partition, Term: n.Term, Since: time.UnixMilli(n.Since), CaughtUp: n.CaughtUp, Next: map[string]int64{}}
		}
		offset, _ := fetched.Lookup(at.Topic, at.Partition)
		p.Next[at.Topic] = offset.At
		byNumber[at.Partition] = p
	}
	for _, p := range byNumber {
		beat.Partitions = append(beat.Partitions, p)
	}
	return beat, true
}
