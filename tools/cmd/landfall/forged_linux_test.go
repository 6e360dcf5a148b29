package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/api"
)

// forging has targets of one folder each, whose steps share a cache and do what the folder's name says.
const forging = `targets:
  - {name: fill, kind: test, sources: ["fill/*"], steps: [{name: run, caches: [go-build], run: [./forger, fill, fill/0]}]}
  - {name: forge, kind: test, sources: ["forge/*"], steps: [{name: run, caches: [go-build], run: [./forger, forge, forge/1]}]}
  - {name: look, kind: test, sources: ["look/*"], steps: [{name: run, caches: [go-build], run: [./forger, look, look/1]}]}
  - {name: rest, kind: test, sources: ["*", "folder/*"], steps: [{name: run, run: [test, -f, forger]}]}
`

// forgery is a machine on whose mainline a step has filled a cache.
func forgery(t *testing.T, uid int, isolation string) *machine {
	m := newMachine(t, uid, isolation, "host")
	forger, err := os.ReadFile(built(t, "forger", "./testdata/forger"))
	if err != nil {
		t.Fatal(err)
	}
	m.propose("setup", map[string]string{"landfall.yaml": forging, "forger": string(forger), "fill/0": "x", "forge/0": "x", "look/0": "x"})
	m.await("setup", "landed")
	return m
}

// says waits until the output of some step has a text so many times.
func (m *machine) says(text string, times int) string {
	m.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		logs := m.logs()
		if strings.Count(logs, text) >= times {
			return logs
		}
		if time.Now().After(deadline) {
			m.Fatalf("no step says %q %d times:\n%s", text, times, logs)
		}
	}
}

func (m *machine) steer(verb string) {
	m.Helper()
	if _, err := m.client.Steer(m.Context(), "shop", "", verb, api.SteerBody{}); err != nil {
		m.Fatal(err)
	}
}

// forgedOnDisk returns the files below the folders of the mainline's layers that a forger has written.
func (m *machine) forgedOnDisk() (list []string) {
	m.Helper()
	layers, err := filepath.Glob(filepath.Join(m.dir, "data", "caches", "*", "shop", "go-build@mainline", "layers"))
	if err != nil || len(layers) != 1 {
		m.Fatalf("layers: %q, %v", layers, err)
	}
	err = filepath.WalkDir(layers[0], func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			text, rerr := os.ReadFile(path)
			if err = rerr; bytes.Contains(text, []byte("forged")) {
				list = append(list, path)
			}
		}
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	return list
}

func TestAChangeThatHasNotLandedForgesNoCacheOfOthers(t *testing.T) {
	eachUser(t, func(t *testing.T, uid int) {
		m := forgery(t, uid, "required")
		// The step that forges passes, and its change cannot land meanwhile.
		m.steer("pause")
		m.propose("forger", map[string]string{"forge/1": "x"})
		m.says("has made forgeries", 1)
		m.propose("victim", map[string]string{"look/1": "x"})
		if logs := m.says("has looked", 1); strings.Contains(logs, "FOUND") {
			t.Errorf("the steps' output:\n%s", logs)
		}
		if list := m.forgedOnDisk(); len(list) > 0 {
			t.Errorf("forged files in the mainline's layers: %q", list)
		}
		// Once it has landed its code is the mainline's: what it wrote is found, or this test would find nothing ever.
		m.steer("resume")
		m.await("forger", "landed")
		m.await("victim", "landed")
		m.propose("later", map[string]string{"look/1": "x", "look/2": "x"})
		if logs := m.says("has looked", 2); !strings.Contains(logs, "FOUND") {
			t.Errorf("what a landed change has left is not found:\n%s", logs)
		}
	})
}

// Without isolation steps share one folder: there the step above finds what the other one has forged.
func TestWithoutIsolationAChangeForgesTheCacheOfOthers(t *testing.T) {
	m := forgery(t, os.Geteuid(), "off")
	m.steer("pause")
	m.propose("forger", map[string]string{"forge/1": "x"})
	m.says("has made forgeries", 1)
	m.propose("victim", map[string]string{"look/1": "x"})
	logs := m.says("has looked", 1)
	for way := range 13 {
		if private := way == 9; strings.Contains(logs, fmt.Sprintf("FOUND /folder/%d: ", way)) == private {
			t.Errorf("of file %d it is not as expected whether a forgery is found:\n%s", way, logs)
		}
	}
}
