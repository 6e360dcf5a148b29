package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheUnitsAreThoseOfTheServices: each has one, which systemd takes, and no two have one port.
func TestTheUnitsAreThoseOfTheServices(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("there is no systemd-analyze, so what the units say is not verified")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "landfall")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ports := map[string]string{}
	var units []string
	for _, service := range append([]string{"up"}, services...) {
		unit := "landfall-" + service + ".service"
		if service == "up" {
			unit = "landfall.service"
		}
		text, err := os.ReadFile(filepath.Join(folder, "systemd", unit))
		if err != nil {
			t.Error(err)
			continue
		}
		_, command, _ := strings.Cut(string(text), "ExecStart=/usr/local/bin/landfall ")
		args := strings.Fields(strings.SplitN(command, "\n", 2)[0])
		if len(args) == 0 || args[0] != service {
			t.Errorf("%s runs %q", unit, args)
			continue
		}
		for i, a := range args {
			if a != "--metrics" || service == "up" {
				continue
			}
			if other := ports[args[i+1]]; other != "" {
				t.Errorf("%s and %s have one port", unit, other)
			}
			ports[args[i+1]] = unit
		}
		if runsSteps := service == "up" || service == "builder"; strings.Contains(string(text), "Delegate=yes") != runsSteps ||
			strings.Contains(string(text), "ProtectSystem=strict") == runsSteps {
			t.Errorf("%s: a cgroup to divide belongs to what runs steps, and hardening to the others", unit)
		}
		copied := filepath.Join(dir, unit)
		// The user and the program are not on this machine.
		made := strings.NewReplacer("/usr/local/bin/landfall", program, "User=landfall\n", "User=daemon\n").Replace(string(text))
		if err := os.WriteFile(copied, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
		units = append(units, copied)
	}
	if len(ports) != len(services) {
		t.Errorf("%d services have a port for their metrics", len(ports))
	}
	if verify == "" {
		return
	}
	// Beside the services there is what archives the log, each night.
	for _, unit := range []string{"landfall.target", "landfall-archive.service", "landfall-archive.timer"} {
		text, err := os.ReadFile(filepath.Join(folder, "systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, unit)
		made := strings.NewReplacer("/usr/local/bin/landfall archive", program+" archive", "User=landfall\n", "User=daemon\n").Replace(string(text))
		if err := os.WriteFile(copied, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
		if unit != "landfall.target" {
			units = append(units, copied)
		}
	}
	out, err := exec.Command(verify, append([]string{"verify", "--man=no", "--recursive-errors=no"}, units...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) || strings.Contains(line, "landfall") {
			t.Error(strings.TrimSpace(line))
		}
	}
	if err != nil && len(out) == 0 {
		t.Error(err)
	}
}
