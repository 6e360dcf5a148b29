package alerts_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// smallDisk is set in the process that has a small disk.
const smallDisk = "LANDFALL_TEST_SMALL_DISK"

// diskFills: the services run in a process that sees a disk of 2 GiB in the place of the data directory, and then of 512 MiB.
func diskFills(t *testing.T) {
	if os.Getenv(smallDisk) != "" {
		runOnASmallDisk(t)
		return
	}
	w := newWorld(t, "")
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEachAlertFiresInItsFault$/^when$/^the_disk_fills$")
	c.Env = append(os.Environ(), smallDisk+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	c.Stderr = t.Output()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("a process with a disk of its own needs user namespaces: %v", err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	lines := bufio.NewScanner(out)
	url := ""
	for url == "" && lines.Scan() {
		fmt.Sscanf(lines.Text(), "metrics at %s", &url)
	}
	if url == "" {
		t.Fatal("the process shows no metrics")
	}
	w.prometheus.watch(quick, map[string]string{"one": url})
	w.prometheus.awaits("LandfallDiskLow", "instance", "one")
	if a := w.prometheus.fires("LandfallDiskFull"); a != nil {
		t.Errorf("2 GiB are not full: %v", a)
	}
	fmt.Fprintln(in, "fill it")
	w.prometheus.awaits("LandfallDiskFull", "instance", "one")
}

// runOnASmallDisk is the process.
func runOnASmallDisk(t *testing.T) {
	w := newWorld(t, "")
	data := t.TempDir()
	if err := syscall.Mount("disk", data, "tmpfs", 0, "size=2g"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(data, syscall.MNT_DETACH) })
	w.config.Data = data
	s := w.start("gateway")
	fmt.Printf("metrics at %s\n", s.MetricsURL())
	orders := bufio.NewScanner(os.Stdin)
	orders.Scan()
	file, err := os.Create(data + "/large")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, 3<<29); err != nil { // memory that is taken and never touched
		t.Fatal(err)
	}
	orders.Scan() // until standard input is closed
	file.Close()
}
