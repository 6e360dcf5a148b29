package outputs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Servers that others have made. Each is fetched, and runs while the test does.
const (
	bazelRemoteVersion = "v2.6.1"
	s3rverRelease      = "s3rver@3.7.1"
)

func TestRealStoresKeepOutputsOrNothing(t *testing.T) {
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("LANDFALL_TEST_SLOW is not set: bazel-remote is built first, which takes minutes")
	}
	places := []int64{0, 100, 700, 5_000, 1 << 20}
	t.Run("bazel-remote", func(t *testing.T) {
		program := buildBazelRemote(t)
		begin := func(t *testing.T) (byHTTP, byGRPC string) {
			byHTTP, byGRPC = freePort(t), freePort(t)
			launch(t, byGRPC, nil, program, "--dir", t.TempDir(), "--max_size", "1", "--storage_mode", "uncompressed", "--http_address", byHTTP, "--grpc_address", byGRPC, "--access_log_level", "none")
			return byHTTP, byGRPC
		}
		t.Run("HTTP", func(t *testing.T) {
			conforms(t, func(t *testing.T) *store {
				address, _ := begin(t)
				return &store{address: address, open: func(_ *testing.T, address string) Remote { return NewHTTP("http://"+address, "", "", nil) }}
			}, mostBatched+1000, places...)
		})
		t.Run("gRPC", func(t *testing.T) {
			conforms(t, func(t *testing.T) *store {
				_, address := begin(t)
				return &store{address: address, open: func(t *testing.T, address string) Remote { return grpcAt(t, "grpc://"+address+"/landfall", nil) }}
			}, mostBatched+1000, places...)
		})
	})
	t.Run("s3rver", func(t *testing.T) {
		dir := t.TempDir()
		run(t, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--silent", s3rverRelease)
		conforms(t, func(t *testing.T) *store {
			address := freePort(t)
			_, port, _ := net.SplitHostPort(address)
			launch(t, address, nil, "node", filepath.Join(dir, "node_modules/s3rver/bin/s3rver.js"), "-d", t.TempDir(), "-a", "127.0.0.1", "-p", port, "--silent", "--configure-bucket", "shop")
			return bucketAt(t, address, "S3RVER", "S3RVER")
		}, mostBatched+1000, places...)
	})
}

// buildBazelRemote builds bazel-remote. The types of ByteStream are made from a definition of the tests' own, with the numbers of the
// fields that the protocol has: their module has no verified sum.
func buildBazelRemote(t *testing.T) (program string) {
	dir := t.TempDir()
	types := filepath.Join(dir, "bytestream")
	for _, name := range []string{"go.mod", "bytestream.pb.go", "bytestream_grpc.pb.go"} {
		text, err := os.ReadFile(filepath.Join("testdata/bytestream", name+".txt")) // not a module of this repository
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(types, name), string(text))
	}
	write(t, filepath.Join(dir, "go.mod"), fmt.Sprintf("module bazelremote.test\n\ngo 1.26\n\nrequire github.com/buchgr/bazel-remote/v2 %s\n\nreplace google.golang.org/genproto/googleapis/bytestream => %s\n", bazelRemoteVersion, types))
	program = filepath.Join(dir, "bazel-remote")
	run(t, dir, []string{"GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}, "go", "build", "-mod=mod", "-o", program, "github.com/buchgr/bazel-remote/v2")
	return program
}

func run(t *testing.T, dir string, variables []string, argv ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), variables...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

func freePort(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// launch runs a server until the test ends, and waits until it listens.
func launch(t *testing.T, address string, variables []string, argv ...string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(os.Environ(), variables...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		log.Close()
	})
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			return
		}
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("%v does not listen:\n%s", argv, text)
}
