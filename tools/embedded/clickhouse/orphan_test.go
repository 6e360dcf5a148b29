package clickhouse_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"landfall.build/tools/embedded/clickhouse"
)

// parentDir is set in the environment of the process that runs nothing but a server, to be killed.
const parentDir = "LANDFALL_TEST_CLICKHOUSE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		s, err := clickhouse.Start(context.Background(), clickhouse.Options{Dir: dir, Log: quiet()})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(s.Process())
		// Its parent's end closes standard input: nothing outlives the test.
		bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	if os.Getenv(historianBroker) != "" {
		if err := runHistorian(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	code := m.Run()
	closeShared()
	os.Exit(code)
}

func TestTheServerEndsWithAKilledLandfallAndTheNextOneTakesTheDirectory(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentDir+"="+dir)
	parent.Stderr = os.Stderr
	if _, err := parent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	parent.Process.Kill()
	parent.Wait()
	if err != nil {
		t.Fatalf("the process did not say who its server is: %v", err)
	}
	server, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			syscall.Kill(server, syscall.SIGKILL)
		}
	})
	start(t, dir)
	for range 100 {
		if syscall.Kill(server, 0) != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the server %d of a killed landfall still runs", server)
}
