package demo

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"landfall.build/platform/configuration"
)

// queue is the demo's only one.
const queue = "bookshop"

// place is where a demo keeps everything.
type place struct{ dir string }

func (p place) repository() string { return filepath.Join(p.dir, "bookshop.git") }
func (p place) configFile() string { return filepath.Join(p.dir, "landfall.config.yaml") }
func (p place) log() string        { return filepath.Join(p.dir, "landfall.log") }
func (p place) clone() string      { return filepath.Join(p.dir, "clone.git") }
func (p place) audit() string      { return filepath.Join(p.dir, "audit") }

// newPlace makes the folder: a kept one must not be there, or be empty.
func newPlace(keep string) (p place, remove func(), err error) {
	if keep == "" {
		dir, err := os.MkdirTemp("", "landfall-demo-")
		return place{dir}, func() { os.RemoveAll(dir) }, err
	}
	if keep, err = filepath.Abs(keep); err != nil {
		return place{}, nil, err
	}
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return place{}, nil, err
	}
	entries, err := os.ReadDir(keep)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty; --keep needs a folder of its own", keep)
	}
	return place{keep}, func() {}, err
}

// configText is the configuration of the demo. Builds are many, as most wait for steps of others, and steps two
// more than cores, as two of the sample's sleep most of the time. A quarter of the sample's changes are
// wrong, and the prior says so.
const configText = `# The configuration of landfall demo. To look at what it left: landfall up --config %[1]s
version: 1
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
        path: %[2]s
        variables:
          GOCACHE: %[3]s
      write: [%[3]s]
    retries:
      failed: 0
      timed_out: 1
    analysis:
      uncovered:
        ignore: ["**/*.md"]
    priors:
      success: 0.75
      duration:
        mean: 2s
        std: 1s
builder:
  workers: %[4]d
  lease: 3s
broker:
  brokers: [%[5]s]
  partitions: 1
gateway:
  listen: %[6]s
`

// configure writes the configuration and loads it. broker "" leaves the log to the stack.
func (p place) configure(cache, broker, listen string) (*configuration.Configuration, error) {
	text := fmt.Sprintf(configText, p.configFile(), quote(stepPath()), quote(cache), runtime.NumCPU()+2, broker, listen)
	if err := os.WriteFile(p.configFile(), []byte(text), 0o644); err != nil {
		return nil, err
	}
	return configuration.Load(p.configFile(), configuration.Defaults{Workers: runtime.NumCPU(), Path: stepPath()})
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

// freeAddress returns an address on which nothing listens at this moment.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
