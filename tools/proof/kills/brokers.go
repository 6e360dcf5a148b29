package kills

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"landfall.build/tools/proof/kills/fleet"
)

// The brokers that a run can be made on.
const (
	embedded = "embedded"
	apache   = "kafka"
)

// brokers are the processes of the log.
type brokers struct {
	// names in the fleet, addresses for clients: as many, in the same order.
	names, addresses []string
	// replicated: others take over from one.
	replicated bool
	launch     func(f *fleet.Fleet) error
	// argv is how a release runs it, nil if it is none of Landfall's.
	argv func(binary string) []string
}

// embeddedBroker is the development broker, as a process.
func embeddedBroker(binary, configFile string) (*brokers, error) {
	address, err := fleet.FreeAddress()
	if err != nil {
		return nil, err
	}
	argv := func(binary string) []string { return []string{binary, "broker", "--config", configFile} }
	return &brokers{
		names: []string{"broker"}, addresses: []string{address}, argv: argv,
		launch: func(f *fleet.Fleet) error { return f.Launch("broker", argv(binary)...) },
	}, nil
}

// kafkaNodes is how many nodes of Apache Kafka there are: with three, two acknowledge each record and one may
// be away.
const kafkaNodes = 3

// apacheKafka makes the storage of three nodes, by the script that also runs them.
func apacheKafka(ctx context.Context, script, dir string) (*brokers, error) {
	if _, err := os.Stat(script); err != nil {
		return nil, fmt.Errorf("the script that runs Apache Kafka is not there (run this in Landfall's checkout, or give --kafka-script): %w", err)
	}
	port, err := fleet.FreePorts(2 * kafkaNodes)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, script, "format", dir, strconv.Itoa(kafkaNodes))
	cmd.Env = append(os.Environ(), "KAFKA_PORT="+strconv.Itoa(port))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the storage of Apache Kafka cannot be made: %w", err)
	}
	out, err := exec.CommandContext(ctx, script, "addresses", dir).Output()
	if err != nil {
		return nil, fmt.Errorf("the addresses of Apache Kafka: %w", err)
	}
	b := &brokers{addresses: strings.Split(strings.TrimSpace(string(out)), ","), replicated: true}
	for n := range kafkaNodes {
		b.names = append(b.names, fmt.Sprintf("kafka-%d", n+1))
	}
	b.launch = func(f *fleet.Fleet) error {
		for i, name := range b.names {
			if err := f.Launch(name, script, "node", dir, strconv.Itoa(i+1)); err != nil {
				return err
			}
		}
		return nil
	}
	return b, nil
}

// awaitAddress waits until somebody listens on an address.
func awaitAddress(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the broker at %s does not come: %w", address, err)
		}
	}
}
