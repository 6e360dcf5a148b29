package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/archive"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/rights"
	"landfall.build/tools/embedded/broker"
)

// Source says where a log is: at brokers, or in the data directory of `landfall up`, which may run or not.
type Source struct {
	Brokers []string
	// Data is a data directory, or its folder broker.
	Data string
	// Config is a configuration file that names either.
	Config string
	// Archive is a folder, or a bucket, with the log's old records. Empty: the configuration's.
	Archive string
	// Account is the one by which the brokers are asked; that of people's commands if it is empty.
	Account string
	// Load reads a configuration file.
	Load func(file string) (*configuration.Configuration, error)
}

// Flags adds the flags that say where the log is.
func (s *Source) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Config, "config", "landfall.config.yaml", "configuration file, which names the brokers or the data directory")
	flags.StringSliceVar(&s.Brokers, "brokers", nil, "host:port of the log's brokers")
	flags.StringVar(&s.Data, "data", "", "data directory of a landfall up, running or not")
	flags.StringVar(&s.Archive, "archive", "", "folder, or s3://bucket/prefix, with the log's old records (default: the configuration's broker.archive.url)")
}

// Open opens the log to be read; the function gives back what it took.
func (s Source) Open(ctx context.Context, logger *slog.Logger) (*kafka.Log, func(), error) {
	brokers, data, c := s.Brokers, s.Data, (*configuration.Configuration)(nil)
	if data == "" && s.Load != nil {
		var err error
		c, err = s.Load(s.Config)
		if err != nil && len(brokers) == 0 {
			return nil, nil, fmt.Errorf("%w (or say where the log is: --brokers host:port, or --data with the data directory of landfall up)", err)
		}
		if err == nil {
			data = c.Data
			if len(brokers) == 0 {
				brokers = c.Broker.Brokers
			}
		}
	}
	old, err := s.openArchive(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	closeBroker := func() {}
	if len(brokers) == 0 {
		addresses, started, err := findBroker(ctx, data, logger)
		if err != nil {
			return nil, nil, err
		}
		brokers = addresses
		if started != nil {
			closeBroker = started.Close
		}
	}
	client := func() []kgo.Opt { return broker.WithSecret(broker.SecretIn(folderOf(data), brokers)) }
	if c != nil && (c.Broker.Secured() || c.Broker.SecretFile != "") {
		client = broker.Access(c, brokers, cmp.Or(s.Account, rights.Operator))
	}
	log, err := kafka.Open(ctx, kafka.Options{Brokers: brokers, ClientID: "landfall-replay", Log: logger, Client: client, Archive: old})
	if err != nil {
		closeBroker()
		return nil, nil, err
	}
	return log, func() {
		log.Close()
		closeBroker()
	}, nil
}

// openArchive returns the archive that the flag or the configuration names; the rest of what the configuration says holds for both.
func (s Source) openArchive(ctx context.Context, c *configuration.Configuration) (*archive.Archive, error) {
	place := configuration.DefaultArchive
	if c != nil {
		place = c.Broker.Archive
	}
	if s.Archive != "" {
		if place.URL = s.Archive; !place.IsBucket() {
			folder, err := filepath.Abs(s.Archive)
			if err != nil {
				return nil, err
			}
			place.URL, place.S3 = folder, configuration.DefaultArchive.S3
		}
	}
	if problem := place.Problem(); problem != "" {
		return nil, fmt.Errorf("--archive %s", problem)
	}
	return archive.Open(ctx, place)
}

// folderOf returns the broker's folder of a data directory, which may be that folder itself.
func folderOf(data string) string {
	if _, err := os.Stat(filepath.Join(data, "format")); err == nil {
		return data
	}
	return filepath.Join(data, "broker")
}

// findBroker finds the broker of a data directory, or starts one on it if nobody runs there.
func findBroker(ctx context.Context, data string, logger *slog.Logger) ([]string, *broker.Broker, error) {
	dir := folderOf(data)
	if _, err := os.Stat(filepath.Join(dir, "format")); err != nil {
		return nil, nil, fmt.Errorf("%s holds no log of an embedded broker: name the data directory of landfall up, or give --brokers", data)
	}
	b, err := broker.Start(ctx, broker.Options{Dir: dir, Log: logger})
	if err == nil {
		return []string{b.Addr()}, b, nil
	}
	if !errors.Is(err, broker.ErrDirInUse) {
		return nil, nil, err
	}
	address, reading := os.ReadFile(filepath.Join(dir, "address"))
	if reading != nil {
		return nil, nil, fmt.Errorf("%w, and its broker's address cannot be read (%v): give --brokers", err, reading)
	}
	return []string{strings.TrimSpace(string(address))}, nil, nil
}
