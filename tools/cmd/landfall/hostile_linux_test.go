package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/client/clienttest"
)

// secretText is in everything that no step may see.
const secretText = "the-secret-that-no-step-may-see"

// hostileFacts is what testdata/hostile reads.
type hostileFacts struct {
	Yranac    string
	Paths     []string
	Writable  []string
	Pids      []int
	Addresses []string
	// Ports are the ports of Addresses on the loopback, HostAddresses the machine's addresses, Datagrams a port that answers on
	// each.
	Ports, HostAddresses []string
	Datagrams            int
	Abstract             string
	Broker, Secret       string
	SharedMemory         int
	Key                  string
	Marker               string
	Root                 string
	Greedy               string
}

// machine is a landfall up, run by a user, with all that a hostile step would look for.
type machine struct {
	*testing.T
	dir, bare, work, home string
	uid                   int
	facts                 hostileFacts
	client                *client.Client
	// started is set once the repository is the user's.
	started bool
}

// newMachine starts the service with steps.isolation and steps.network as given, as a user.
func newMachine(t *testing.T, uid int, isolation, network string) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "landfall-hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{T: t, dir: dir, bare: filepath.Join(dir, "repo.git"), work: filepath.Join(dir, "work"), home: filepath.Join(dir, "home"), uid: uid}
	binary := built(t, "landfall", ".")
	m.git("", "init", "-q", "--bare", "-b", "main", m.bare)
	m.git("", "clone", "-q", m.bare, m.work)
	m.git(m.work, "checkout", "-q", "-B", "main")
	hostile, err := os.ReadFile(built(t, "hostile", "./testdata/hostile"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, m.work, map[string]string{
		"landfall.yaml": "targets:\n  - name: look\n    kind: test\n    sources: [\"*\", \"folder/*\"]\n    steps:\n      - name: look\n        run: [./hostile]\n",
		"hostile":       string(hostile), "folder/file": "a folder\n", ".gitignore": "ignored\n",
	})
	if err := os.Chmod(filepath.Join(m.work, "hostile"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.commit("first")
	m.git(m.work, "push", "-q", "origin", "main")
	m.plant()
	m.start(binary, isolation, network)
	return m
}

func (m *machine) git(dir string, args ...string) {
	m.Helper()
	command := exec.Command("git", args...)
	command.Dir = dir
	if m.started && m.uid != os.Geteuid() {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(m.uid), Gid: uint32(m.uid)}}
	}
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := command.CombinedOutput(); err != nil {
		m.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (m *machine) commit(message string) {
	m.Helper()
	m.git(m.work, "add", "--all", "--force")
	m.git(m.work, "commit", "-q", "-m", message)
}

// plant puts what a step must not find where attackers look.
func (m *machine) plant() {
	m.Helper()
	write(m.T, m.home, map[string]string{".ssh/id_ed25519": secretText, ".aws/credentials": secretText, ".netrc": secretText, "notes.txt": secretText})
	write(m.T, m.dir, map[string]string{"secrets/token": secretText, "data/note": secretText, "data/worktrees/other": secretText, "config.yaml": ""})
	in := func(names ...string) (list []string) {
		for _, name := range names {
			list = append(list, filepath.Join(m.dir, name))
		}
		return list
	}
	m.facts.Paths = in("home/.ssh/id_ed25519", "home", "secrets/token", "data/note", "data/worktrees/other", "data/broker", "data/broker/log", "data/broker/secret", "data/logs", "data/mirrors",
		"data/instances", "repo.git", "repo.git/config", "work", "config.yaml", "agent.sock")
	m.facts.Writable = in("data/note", "repo.git/hooks/post-receive", "home/.bashrc", "data/planted")
	agent, err := net.Listen("unix", filepath.Join(m.dir, "agent.sock"))
	if err != nil {
		m.Fatal(err)
	}
	m.facts.Abstract = fmt.Sprintf("landfall-hostile-%d", os.Getpid())
	abstract, err := net.Listen("unix", "@"+m.facts.Abstract)
	if err != nil {
		m.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.Fatal(err)
	}
	everywhere, err := net.Listen("tcp", ":0")
	if err != nil {
		m.Fatal(err)
	}
	m.facts.Datagrams, m.facts.HostAddresses = echo(m.T), hostAddresses(m.T)
	for _, l := range []net.Listener{agent, abstract, other, everywhere} {
		m.Cleanup(func() { l.Close() })
	}
	m.facts.Addresses = []string{other.Addr().String()}
	for _, host := range m.facts.HostAddresses {
		m.facts.Addresses = append(m.facts.Addresses, net.JoinHostPort(host, strconv.Itoa(everywhere.Addr().(*net.TCPAddr).Port)))
	}
	m.facts.SharedMemory = 0x6c660000 + os.Getpid()%0xffff
	id, err := unix.SysvShmGet(m.facts.SharedMemory, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	shared := filepath.Join("/dev/shm", m.facts.Abstract)
	if err := os.WriteFile(shared, []byte(secretText), 0o666); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { os.Remove(shared) })
	m.facts.Paths = append(m.facts.Paths, shared)
	if m.uid == os.Geteuid() {
		m.facts.Key = m.facts.Abstract
		key, err := unix.AddKey("user", m.facts.Key, []byte(secretText), unix.KEY_SPEC_USER_KEYRING)
		if err != nil {
			m.Fatal(err)
		}
		m.Cleanup(func() { unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	}
	m.facts.Marker, m.facts.Root = "left by a hostile step", "/"
	for i := len(secretText) - 1; i >= 0; i-- {
		m.facts.Yranac += secretText[i : i+1]
	}
}

// echo answers datagrams, and returns its port.
func echo(t *testing.T) int {
	t.Helper()
	socket, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		datagram := make([]byte, 64)
		for {
			n, from, err := socket.ReadFrom(datagram)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo(datagram[:n], from)
		}
	}()
	return socket.LocalAddr().(*net.UDPAddr).Port
}

// hostAddresses returns all addresses of this machine that need no interface's name.
func hostAddresses(t *testing.T) (list []string) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip := a.(*net.IPNet).IP; !ip.IsLinkLocalUnicast() {
			list = append(list, ip.String())
		}
	}
	return list
}

var upLine = regexp.MustCompile(`landfall is up: (http://\S+), log at (\S+),`)

func (m *machine) start(binary, isolation, network string) {
	m.Helper()
	write(m.T, m.dir, map[string]string{"config.yaml": fmt.Sprintf(`version: 1
data: %[1]s/data
repositories: {shop: {url: %[1]s/repo.git, poll: 200ms}}
gateway: {listen: "127.0.0.1:0"}
builder: {workers: 1, memory_limit: 512MiB, process_limit: 600}
queues:
  shop:
    repository: shop
    workers: 1
    retries: {failed: 0, infrastructure: 0}
    steps: {isolation: %[2]s, network: %[3]s, timeout: 2m}
`, m.dir, isolation, network)})
	for _, name := range []string{".", "data", "home", "repo.git", "work", "secrets"} {
		root := filepath.Join(m.dir, name)
		if name == "." {
			if err := os.Chmod(m.dir, 0o755); err != nil {
				m.Fatal(err)
			}
			if err := os.Chown(m.dir, m.uid, m.uid); err != nil && m.uid != os.Geteuid() {
				m.Fatal(err)
			}
			continue
		}
		if m.uid == os.Geteuid() {
			continue
		}
		if out, err := exec.Command("chown", "-R", strconv.Itoa(m.uid)+":"+strconv.Itoa(m.uid), root).CombinedOutput(); err != nil {
			m.Fatalf("chown: %v\n%s", err, out)
		}
	}
	m.started = true
	command := exec.Command(binary, "up", "--config", filepath.Join(m.dir, "config.yaml"), "--log-level", "info")
	command.Dir = m.home
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + m.home, "SECRET_OF_THE_SERVICE=" + secretText, "SSH_AUTH_SOCK=" + filepath.Join(m.dir, "agent.sock"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if m.uid != os.Geteuid() {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(m.uid), Gid: uint32(m.uid)}
	}
	said, err := command.StderrPipe()
	if err != nil {
		m.Fatal(err)
	}
	if err := command.Start(); err != nil {
		m.Fatal(err)
	}
	ended := make(chan struct{})
	m.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			command.Process.Kill()
			<-ended
		}
		command.Wait()
	})
	up := make(chan []string, 1)
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if match := upLine.FindStringSubmatch(lines.Text()); match != nil {
				up <- match
			}
			if strings.Contains(lines.Text(), "level=WARN") || strings.Contains(lines.Text(), "level=ERROR") {
				m.Log(lines.Text())
			}
		}
	}()
	select {
	case match := <-up:
		if m.client, err = client.New(match[1], "tester"); err != nil {
			m.Fatal(err)
		}
		m.facts.Addresses = append(m.facts.Addresses, strings.TrimPrefix(match[1], "http://"), match[2])
		m.facts.Broker, m.facts.Secret = match[2], filepath.Join(m.dir, "data", "broker", "secret")
	case <-ended:
		m.Fatal("the service ended")
	case <-time.After(2 * time.Minute):
		m.Fatal("the service is not up after a minute")
	}
	for _, address := range m.facts.Addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			m.Fatal(err)
		}
		if net.ParseIP(host).IsLoopback() {
			m.facts.Ports = append(m.facts.Ports, port)
		}
	}
	m.facts.Pids = []int{command.Process.Pid, os.Getpid(), os.Getppid()}
}

// land submits a change that runs the hostile step, and returns how it ended.
func (m *machine) land(name string) view.Change {
	m.Helper()
	facts, err := json.Marshal(m.facts)
	if err != nil {
		m.Fatal(err)
	}
	m.propose(name, map[string]string{"hostile.json": string(facts), name: name})
	return m.await(name, "landed", "rejected", "ejected", "cancelled")
}

// propose submits a change of files.
func (m *machine) propose(name string, files map[string]string) {
	m.Helper()
	m.git(m.work, "checkout", "-q", "-B", name, "main")
	write(m.T, m.work, files)
	for file := range files {
		path := filepath.Join(m.work, file)
		if strings.HasPrefix(files[file], "\x7fELF") {
			if err := os.Chmod(path, 0o755); err != nil {
				m.Fatal(err)
			}
		}
		for ; m.uid != os.Geteuid() && path != m.work; path = filepath.Dir(path) {
			if err := os.Chown(path, m.uid, m.uid); err != nil {
				m.Fatal(err)
			}
		}
	}
	m.commit(name)
	m.git(m.work, "push", "-q", "origin", name)
	reply, err := clienttest.Land(m.Context(), m.client, "shop", api.LandBody{Change: name, Entries: []api.LandEntry{{Ref: name}}})
	if err != nil || reply.Outcome != api.OutcomeAdmitted {
		m.Fatalf("land %s: %+v, %v", name, reply, err)
	}
}

// await waits until a change has one of some states.
func (m *machine) await(name string, states ...string) view.Change {
	m.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		change, err := m.client.Change(m.Context(), "shop", name)
		if err == nil && slices.Contains(states, change.State) {
			return change
		}
		if time.Now().After(deadline) {
			m.Fatalf("%s is %s: %s (%v)\n%s", name, change.State, change.Why, err, m.logs())
		}
	}
}

// logs returns the output of all steps.
func (m *machine) logs() string {
	m.Helper()
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(m.dir, "data", "logs", "*", "*.log"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			m.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// eachUser runs a test as this user, and as one who is not root.
func eachUser(t *testing.T, test func(t *testing.T, uid int)) {
	if os.Geteuid() != 0 {
		test(t, os.Geteuid())
		return
	}
	t.Run("root", func(t *testing.T) { test(t, 0) })
	t.Run("user", func(t *testing.T) { test(t, 65534) })
}

func TestAHostileStepFindsNothing(t *testing.T) {
	eachUser(t, func(t *testing.T, uid int) {
		for _, network := range []string{"none", "outbound"} {
			t.Run(network, func(t *testing.T) { findsNothing(t, uid, network) })
		}
	})
}

func findsNothing(t *testing.T, uid int, network string) {
	m := newMachine(t, uid, "required", network)
	note := filepath.Join(m.dir, "data", "note")
	for _, name := range []string{"one", "two"} {
		if change := m.land(name); change.State != "landed" {
			t.Fatalf("%s is %s: %s\n%s", name, change.State, change.Why, m.logs())
		}
	}
	if logs := m.logs(); strings.Count(logs, "nothing found") < 2 || strings.Contains(logs, "FOUND") {
		t.Errorf("the steps' output:\n%s", logs)
	}
	if text, err := os.ReadFile(note); err != nil || string(text) != secretText {
		t.Errorf("the note is %q, %v", text, err)
	}
	for _, path := range m.facts.Writable[1:] {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	m.nobodyElseReachesWhatIsLeft()
}

// nobodyElseReachesWhatIsLeft looks, as another user of the machine where that can be, for programs that steps have left. Those with
// the bit of their owner would make whoever starts them the user of the service, or root.
func (m *machine) nobodyElseReachesWhatIsLeft() {
	m.Helper()
	find := exec.Command("find", m.dir, "-perm", "/6000", "-type", "f")
	own, _ := find.Output()
	if !strings.Contains(string(own), "left-by-hostile") {
		m.Errorf("the steps have left nothing: %s", own)
	}
	if os.Geteuid() != 0 {
		return
	}
	find = exec.Command("find", m.dir, "-perm", "/6000", "-type", "f")
	find.Dir = "/" // which everybody may be in
	find.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64_999, Gid: 64_999}}
	if others, _ := find.Output(); len(others) > 0 {
		m.Errorf("other users reach what runs as that of the service:\n%s", others)
	}
}

// A step that takes all that it can get has failed, and its author reads why. The service goes on, and so do the steps of others.
func TestAGreedyStepFailsAlone(t *testing.T) {
	eachUser(t, func(t *testing.T, uid int) {
		m := newMachine(t, uid, "required", "none")
		for greed, reason := range map[string]string{
			"memory": "used more than 512 MiB of memory (builder.memory_limit)", "processes": "had more than 600 processes and threads at once (builder.process_limit)",
		} {
			m.facts.Greedy = greed
			change := m.land(greed)
			if text := fmt.Sprintf("%+v", change); change.State != "rejected" || !strings.Contains(text, reason) {
				t.Errorf("%s is %s: %s\n%s", greed, change.State, change.Why, m.logs())
			}
		}
		m.propose("harmless", map[string]string{"harmless": "no"})
		if change := m.await("harmless", "landed", "rejected", "ejected"); change.State != "landed" {
			t.Errorf("the harmless change is %s: %s", change.State, change.Why)
		}
	})
}

// The step of the test above finds things where there is no sandbox. Otherwise it would prove nothing.
func TestAHostileStepFindsWhatNobodyKeepsFromIt(t *testing.T) {
	m := newMachine(t, os.Geteuid(), "off", "host")
	m.facts.Marker, m.facts.Root = "", m.dir // nothing stays on the machine of whoever runs this
	change := m.land("one")
	logs := m.logs()
	if change.State != "rejected" {
		t.Errorf("it is %s: %s\n%s", change.State, change.Why, logs)
	}
	kinds := []string{"path: ", "secret: ", "link: ", "write: ", "socket: /", "socket: @", "port: ", "broker: ", "shared memory: ", "key: ", "interface: ", "lease: of a file", "crash: "}
	for _, host := range m.facts.HostAddresses {
		kinds = append(kinds, "port: "+net.JoinHostPort(host, m.facts.Ports[1]), "datagram: "+host)
	}
	if os.Geteuid() == 0 {
		kinds = append(kinds, "privilege: ", "device: ", "permissions: /dev/null", "namespace: ", "handle: ", "raw socket: for packets", "netlink: ")
	}
	for _, who := range []string{"nobody", "admin", "the user"} {
		if strings.Contains(logs, ", as "+who) {
			t.Errorf("without the secret it reached the log as %s:\n%s", who, logs)
		}
	}
	for _, kind := range kinds {
		if !strings.Contains(logs, "FOUND "+kind) {
			t.Errorf("it did not find a %s:\n%s", kind, logs)
		}
	}
}
