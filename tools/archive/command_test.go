package archive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/tools/archive"
	"landfall.build/tools/embedded/broker"
)

// filled returns the data directory of an embedded broker whose log has 700 records of builds in its one partition.
func filled(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	b, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(data, "broker"), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Log: quiet, Partitions: 1, Replication: 1, Client: b.Client})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all []events.Envelope
	for i := range 700 {
		all = append(all, events.Envelope{ID: fmt.Sprint(i), Source: events.ServiceBuilder, Instance: "i", Queue: "shop", Time: time.Now(), Message: &eventsv1.StepFinished{Target: "//t"}})
	}
	if _, err := l.Append(t.Context(), events.TopicBuilds, 0, all...); err != nil {
		t.Fatal(err)
	}
	return data
}

func run(t *testing.T, config string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := archive.Command(func(string) (*configuration.Configuration, error) {
		return configuration.Parse([]byte(config), "landfall.config.yaml", configuration.Defaults{Workers: 1})
	}, slog.New(slog.DiscardHandler))
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceErrors = true
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestOldRecordsAreMoved(t *testing.T) {
	data, folder := filled(t), t.TempDir()
	type report struct {
		DryRun     bool `json:"dry_run"`
		Partitions []kafka.Moved
	}
	at := []string{"--data", data, "--archive", folder, "--json"}
	for _, step := range []struct {
		args []string
		want report
	}{
		{nil, report{Partitions: []kafka.Moved{}}},                      // nothing is 90 days old
		{[]string{"--keep", "0s"}, report{Partitions: []kafka.Moved{}}}, // less than a segment
		{[]string{"--keep", "0s", "--all", "--dry-run"}, report{true, []kafka.Moved{{Topic: events.TopicBuilds, Records: 188}}}},
		{[]string{"--keep", "0s", "--all"}, report{false, []kafka.Moved{{Topic: events.TopicBuilds, Begin: 187, Records: 188, Deleted: 187}}}},
		{[]string{"--keep", "0s", "--all"}, report{Partitions: []kafka.Moved{}}},
	} {
		text, err := run(t, "", append(at, step.args...)...)
		if err != nil {
			t.Fatal(step.args, err)
		}
		var got report
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err, text)
		}
		for i := range got.Partitions {
			if got.DryRun != (got.Partitions[i].Bytes == 0) {
				t.Errorf("%v: %+v", step.args, got.Partitions[i])
			}
			got.Partitions[i].Bytes = 0
		}
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%v: %+v, want %+v", step.args, got, step.want)
		}
	}
	segments, err := filepath.Glob(filepath.Join(folder, events.TopicBuilds, "0", "*.segment"))
	if err != nil || len(segments) != 1 {
		t.Errorf("the archive has %v, %v", segments, err)
	}
}

// TestAnArchiveThatServicesWouldNotFindIsRefused, and one that is none.
func TestAnArchiveThatServicesWouldNotFindIsRefused(t *testing.T) {
	data, folder := filled(t), t.TempDir()
	config := fmt.Sprintf("version: 1\ndata: %q\nrepositories: {shop: {url: /srv/shop.git}}\nqueues: {shop: {repository: shop}}\n", data)
	for _, c := range []struct {
		config, want string
		args         []string
	}{
		{config, "there is no archive", nil},
		{config, "services that start with it would refuse the log", []string{"--archive", folder}},
		{config + fmt.Sprintf("broker: {archive: {url: %q}}\n", filepath.Join(folder, "none")), "make it, or mount it", nil},
		{config, "does not name a bucket", []string{"--data", data, "--archive", "s3://Shop"}},
		{config, "is not below 0", []string{"--keep", "-1h"}},
	} {
		if text, err := run(t, c.config, append([]string{"--keep", "0s", "--all"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) || text != "" {
			t.Errorf("%v: %v, want %q; it prints %q", c.args, err, c.want, text)
		}
	}
	// The configuration's own is used.
	text, err := run(t, config+fmt.Sprintf("broker: {archive: {url: %q}}\n", folder), "--keep", "0s", "--all")
	if err != nil || !strings.Contains(text, "188 records archived") || !strings.Contains(text, "187 deleted from the brokers, which begin at 187") {
		t.Errorf("%v\n%s", err, text)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
