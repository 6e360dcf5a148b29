package execution

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
)

// The network of the tests: a machine of their own, which is a namespace, with a neighbour, which is another one.
const (
	machine4, machine6     = "10.73.0.1", "fd73::1"
	neighbour4, neighbour6 = "10.73.0.2", "fd73::2"
	machineBehind          = "10.99.0.7" // the machine answers there, and no interface has it
	neighbourDenied        = "10.73.0.3"
	port                   = "7000" // of what the neighbour serves, and the machine
	apartVariable          = "LANDFALL_TEST_APART"
)

func init() {
	helpers["helper-neighbour"] = beNeighbour
	helpers["helper-carry"] = carryHelper
	helpers["helper-flood"] = flood
}

// apart runs a test in a machine of its own, beside which there is a neighbour.
func apart(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(apartVariable) != "" {
		makeMachine(t)
		test(t)
		return
	}
	again := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), apartVariable+"=yes")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		again.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := again.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Skipf("this system has no namespaces for the test: %v", err)
	}
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatal("it failed in a network of its own")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func up(t *testing.T, name string, addresses ...string) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	must(t, err)
	must(t, setUp(link, addresses...))
}

func setUp(link netlink.Link, addresses ...string) error {
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, text := range addresses {
		address, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		if address.IP.To4() == nil {
			address.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(link, address); err != nil {
			return err
		}
	}
	return nil
}

func makeMachine(t *testing.T) {
	t.Helper()
	up(t, "lo")
	neighbour := exec.Command("/proc/self/exe", "helper-neighbour")
	neighbour.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	neighbour.Stderr = os.Stderr
	said, err := neighbour.StdoutPipe()
	must(t, err)
	must(t, neighbour.Start())
	t.Cleanup(func() {
		_ = neighbour.Process.Kill()
		_ = neighbour.Wait()
	})
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there"}))
	there, err := netlink.LinkByName("there")
	must(t, err)
	must(t, netlink.LinkSetNsPid(there, neighbour.Process.Pid))
	up(t, "here", machine4+"/24", machine6+"/64")
	_, behind, err := net.ParseCIDR(machineBehind + "/32")
	must(t, err)
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: behind, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: unix.RT_TABLE_LOCAL}))
	// It resolves names at its loopback.
	settings, err := filepath.EvalSymlinks("/etc/resolv.conf")
	must(t, err)
	own := filepath.Join(t.TempDir(), "resolv.conf")
	must(t, os.WriteFile(own, []byte("nameserver 127.0.0.53\noptions timeout:2\n"), 0o644))
	must(t, unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
	must(t, unix.Mount(own, settings, "", unix.MS_BIND, ""))
	serveNames(t, "127.0.0.53:53")
	serveAll(func(err error) { must(t, err) })
	_, err = said.Read(make([]byte, 1))
	must(t, err)
}

// beNeighbour is a machine that the test's is linked to.
func beNeighbour([]string) {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	lo, err := netlink.LinkByName("lo")
	check(err)
	check(setUp(lo)) // without it net takes this for a machine without IPv6
	var there netlink.Link
	for there == nil {
		time.Sleep(time.Millisecond)
		there, _ = netlink.LinkByName("there")
	}
	check(setUp(there, neighbour4+"/24", neighbourDenied+"/24", neighbour6+"/64"))
	serveAll(check)
	fmt.Println("up")
	select {}
}

// serveAll serves TCP and UDP at all addresses. A connection sends eight bytes with how much it wants, then what it likes until
// it ends that; it is answered with a checksum of that, and with as much as it wants. Datagrams come back.
func serveAll(check func(error)) {
	listener, err := net.Listen("tcp", ":"+port)
	check(err)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go answer(connection)
		}
	}()
	datagrams, err := net.ListenPacket("udp", ":"+port)
	check(err)
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, from, err := datagrams.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = datagrams.WriteTo(buffer[:n], from)
		}
	}()
}

func answer(connection net.Conn) {
	defer connection.Close()
	var wanted uint64
	if binary.Read(connection, binary.BigEndian, &wanted) != nil {
		return
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, connection); err != nil {
		return
	}
	_, _ = connection.Write(sum.Sum(nil))
	_, _ = io.Copy(connection, noise(wanted))
}

// noise returns bytes that are the same for the same size.
func noise(size uint64) io.Reader {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], size)
	return io.LimitReader(rand.NewChaCha8(seed), int64(size))
}

// serveNames answers who asks for the addresses of names.
func serveNames(t *testing.T, at string) {
	t.Helper()
	known := map[string][4]byte{"neighbour.test.": [4]byte(net.ParseIP(neighbour4).To4()), "rebound.test.": {127, 0, 0, 1}}
	reply := func(question []byte) []byte {
		var message dnsmessage.Message
		if message.Unpack(question) != nil || len(message.Questions) != 1 {
			return nil
		}
		message.Response, message.Additionals = true, nil
		name := message.Questions[0].Name
		address, there := known[name.String()]
		if !there {
			message.RCode = dnsmessage.RCodeNameError
		} else if message.Questions[0].Type == dnsmessage.TypeA {
			message.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: 1}, Body: &dnsmessage.AResource{A: address},
			}}
		}
		packed, _ := message.Pack()
		return packed
	}
	datagrams, err := net.ListenPacket("udp", at)
	must(t, err)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := datagrams.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = datagrams.WriteTo(reply(buffer[:n]), from)
		}
	}()
	listener, err := net.Listen("tcp", at)
	must(t, err)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			var size uint16
			if binary.Read(connection, binary.BigEndian, &size) == nil {
				question := make([]byte, size)
				_, _ = io.ReadFull(connection, question)
				packed := reply(question)
				_, _ = connection.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...))
			}
			connection.Close()
		}
	}()
}

// carryHelper is helper-carry WAY ADDRESS SIZE: tcp sends as much as it then wants back, udp one datagram that it wants back.
// resolve-udp and resolve-tcp ask for a name. It prints "whole" and the place, or what went wrong.
func carryHelper(arguments []string) {
	size := uint64(100)
	if len(arguments) > 2 {
		size, _ = strconv.ParseUint(arguments[2], 10, 64)
	}
	way, address := arguments[0], arguments[1]
	did := func() error {
		switch way {
		case "tcp":
			return transfer(address, size)
		case "udp":
			return echoed(address, size)
		}
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, at string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, strings.TrimPrefix(way, "resolve-"), at)
		}}
		addresses, err := resolver.LookupHost(context.Background(), address)
		if err == nil && !slices.Equal(addresses, []string{neighbour4}) {
			err = fmt.Errorf("resolved to %v", addresses)
		}
		return err
	}
	if err := did(); err != nil {
		fmt.Println(way, address, err)
		return
	}
	fmt.Println("whole", way, address)
}

func transfer(address string, size uint64) error {
	connection, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	sent := sha256.New()
	if err := binary.Write(connection, binary.BigEndian, size); err != nil {
		return err
	}
	if _, err := io.Copy(connection, io.TeeReader(noise(size), sent)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(connection, got); err != nil {
		return fmt.Errorf("read the checksum: %w", err)
	}
	want, back := sha256.New(), sha256.New()
	_, _ = io.Copy(want, noise(size))
	n, err := io.Copy(back, connection)
	if err != nil || uint64(n) != size || string(got) != string(sent.Sum(nil)) || string(back.Sum(nil)) != string(want.Sum(nil)) {
		return fmt.Errorf("%d bytes came back of %d, %w", n, size, err)
	}
	return nil
}

func echoed(address string, size uint64) error {
	connection, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	sent, _ := io.ReadAll(noise(size))
	got := make([]byte, size+1)
	for range 3 { // a datagram may be lost
		_ = connection.SetDeadline(time.Now().Add(2 * time.Second))
		if _, err = connection.Write(sent); err != nil {
			return err
		}
		var n int
		if n, err = connection.Read(got); err == nil && string(got[:n]) != string(sent) {
			return fmt.Errorf("%d bytes came back of %d", n, size)
		} else if err == nil {
			return nil
		}
	}
	return err
}

// flood is helper-flood ADDRESS COUNT: it makes so many connections at once, keeps them, and prints how many there are.
func flood(arguments []string) {
	count, _ := strconv.Atoi(arguments[1])
	var all sync.WaitGroup
	made := make(chan net.Conn, count)
	for range count {
		all.Go(func() {
			if connection, err := net.DialTimeout("tcp", arguments[0], 4*time.Second); err == nil {
				made <- connection
			}
		})
	}
	all.Wait()
	fmt.Println("connections", len(made))
}

// outward is a step whose network is carried.
func outward(t *testing.T, script string) Request {
	t.Helper()
	return networked(t, sandbox.Outbound, shell(script))
}

func TestAStepReachesOtherMachines(t *testing.T) {
	apart(t, func(t *testing.T) {
		var script, want []string
		for _, host := range []string{neighbour4, neighbour6, "neighbour.test"} {
			at := net.JoinHostPort(host, port)
			script = append(script, "./helper helper-carry tcp "+at+" 50000000", "./helper helper-carry udp "+at+" 100", "./helper helper-carry udp "+at+" 60000")
			want = append(want, "whole tcp "+at, "whole udp "+at, "whole udp "+at)
		}
		for _, way := range []string{"resolve-udp", "resolve-tcp"} {
			script = append(script, "./helper helper-carry "+way+" neighbour.test")
			want = append(want, "whole "+way+" neighbour.test")
		}
		result := Run(t.Context(), outward(t, strings.Join(script, "\n")))
		mustEnd(t, result, Passed, "")
		if got := strings.Fields(string(result.Tail)); !slices.Equal(got, strings.Fields(strings.Join(want, " "))) {
			t.Errorf("output:\n%s", result.Tail)
		}
	})
}

func TestManyConnectionsAtOnceAreCarriedWhole(t *testing.T) {
	apart(t, func(t *testing.T) {
		at := net.JoinHostPort(neighbour4, port)
		result := Run(t.Context(), outward(t, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do ./helper helper-carry tcp "+at+" 4000000 & done; wait"))
		mustEnd(t, result, Passed, "")
		if got := strings.Count(string(result.Tail), "whole"); got != 16 {
			t.Errorf("%d of 16 were whole:\n%s", got, result.Tail)
		}
	})
}

func TestAStepDoesNotReachItsMachine(t *testing.T) {
	apart(t, func(t *testing.T) {
		script := []string{"./helper helper-carry tcp " + net.JoinHostPort(neighbour4, port)}
		for _, host := range []string{
			"127.0.0.1", "127.0.0.53", "127.9.9.9", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::ffff:" + machine4, machine4, machine6, machineBehind,
			"64:ff9b::" + machine4, "10.73.0.255", "255.255.255.255", "169.254.169.254", "fe80::1%eth0", "localhost", "rebound.test",
			sandbox.LinkGateway.String(), sandbox.LinkGateway6.String(), sandbox.LinkResolver.String(), neighbourDenied,
		} {
			at := net.JoinHostPort(host, port)
			script = append(script, "./helper helper-carry tcp "+at+" & ./helper helper-carry udp "+at+" & wait")
		}
		request := outward(t, strings.Join(script, "\n"))
		request.Timeout = 2 * patience
		request.Sandbox.Deny = prefixes(t, neighbourDenied+"/32")
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		if got := strings.Count(string(result.Tail), "whole"); got != 1 || !strings.Contains(string(result.Tail), "whole tcp "+neighbour4) {
			t.Errorf("it reached %d places, should reach its neighbour alone:\n%s", got, result.Tail)
		}
	})
}

func prefixes(t *testing.T, list ...string) (parsed []netip.Prefix) {
	t.Helper()
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		must(t, err)
		parsed = append(parsed, prefix)
	}
	return parsed
}

func TestAFloodOfConnectionsIsBounded(t *testing.T) {
	apart(t, func(t *testing.T) {
		at := net.JoinHostPort(neighbour4, port)
		before := descriptors(t)
		result := Run(t.Context(), outward(t, "./helper helper-flood "+at+" 2000; ./helper helper-carry tcp "+at+" 1000000"))
		mustEnd(t, result, Passed, "")
		var made int
		if _, err := fmt.Sscanf(string(result.Tail), "connections %d", &made); err != nil || made < 100 || made > 512 || !strings.Contains(string(result.Tail), "whole") {
			t.Errorf("of 2000 connections %d were made, at most 512 may be:\n%s", made, result.Tail)
		}
		if after := descriptors(t); after > before+8 {
			t.Errorf("this process has %d open files, had %d", after, before)
		}
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

func TestNothingOfTheNetworkOutlivesItsService(t *testing.T) {
	apart(t, func(t *testing.T) {
		request := outward(t, openLife+"./helper helper-flood "+net.JoinHostPort(neighbour4, port)+" 3; sleep 60")
		alive := watchLife(t, request.Worktree)
		runner := exec.Command("/proc/self/exe", "helper-runner")
		input, err := json.Marshal(request)
		must(t, err)
		runner.Stdin = bytes.NewReader(input)
		must(t, runner.Start())
		t.Cleanup(func() {
			_ = runner.Process.Kill()
			_ = runner.Wait()
		})
		alive.awaitStart(t)
		carriers := carriersOf(t, runner.Process.Pid)
		if len(carriers) != 1 {
			t.Fatalf("%d processes carry the network of one step", len(carriers))
		}
		must(t, runner.Process.Kill())
		alive.awaitEnd(t)
		eventually(t, "what carries the network to end", func() bool {
			return syscall.Kill(carriers[0], 0) != nil || len(cmdline(carriers[0])) == 0 // nobody waits for it here
		})
		// Devices outside would be left; those of the namespace go with it.
		links, err := netlink.LinkList()
		must(t, err)
		for _, link := range links {
			if name := link.Attrs().Name; name == "eth0" || name == "outside" {
				t.Errorf("the device %s is left", name)
			}
		}
	})
}

func cmdline(pid int) []byte {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return text
}

// carriersOf returns the children of a process that carry a network.
func carriersOf(t *testing.T, parent int) (list []int) {
	t.Helper()
	for _, p := range bounds.Below(parent, bounds.Table()) {
		if bytes.Contains(cmdline(p.PID), []byte("__landfall-step-network")) {
			list = append(list, p.PID)
		}
	}
	return list
}

func TestAStepIsNotToBlameForWhatCarriesItsNetwork(t *testing.T) {
	request := outward(t, openLife+"read line < life2; exit 1")
	alive := watchLife(t, request.Worktree)
	must(t, syscall.Mkfifo(filepath.Join(request.Worktree, "life2"), 0o666))
	ended := make(chan Result, 1)
	go func() { ended <- Run(t.Context(), request) }()
	alive.awaitStart(t)
	carriers := carriersOf(t, os.Getpid())
	if len(carriers) != 1 {
		t.Fatalf("%d processes carry the network of one step", len(carriers))
	}
	must(t, syscall.Kill(carriers[0], syscall.SIGKILL))
	eventually(t, "what carries the network to end", func() bool { return syscall.Kill(carriers[0], 0) != nil })
	must(t, os.WriteFile(filepath.Join(request.Worktree, "life2"), []byte("go on\n"), 0))
	mustEnd(t, <-ended, CouldNotRun, "carries the step's network")
}
