// Package broker is the development broker: a Kafka broker inside this process, with a data directory,
// for a laptop, the demo and the tests. It speaks Kafka's protocol to every client, keeps every
// acknowledged record across a kill -9 of its process, and reads its whole log at each start.
//
// It is not for transactions or compacted topics: neither survives a crash. It is one process; what
// must survive the machine needs a real Kafka cluster.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/listening"
)

// Options of a broker.
type Options struct {
	// Dir is the data directory; it is made if it does not exist. Required.
	Dir string
	// Listen is where clients connect, "127.0.0.1:0" if empty. With port 0 it is the port of the last
	// start if that is free, else any free one. The address is also what clients are given to connect
	// to, so it must be one that they can reach: 0.0.0.0 is refused. There is no encryption: an
	// address beyond loopback is for trusted networks only.
	Listen string
	// Log is required.
	Log *slog.Logger
	// Sync makes every acknowledgement wait for the disk, so that it survives the machine's crash too.
	Sync bool
}

// ownMachine are the addresses from which the services of this machine come, so that no share of the connections holds for them.
var ownMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	lock    *os.File
	dir     string
	log     *slog.Logger
	addr    string
	once    sync.Once
	// stopMembers ends the watch of groups' members, and waits for it.
	stopMembers func()
}

// Start opens the data directory and listens. It returns once clients can connect.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Dir == "" || o.Log == nil {
		return nil, errors.New("embedded broker: a data directory and a logger are needed")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	b, err := start(o, lock)
	if err != nil {
		unlockDir(lock)
		return nil, err
	}
	return b, nil
}

func start(o Options, lock *os.File) (*Broker, error) {
	if err := checkFormat(o.Dir); err != nil {
		return nil, err
	}
	if err := checkLog(filepath.Join(o.Dir, "log")); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := checkPartitions(o.Dir); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := listPartitions(o.Dir); err != nil {
		return nil, err
	}
	secret, err := makeSecret(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := protect(filepath.Join(o.Dir, "log")); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	listener, err := listen(o.Dir, o.Listen)
	if err != nil {
		return nil, err
	}
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID("landfall-embedded"),
		kfake.DataDir(filepath.Join(o.Dir, "log")),
		kfake.DefaultNumPartitions(1),
		kfake.ListenFn(func(string, string) (net.Listener, error) {
			bounds := listening.Usual(ownMachine)
			return &guardedListener{Listener: listening.Bounded(listening.Patient(listener, o.Log), bounds, o.Log), most: bounds.All / 2}, nil
		}),
		kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-256", User, secret),
		kfake.WithLogger(brokerLog{o.Log}),
		// Landfall's topics are created so; this is for topics that others create.
		kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1", "log.retention.bytes": "-1"}),
	}
	if o.Sync {
		opts = append(opts, kfake.SyncWrites())
	}
	began := time.Now()
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("embedded broker in %s: %w", o.Dir, err)
	}
	b := &Broker{cluster: cluster, lock: lock, dir: o.Dir, log: o.Log, addr: listener.Addr().String()}
	b.stopMembers = b.watchMembers()
	if err := os.WriteFile(filepath.Join(o.Dir, addressFile), []byte(b.addr+"\n"), 0o644); err != nil {
		b.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	o.Log.Info("embedded broker listens", "address", b.addr, "dir", o.Dir, "took", time.Since(began).Round(time.Millisecond).String())
	return b, nil
}

// addressFile names the address of the last start.
const addressFile = "address"

func listen(dir, address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: listen address %q is not host:port: %w", address, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("embedded broker: listen address %q does not say where clients reach it: name one address of this machine", address)
	}
	if port == "0" {
		if last, err := os.ReadFile(filepath.Join(dir, addressFile)); err == nil {
			if _, before, err := net.SplitHostPort(strings.TrimSpace(string(last))); err == nil {
				if l, err := net.Listen("tcp", net.JoinHostPort(host, before)); err == nil {
					return l, nil
				}
			}
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return l, nil
}

// watchMembers has silent members of groups taken out, until the function that it returns is called.
func (b *Broker) watchMembers() (stop func()) {
	m := &members{log: b.log, leave: leaveBy(append([]kgo.Opt{kgo.SeedBrokers(b.addr)}, b.Client()...))}
	m.watch(b.cluster)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { m.run(ctx, 2*time.Second) })
	return func() { cancel(); ended.Wait() }
}

// Addr returns the address for clients, host:port.
func (b *Broker) Addr() string { return b.addr }

// SecretFile returns the file with the secret that clients have to give.
func (b *Broker) SecretFile() string { return filepath.Join(b.dir, secretFile) }

// Client returns the options of a client that is let in.
func (b *Broker) Client() []kgo.Opt { return WithSecret(b.SecretFile()) }

// protect lets only the owner into the folder of the log, and removes the users that an earlier start stored there: they would
// win over those of this start.
func protect(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, "sasl.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Remember saves the list of partitions, so that the next start can distinguish one that is gone from one that nothing was
// written to. Close does so too; whoever has made the topics calls it, for a process that is killed later.
func (b *Broker) Remember() {
	if err := listPartitions(b.dir); err != nil {
		b.log.Warn("a partition that is deleted later would not be noticed", "error", err)
	}
}

// Close ends the broker and releases the directory. Clients lose their connections.
func (b *Broker) Close() {
	b.once.Do(func() {
		b.stopMembers()
		b.cluster.Close()
		b.Remember()
		unlockDir(b.lock)
	})
}

// FormatVersion is that of the data directory. Raise it when an older landfall could not read what a
// newer one writes.
const FormatVersion = 1

func checkFormat(dir string) error {
	path := filepath.Join(dir, "format")
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "log")); err == nil {
			return fmt.Errorf("embedded broker: %s holds a log but no file %s: it is not a data directory of landfall", dir, path)
		}
		return writeWhole(path, strconv.Itoa(FormatVersion)+"\n")
	}
	if err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("embedded broker: %s does not name a format version: %q", path, content)
	}
	if version != FormatVersion {
		return fmt.Errorf("embedded broker: data directory %s has format %d, this landfall knows format %d: use the landfall that wrote it, or another directory",
			dir, version, FormatVersion)
	}
	return nil
}

// writeWhole writes a file so that a crash leaves it whole or absent.
func writeWhole(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	return nil
}

// brokerLog passes the broker's own log on; its level Info is Debug here.
type brokerLog struct{ log *slog.Logger }

func (l brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case kfake.LogLevelError:
		to = slog.LevelError
	case kfake.LogLevelWarn:
		to = slog.LevelWarn
	}
	if l.log.Enabled(context.Background(), to) {
		l.log.Log(context.Background(), to, "embedded broker: "+fmt.Sprintf(format, args...))
	}
}
