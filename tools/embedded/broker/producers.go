package broker

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The broker saves where each producer is in its sequence when it is closed, and loses that when it is killed. It takes any first
// batch of a producer that it does not know, so a client whose requests were under way at the kill could have a later one
// taken before an earlier one. A Kafka broker reads the places from its log; saveProducers does that here.

const (
	producerAt = 43 // in a batch: the producer's id, its epoch, its sequence and the number of records
	epochAt    = 51
	sequenceAt = 53
	countAt    = 57

	// Who wrote last has requests under way. More are not kept of a partition: each start of a service is one.
	maxProducers = 100
	// lastBatches is how many batches of a producer the broker knows again.
	lastBatches = 5
)

// producer is the place of a producer in one partition, as the broker stores it.
type producer struct {
	ID        int64              `json:"pid"`
	Topic     string             `json:"topic"`
	Partition int32              `json:"partition"`
	Entries   [lastBatches]batch `json:"entries"`
	Count     int                `json:"count"`
	At        int                `json:"at"`
	Epoch     int16              `json:"epoch"`
	Seen      bool               `json:"seen"`
	Next      int32              `json:"next_seq"`
}

type batch struct {
	First  int32 `json:"first_seq"`
	Next   int32 `json:"next_seq"`
	Offset int64 `json:"offset"`
}

// producers are those of one partition.
type producers map[int64]*producer

// note takes a whole batch of the partition.
func (ps producers) note(raw []byte) {
	id := int64(binary.BigEndian.Uint64(raw[producerAt:]))
	if id < 0 {
		return
	}
	b := batch{First: int32(binary.BigEndian.Uint32(raw[sequenceAt:])), Offset: int64(binary.BigEndian.Uint64(raw))}
	b.Next = int32((int64(b.First) + int64(binary.BigEndian.Uint32(raw[countAt:]))) % math.MaxInt32)
	epoch := int16(binary.BigEndian.Uint16(raw[epochAt:]))
	p := ps[id]
	if p == nil || p.Epoch != epoch {
		p = &producer{ID: id, Epoch: epoch, Seen: true}
		ps[id] = p
	}
	p.Entries[p.At] = b
	p.At = (p.At + 1) % lastBatches
	p.Count = min(p.Count+1, lastBatches)
	p.Next = b.Next
}

// last returns the offset of the producer's last batch.
func (p *producer) last() int64 { return p.Entries[(p.At+lastBatches-1)%lastBatches].Offset }

// lastOf returns the producers that wrote last to the partition with this folder's name.
func (ps producers) lastOf(folder string) ([]*producer, error) {
	cut := strings.LastIndexByte(folder, '-')
	if cut < 0 {
		return nil, fmt.Errorf("%s is the folder of no partition", folder)
	}
	topic, err := url.PathUnescape(folder[:cut])
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(folder[cut+1:], 10, 32)
	if err != nil {
		return nil, err
	}
	var all []*producer
	for _, p := range ps {
		p.Topic, p.Partition = topic, int32(number)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *producer) int { return cmp.Compare(b.last(), a.last()) })
	return all[:min(len(all), maxProducers)], nil
}

// saveProducers writes the places where the broker looks for them.
func saveProducers(dir string, all []*producer) error {
	text, err := json.Marshal(struct {
		Version int         `json:"version"`
		Windows []*producer `json:"windows"`
	}{1, all})
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, "seq_windows.json"), string(text))
}
