package broker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/tools/embedded/broker"
)

// listed reports whether a client with these options can list topics.
func listed(t *testing.T, options ...kgo.Opt) error {
	t.Helper()
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err = kadm.NewClient(client).ListTopics(ctx)
	return err
}

func TestAClientWithoutTheSecretIsRefused(t *testing.T) {
	dir := t.TempDir()
	b := start(t, broker.Options{Dir: dir})
	open(t, b)
	info, err := os.Stat(b.SecretFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the secret's file: %v, %v", info, err)
	}
	if info, err = os.Stat(filepath.Join(dir, "log")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the log's folder: %v, %v", info, err)
	}
	if err := listed(t, append(b.Client(), kgo.SeedBrokers(b.Addr()))...); err != nil {
		t.Errorf("with the secret: %v", err)
	}
	if err := listed(t, kgo.SeedBrokers(b.Addr())); err == nil {
		t.Error("topics were listed without the secret")
	}
	wrong := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(wrong, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := listed(t, append(broker.WithSecret(wrong), kgo.SeedBrokers(b.Addr()))...); err == nil {
		t.Error("topics were listed with a wrong secret")
	}
	_, err = kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Log: quiet()})
	if !errors.Is(err, kafka.ErrRefused) || !strings.Contains(err.Error(), "broker/secret") {
		t.Errorf("a log without the secret: %v", err)
	}
}

// The log of a directory from before there was a secret lets no client in.
func TestAnOldDirectoryGetsASecretThatStays(t *testing.T) {
	dir := t.TempDir()
	first := start(t, broker.Options{Dir: dir})
	open(t, first).Close()
	first.Close()
	if err := os.Remove(first.SecretFile()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "log", "sasl.json"), []byte(`{"version":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	second := start(t, broker.Options{Dir: dir})
	id := open(t, second).ID()
	secret, err := broker.ReadSecret(second.SecretFile())
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	third := start(t, broker.Options{Dir: dir})
	if again, err := broker.ReadSecret(third.SecretFile()); err != nil || again != secret {
		t.Errorf("the secret was %s and is %s (%v)", secret, again, err)
	}
	if again := open(t, third).ID(); again != id {
		t.Errorf("the log was %s and is %s", id, again)
	}
	third.Close()
	// One that others could read is no secret any more.
	if err := os.Chmod(third.SecretFile(), 0o644); err != nil {
		t.Fatal(err)
	}
	fourth := start(t, broker.Options{Dir: dir})
	if again, err := broker.ReadSecret(fourth.SecretFile()); err != nil || again == secret {
		t.Errorf("the secret is still %s (%v)", again, err)
	}
	open(t, fourth)
}

func TestASecretIsGivenToNoOtherBroker(t *testing.T) {
	data := t.TempDir()
	b := start(t, broker.Options{Dir: filepath.Join(data, "broker")})
	_, port, _ := strings.Cut(b.Addr(), ":")
	c := configuration.New(configuration.Defaults{Workers: 1, Path: "/usr/bin"})
	c.Data = data
	for address, want := range map[string]string{
		b.Addr(): b.SecretFile(), "localhost:" + port: b.SecretFile(), "127.0.0.1:1": "", "kafka.example.com:" + port: "",
	} {
		if got := broker.SecretOf(c, []string{"127.0.0.1:2", address}); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if c.Broker.SecretFile = "/x"; broker.SecretOf(c, []string{"kafka.example.com:1"}) != "/x" {
		t.Error("the file that the configuration names is not used")
	}
	for _, content := range []string{"", "\n"} {
		file := filepath.Join(data, "empty")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := broker.ReadSecret(file); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("a file with %q: %v", content, err)
		}
	}
}

// TestConnectionsWithoutTheSecretTakeNotAllOpenFiles: any program of the machine can make them, and they keep nobody out who has it.
func TestConnectionsWithoutTheSecretTakeNotAllOpenFiles(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	const files = 400
	lowered := limit
	lowered.Cur = files
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lowered); err != nil {
		t.Fatal(err)
	}
	b := start(t, broker.Options{Dir: t.TempDir()}) // it bounds them by what it may have open
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	var all []net.Conn
	for range files / 2 {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	isClosed := func(c net.Conn, patience time.Duration) bool {
		c.SetReadDeadline(time.Now().Add(patience))
		_, err := c.Read(make([]byte, 1))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	if !isClosed(all[0], 15*time.Second) { // by itself it would be after 30 s
		t.Error("the first connection is still there")
	}
	closed := 0
	for _, c := range all {
		if isClosed(c, time.Millisecond) {
			closed++
		}
	}
	if closed < files/4 {
		t.Errorf("%d of %d connections are closed, want %d", closed, len(all), files/4)
	}
	open(t, b)
}
