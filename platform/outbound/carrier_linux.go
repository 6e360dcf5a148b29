package outbound

import (
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox"
)

// carrierArgument is os.Args[1] of a process that carries the packets of a link.
const carrierArgument = "__landfall-step-network"

// carrierLink is its descriptor of the socket that it is given the link on. Its
// standard input has its settings, and ends when it is to end.
const carrierLink = 3

// carrierMemory is the memory limit of a carrier, for its garbage collector.
const carrierMemory = 256 << 20

// Carrier is the process that carries the packets of a sandbox; nothing for one
// that needs none. It is outside of the sandbox, and a process of its own, so
// that who is inside can take down no more than their own network.
type Carrier struct {
	command *exec.Cmd
	life    *os.File      // its standard input
	uplink  *os.File      // for who enters the sandbox
	exited  chan struct{} // closed when it has ended
}

// carriage holds the settings of a carrier.
type carriage struct {
	IPv6 bool
	Deny []netip.Prefix
}

// Carry starts a carrier. It ends with the thread that has started it, which is to be locked.
func Carry(box *sandbox.Spec) (*Carrier, error) {
	if box == nil || box.Network != sandbox.Outbound {
		return &Carrier{}, nil
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	link, uplink := os.NewFile(uintptr(pair[0]), "link"), os.NewFile(uintptr(pair[1]), "uplink")
	defer link.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		uplink.Close()
		return nil, err
	}
	defer reader.Close()
	c := &Carrier{life: writer, uplink: uplink, exited: make(chan struct{}), command: &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"landfall", carrierArgument}, Env: []string{"GOMAXPROCS=2", "GOTRACEBACK=single"},
		Dir: "/", Stdin: reader, ExtraFiles: []*os.File{link},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}}
	if err := c.command.Start(); err != nil {
		writer.Close()
		uplink.Close()
		return nil, err
	}
	go func() {
		defer close(c.exited)
		_ = c.command.Wait()
	}()
	_ = json.NewEncoder(writer).Encode(carriage{IPv6: box.IPv6, Deny: box.Deny}) // if it is dead, who enters hears of it
	return c, nil
}

// Uplink returns the socket that [sandbox.Spec.Uplink] is the descriptor of, nil if there is none.
func (c *Carrier) Uplink() *os.File { return c.uplink }

// HandedOver closes the uplink, which another process has by now.
func (c *Carrier) HandedOver() {
	if c.uplink != nil {
		c.uplink.Close()
	}
}

// Ended reports whether it has ended.
func (c *Carrier) Ended() bool {
	if c.command == nil {
		return false
	}
	select {
	case <-c.exited:
		return true
	default:
	}
	// What has ended is a zombie until it is waited for, and then no child.
	var status unix.Siginfo
	err := unix.Waitid(unix.P_PID, c.command.Process.Pid, &status, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD) || err == nil && status.Signo != 0
}

// End ends it, and with it the link and all that went over it.
func (c *Carrier) End() {
	if c.command == nil {
		return
	}
	c.HandedOver()
	c.life.Close()
	_ = c.command.Process.Kill()
	<-c.exited
}

// MaybeCarry turns a process that [Carry] started into a carrier; then it does not return. In any other process it does nothing.
// Call it first thing in main, and in TestMain.
func MaybeCarry() {
	if len(os.Args) != 2 || os.Args[1] != carrierArgument {
		return
	}
	// Nobody else of this user may trace it.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	debug.SetMemoryLimit(carrierMemory)
	answer := sandbox.LinkCarried
	if err := carryLink(); err != nil {
		answer = err.Error()
	}
	if _, err := syscall.Write(carrierLink, []byte(answer)); err != nil || answer != sandbox.LinkCarried {
		syscall.Exit(1)
	}
	_ = syscall.Close(carrierLink)
	_, _ = io.Copy(io.Discard, os.Stdin)
	syscall.Exit(0)
}

func carryLink() error {
	var settings carriage
	input := json.NewDecoder(os.Stdin)
	if err := input.Decode(&settings); err != nil {
		return err
	}
	link, err := ReceiveDescriptor(carrierLink)
	if err != nil {
		return err
	}
	return Serve(link, settings.IPv6, Filter{Deny: settings.Deny})
}

// ReceiveDescriptor returns a descriptor that comes by a socket.
func ReceiveDescriptor(socket int) (int, error) {
	message, rights := make([]byte, 1), make([]byte, syscall.CmsgSpace(4))
	_, size, _, _, err := syscall.Recvmsg(socket, message, rights, syscall.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:size])
	if err != nil {
		return 0, err
	}
	if len(messages) != 1 {
		return 0, errors.New("no descriptor came")
	}
	list, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return list[0], nil
}
