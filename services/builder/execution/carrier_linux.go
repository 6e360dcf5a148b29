package execution

import (
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"

	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
)

// carrierMemory is the memory limit of a carrier, for its garbage collector.
const carrierMemory = 256 << 20

// carrier is the process that carries the packets of a step; nothing for a step
// that needs none. It is outside of the sandbox, and a process of its own, so
// that a step can take down no more than its own network.
type carrier struct {
	command *exec.Cmd
	life    *os.File      // its standard input
	uplink  *os.File      // for the supervisor
	exited  chan struct{} // closed when it has ended
}

// carriage holds the settings of a carrier.
type carriage struct {
	IPv6 bool
	Deny []netip.Prefix
}

func startCarrier(box *sandbox.Spec) (*carrier, error) {
	if box == nil || box.Network != sandbox.Outbound {
		return &carrier{}, nil
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
	c := &carrier{life: writer, uplink: uplink, exited: make(chan struct{}), command: &exec.Cmd{
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
	_ = json.NewEncoder(writer).Encode(carriage{IPv6: box.IPv6, Deny: box.Deny}) // if it is dead, the supervisor hears of it
	return c, nil
}

// handedOver closes what the supervisor has by now.
func (c *carrier) handedOver() {
	if c.uplink != nil {
		c.uplink.Close()
	}
}

// ended reports whether it has ended.
func (c *carrier) ended() bool {
	if c.command == nil {
		return false
	}
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// end ends it, and with it the link and all that went over it.
func (c *carrier) end() {
	if c.command == nil {
		return
	}
	c.handedOver()
	c.life.Close()
	_ = c.command.Process.Kill()
	<-c.exited
}

// carry is the whole life of a carrier. It does not return.
func carry() {
	// Nobody else of this user may trace it.
	_ = prctl(syscall.PR_SET_DUMPABLE, 0)
	_ = prctl(prSetNoNewPrivileges, 1)
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
	link, err := receiveDescriptor(carrierLink)
	if err != nil {
		return err
	}
	return outbound.Serve(link, settings.IPv6, outbound.Filter{Deny: settings.Deny})
}
