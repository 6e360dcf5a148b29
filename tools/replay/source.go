package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"landfall.build/services/configuration"
	"landfall.build/services/journal/kafka"
	"landfall.build/tools/embedded/broker"
)

// Source says where a log is: at brokers, or in the data directory of `landfall up`, which may run or not.
type Source struct {
	Brokers []string
	// Data is a data directory, or its folder broker.
	Data string
	// Config is a configuration file that names either.
	Config string
	// Load reads a configuration file.
	Load func(file string) (*configuration.Configuration, error)
}

// Open opens the log to be read. close gives back what it took.
func (s Source) Open(ctx context.Context, logger *slog.Logger) (log *kafka.Log, close func(), err error) {
	brokers, data := s.Brokers, s.Data
	if len(brokers) == 0 && data == "" {
		c, err := s.Load(s.Config)
		if err != nil {
			return nil, nil, fmt.Errorf("%w (or say where the log is: --brokers host:port, or --data with the data directory of landfall up)", err)
		}
		brokers, data = c.Broker.Brokers, c.Data
	}
	close = func() {}
	if len(brokers) == 0 {
		var b *broker.Broker
		if brokers, b, err = open(ctx, data, logger); err != nil {
			return nil, nil, err
		}
		if b != nil {
			close = b.Close
		}
	}
	if log, err = kafka.Open(ctx, kafka.Options{Brokers: brokers, ClientID: "landfall-replay", Log: logger}); err != nil {
		close()
		return nil, nil, err
	}
	return log, func() { log.Close(); close() }, nil
}

// open finds the broker of a data directory, or starts one on it if nobody runs there.
func open(ctx context.Context, data string, logger *slog.Logger) ([]string, *broker.Broker, error) {
	dir := filepath.Join(data, "broker")
	if _, err := os.Stat(filepath.Join(data, "format")); err == nil {
		dir = data
	}
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
