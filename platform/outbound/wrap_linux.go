package outbound

import (
	"os/exec"
	"runtime"

	"landfall.build/platform/sandbox"
)

// Wrap makes a command that was not started yet run in a sandbox, as [sandbox.Spec.Wrap] does, and carries its packets where the
// sandbox's network asks for it. end has to be called by the same goroutine once the command has ended, or was not started.
func Wrap(s sandbox.Spec, cmd *exec.Cmd) (end func(), err error) {
	s.IPv6 = s.Network == sandbox.Outbound && HasIPv6()
	runtime.LockOSThread()
	carrier, err := Carry(&s)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	end = func() {
		carrier.End()
		runtime.UnlockOSThread()
	}
	if uplink := carrier.Uplink(); uplink != nil {
		const first = 3 // of ExtraFiles
		s.Uplink = first + len(cmd.ExtraFiles)
		cmd.ExtraFiles = append(cmd.ExtraFiles, uplink)
	}
	if err := s.Wrap(cmd); err != nil {
		end()
		return nil, err
	}
	return end, nil
}
