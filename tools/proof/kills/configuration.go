package kills

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"landfall.build/platform/configuration"
)

// queue is the only one of a round.
const queue = "bookshop"

// place is where a round keeps everything.
type place struct{ dir string }

func (p place) repository() string { return filepath.Join(p.dir, "bookshop.git") }
func (p place) clone() string      { return filepath.Join(p.dir, "clone.git") }
func (p place) audit() string      { return filepath.Join(p.dir, "audit") }
func (p place) kafka() string      { return filepath.Join(p.dir, "kafka") }
func (p place) data() string       { return filepath.Join(p.dir, "data") }
func (p place) logs() string       { return filepath.Join(p.dir, "logs") }
func (p place) configFile(instance string) string {
	return filepath.Join(p.dir, "landfall-"+instance+".config.yaml")
}

// configText is a round's configuration. Everything is as in the demo but for what dies: a step may be killed
// often, and its worker is missed soon.
const configText = `version: 1
data: data
repositories:
  bookshop:
    url: bookshop.git
    poll: 500ms
queues:
  bookshop:
    repository: bookshop
    branch: main
    workers: 32
    steps:
      timeout: 2m
      environment:
        path: %[1]s
        variables:
          GOCACHE: %[2]s
      write: [%[2]s]
    retries:
      failed: 0
      timed_out: 1
      infrastructure: 10
    analysis:
      uncovered:
        ignore: ["**/*.md"]
    priors:
      success: 0.75
      duration:
        mean: 2s
        std: 1s
builder:
  workers: %[3]d
  lease: 3s
  remember: 8
broker:
  brokers: [%[4]s]
  partitions: 1
  replication: %[5]d
gateway:
  listen: %[6]s
snapshots:
  after: 50
  every: 200ms
`

// configure writes an instance's configuration and loads it. Instances differ in where their gateway listens.
func (p place) configure(instance, cache string, brokers []string, listen string) (*configuration.Configuration, error) {
	path := stepPath()
	text := fmt.Sprintf(configText, quote(path), quote(cache), runtime.NumCPU()+1, strings.Join(brokers, ", "), len(brokers), listen)
	file := p.configFile(instance)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return configuration.Load(file, configuration.Defaults{Workers: runtime.NumCPU(), Path: path})
}

// stepPath is this process's PATH without what is no absolute folder.
func stepPath() string {
	var out []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			out = append(out, dir)
		}
	}
	return strings.Join(out, string(filepath.ListSeparator))
}

// quote makes a YAML text of anything on one line.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
