// Package archive is `landfall archive`: it moves the old records of a log into a folder or a bucket, so that the brokers' disks need
// not grow for ever, and shows what is there.
package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/rights"
	"landfall.build/tools/replay"
)

// leastSegment is how many bytes of records are worth a segment.
const leastSegment = 1 << 20

// Command is `landfall archive`. load reads a configuration file.
func Command(load func(file string) (*configuration.Configuration, error), logger *slog.Logger) *cobra.Command {
	source := replay.Source{Account: rights.Archiver}
	var keep time.Duration
	var look, all, asJSON bool
	c := &cobra.Command{
		Use:   "archive",
		Short: "Move the log's old records from the brokers into an archive",
		Long: `The log is the queue's history, and all of it is needed; the brokers need not have all. landfall archive writes
records that are older than broker.archive.keep (90 days) to broker.archive.url, a folder or a bucket, compares
them there with those of the brokers, and deletes them from the brokers. Services, and all commands that read the
log, read archive and brokers as one log. A service refuses a log whose beginning is in neither.

Every service has to know the archive (broker.archive.url) before the first record is moved.

It can run at any time, while the services work, and again after it was ended: each record is always in one of
the two. Run it every day, where a log grows. A partition with less than 1 MiB to move is left for another day.

The log is at --brokers, in the data directory of a ` + "`landfall up`" + ` that runs or not (--data), or where --config says.`,
		Example: `  landfall archive --dry-run
  landfall archive
  landfall archive --keep 720h --data .landfall --archive /srv/landfall/archive`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			source.Load = func(file string) (*configuration.Configuration, error) {
				c, err := load(file)
				if err != nil {
					return nil, err
				}
				if source.Archive != "" && source.Archive != c.Broker.Archive.URL {
					return nil, fmt.Errorf("broker.archive.url of %s is %q: services that start with it would refuse the log once it is cut; set it to %s there, and start them again", file, c.Broker.Archive.URL, source.Archive)
				}
				if !cmd.Flags().Changed("keep") {
					keep = c.Broker.Archive.Keep
				}
				return c, nil
			}
			if keep < 0 {
				return fmt.Errorf("--keep is %v, and an age is not below 0", keep)
			}
			log, done, err := source.Open(cmd.Context(), logger)
			if err != nil {
				return err
			}
			defer done()
			m := mover{before: time.Now().Add(-keep), out: cmd.OutOrStdout(), look: look, json: asJSON}
			move := kafka.Move{Before: m.before, Least: leastSegment, Look: look, Progress: m.told}
			if all {
				move.Least = 0
			}
			if err := log.MoveToArchive(cmd.Context(), move); err != nil {
				if errors.Is(err, kafka.ErrNoArchive) {
					return fmt.Errorf("%w: name a folder or a bucket in broker.archive.url, where every service reads it, or by --archive", err)
				}
				return err
			}
			return m.end(keep)
		},
	}
	source.Flags(c.Flags())
	c.Flags().DurationVar(&keep, "keep", configuration.DefaultArchive.Keep, "age from which records are moved (default: the configuration's broker.archive.keep)")
	c.Flags().BoolVar(&look, "dry-run", false, "say what would be moved, and move nothing")
	c.Flags().BoolVar(&all, "all", false, "move what is old of every partition, however little it is")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// mover prints what is moved.
type mover struct {
	before     time.Time
	out        io.Writer
	look, json bool
	moved      []kafka.Moved
}

func (m *mover) told(moved kafka.Moved) {
	if moved.Records == 0 && moved.Deleted == 0 {
		return
	}
	m.moved = append(m.moved, moved)
	if m.json {
		return
	}
	place := fmt.Sprintf("%s/%d", moved.Topic, moved.Partition)
	if m.look {
		fmt.Fprintf(m.out, "%-30s %12d records are old\n", place, moved.Records)
		return
	}
	fmt.Fprintf(m.out, "%-30s %12d records archived (%.1f MiB), %d deleted from the brokers, which begin at %d\n", place, moved.Records,
		mebibytes(moved.Bytes), moved.Deleted, moved.Begin)
}

// end prints the sum.
func (m *mover) end(keep time.Duration) error {
	if m.json {
		moved := m.moved
		if moved == nil {
			moved = []kafka.Moved{}
		}
		return json.NewEncoder(m.out).Encode(struct {
			DryRun     bool          `json:"dry_run"`
			Before     time.Time     `json:"before"`
			Partitions []kafka.Moved `json:"partitions"`
		}{m.look, m.before.UTC(), moved})
	}
	var records, deleted, bytes int64
	for _, moved := range m.moved {
		records, deleted, bytes = records+moved.Records, deleted+moved.Deleted, bytes+moved.Bytes
	}
	var err error
	switch {
	case len(m.moved) == 0:
		_, err = fmt.Fprintf(m.out, "nothing is moved: no partition has enough records that are older than %v, besides the last 512\n", keep)
	case m.look:
		_, err = fmt.Fprintf(m.out, "%d records are older than %v\n", records, keep)
	default:
		_, err = fmt.Fprintf(m.out, "%d records archived (%.1f MiB), %d deleted from the brokers\n", records, mebibytes(bytes), deleted)
	}
	return err
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
