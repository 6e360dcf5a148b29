package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/sys/unix"
)

// inside names the variable with the root in which this program becomes another one; mounts has what is mounted there.
const (
	inside = "LANDFALL_TEST_IMAGE_ROOT"
	mounts = "LANDFALL_TEST_IMAGE_MOUNTS"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(inside); root != "" {
		fmt.Fprintln(os.Stderr, "the image's root cannot be entered:", enter(root, strings.Fields(os.Getenv(mounts)), os.Args[1:]))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// enter makes a folder the root, which nothing can write but the mounted data and /tmp, and runs a program there as the image's user.
// The process is in namespaces of its own.
func enter(root string, binds, argv []string) error {
	mount := func(from, to, kind string, flags uintptr, options string) error {
		if err := unix.Mount(from, to, kind, flags, options); err != nil {
			return fmt.Errorf("mount %s: %w", to, err)
		}
		return nil
	}
	if err := errors.Join(mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), mount(root, root, "", unix.MS_BIND|unix.MS_REC, "")); err != nil {
		return err
	}
	for _, b := range binds {
		from, to, _ := strings.Cut(b, ":")
		if err := mount(from, root+to, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := errors.Join(
		mount("tmpfs", root+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
		mount("proc", root+"/proc", "proc", 0, ""),
		mount("/dev", root+"/dev", "", unix.MS_BIND|unix.MS_REC, ""),
		mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
		os.Chdir(root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/"),
	); err != nil {
		return err
	}
	if err := errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), syscall.Setgroups(nil), syscall.Setgid(user), syscall.Setuid(user)); err != nil {
		return err
	}
	return unix.Exec(argv[0], argv, []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANDFALL_CLICKHOUSE_HOME=" + clickhouseHome})
}

// entering is a command within the image.
func entering(t *testing.T, root string, binds []string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", argv...)
	cmd.Env = append(os.Environ(), inside+"="+root, mounts+"="+strings.Join(binds, " "))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// need ends the test where it cannot be run: it is skipped, unless LANDFALL_TEST_IMAGE is "required".
func need(t *testing.T, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("LANDFALL_TEST_IMAGE") == "required":
		t.Fatalf("%s: %v", what, err)
	default:
		t.Skipf("skipped, as %s: %v", what, err)
	}
}

// clickhouse returns the folder of the embedded ClickHouse where it is installed and everything is tested, else "": its library has
// half a gigabyte.
func clickhouse(t *testing.T) string {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		return ""
	}
	folder := os.Getenv("LANDFALL_CLICKHOUSE_HOME")
	if own, err := os.UserHomeDir(); folder == "" && err == nil {
		folder = filepath.Join(own, ".local", "share", "landfall", "clickhouse")
	}
	if found, _ := filepath.Glob(filepath.Join(folder, "*", "libchdb.so")); len(found) == 0 {
		t.Logf("there is no embedded ClickHouse in %s (make clickhouse), so the image is tested without it", folder)
		return ""
	}
	return folder
}

// build makes the command and an image of it, with an embedded ClickHouse if a folder of one is given.
func build(t *testing.T, clickhouse string) v1.Image {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the command and fetches packages")
	}
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		_, err := exec.LookPath(program)
		need(t, "the image is made of Debian packages", err)
	}
	dir := t.TempDir()
	o := Options{Binary: filepath.Join(dir, "landfall"), Version: "test", ClickHouse: clickhouse, Dir: dir}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", o.Binary, "./tools/cmd/landfall")
	cmd.Dir, cmd.Env = "../../..", append(os.Environ(), "GOWORK=", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image, err := Build(t.Context(), o)
	need(t, "no package can be fetched", err)
	return image
}

// unpack writes what a container of the image would have as its root, and returns what it found.
func unpack(t *testing.T, image v1.Image, root string) (entries map[string]tar.Header) {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	entries = map[string]tar.Header{}
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Clean(h.Name)
		entries[name] = *h
		path := filepath.Join(root, name)
		err = os.MkdirAll(filepath.Dir(path), 0o755)
		switch h.Typeflag {
		case tar.TypeDir:
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		case tar.TypeSymlink:
			err = errors.Join(err, os.Symlink(h.Linkname, path))
		case tar.TypeLink:
			err = errors.Join(err, os.Link(filepath.Join(root, h.Linkname), path))
		case tar.TypeReg:
			var f *os.File
			if f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
				_, err = io.Copy(f, r)
				err = errors.Join(err, f.Close())
			}
		default:
			err = fmt.Errorf("an entry of type %q", h.Typeflag)
		}
		if err == nil && h.Typeflag != tar.TypeSymlink {
			err = errors.Join(os.Chown(path, h.Uid, h.Gid), os.Chmod(path, fs.FileMode(h.Mode&0o777)|stickiness(h.Mode)))
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

func stickiness(mode int64) fs.FileMode {
	if mode&0o1000 != 0 {
		return fs.ModeSticky
	}
	return 0
}

// landing is what happens within the image: somebody pushes a branch, lands it through the gateway, and looks at the mainline.
const landing = `set -eu
for program in landfall git ssh; do command -v $program >/dev/null; done
[ "$(id -u):$(id -g)" = 10001:10001 ]
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status
if touch /usr/local/bin/written /etc/landfall/written 2>/dev/null; then echo "the root can be written"; exit 1; fi
[ -s /etc/ssl/certs/ca-certificates.crt ]
export GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.com GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.com
cd /var/lib/landfall
git init --quiet --bare --initial-branch=main shop.git
git clone --quiet shop.git /tmp/clone 2>/dev/null
cd /tmp/clone
echo one >README; git add .; git commit --quiet -m 'The first commit'; git push --quiet origin main
git checkout --quiet -b greeting; echo hello >greeting; git add .; git commit --quiet -m 'Greet'; git push --quiet origin greeting
landfall up --config /etc/landfall/landfall.config.yaml >/tmp/up.log 2>&1 &
server=$!
for i in $(seq 600); do landfall queue --server "$SERVER" --queue shop >/dev/null 2>&1 && break; kill -0 $server || break; sleep 0.2; done
landfall land greeting --server "$SERVER" --queue shop --wait || { cat /tmp/up.log; exit 1; }
git fetch --quiet origin; git log --format=%s origin/main
if [ "$HISTORY" = yes ]; then
	for i in $(seq 300); do landfall history --config /etc/landfall/landfall.config.yaml --json "SELECT outcome FROM change_outcomes" | grep -q landed && break; sleep 0.2; done
	landfall history --config /etc/landfall/landfall.config.yaml "SELECT change, outcome FROM change_outcomes"
fi
kill $server; wait $server || true
`

// TestTheUnpackedImageLandsAChange: as the manifests run it, with a root that nothing can write and a user without rights, with its own git.
func TestTheUnpackedImageLandsAChange(t *testing.T) {
	if os.Getuid() != 0 {
		need(t, "the layers are unpacked with their owners, and mounted", errors.New("this is not root"))
	}
	probe := exec.CommandContext(t.Context(), "true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	need(t, "a namespace with another root cannot be made here", probe.Run())
	library := clickhouse(t)
	image := build(t, library)
	root, data, config := t.TempDir(), t.TempDir(), t.TempDir()
	entries := unpack(t, image, root)
	for name, h := range entries {
		if h.Mode&0o6000 != 0 {
			t.Errorf("%s gains rights: %o", name, h.Mode)
		}
	}
	for _, dir := range []string{root, data, config} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(data, user, user); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	history := "no"
	if library != "" {
		history = "yes"
	}
	script := strings.NewReplacer("$SERVER", "http://"+address, "$HISTORY", history).Replace(landing)
	for name, text := range map[string]string{
		"landing.sh": script,
		"landfall.config.yaml": fmt.Sprintf(`version: 1
data: /var/lib/landfall
repositories: {shop: {url: /var/lib/landfall/shop.git, poll: 500ms}}
queues:
  shop:
    repository: shop
    workers: 2
    steps: {environment: {path: "/usr/local/bin:/usr/bin:/bin"}}
    analysis: {whole_repository_steps: [{name: test, run: [grep, hello, greeting]}]}
gateway: {listen: %q}
`, address),
	} {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := entering(t, root, []string{data + ":" + home, config + ":/etc/landfall"}, "/bin/sh", "/etc/landfall/landing.sh")
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Run(); err != nil {
		t.Fatalf("within the image: %v\n%s", err, out.String())
	}
	t.Log(out.String())
	if library != "" && !strings.Contains(out.String()[strings.LastIndex(out.String(), "Greet"):], "greeting") {
		t.Error("the history within the image does not have the landing")
	}
	git := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "--git-dir", filepath.Join(data, "shop.git"), "log", "--format=%s", "main")
	log, err := git.CombinedOutput()
	if want := "Greet\nThe first commit\n"; err != nil || string(log) != want {
		t.Errorf("the mainline is %q, %v; want %q", log, err, want)
	}
}

// TestTheImageIsTheSameAgain, whoever makes it and when.
func TestTheImageIsTheSameAgain(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "landfall")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "clickhouse", "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "clickhouse", "1", "libchdb.so"), []byte("library"), 0o600); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for range 2 {
		image, err := Build(t.Context(), Options{Binary: program, Version: "1", ClickHouse: filepath.Join(dir, "clickhouse"), Dir: t.TempDir()})
		need(t, "no package can be fetched", err)
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
		file, err := image.ConfigFile()
		if err != nil || file.Config.User != "10001:10001" || !slices.Equal(file.Config.Entrypoint, []string{"landfall"}) || len(file.RootFS.DiffIDs) != 3 {
			t.Errorf("%v: %+v", err, file)
		}
		if len(digests) == 1 {
			entries := names(t, image)
			for _, name := range []string{"usr/local/bin/landfall", "usr/local/lib/landfall/clickhouse/1/libchdb.so", "usr/bin/git", "usr/bin/sh", "usr/share/doc/git/copyright", "lib64"} {
				if !entries[name] {
					t.Errorf("%s is missing", name)
				}
			}
			if entries["usr/share/man/man1/git.1.gz"] {
				t.Error("the manual pages of git are there")
			}
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("two images: %v", digests)
	}
}

func names(t *testing.T, image v1.Image) map[string]bool {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	out := map[string]bool{}
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Clean(h.Name)] = true
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
