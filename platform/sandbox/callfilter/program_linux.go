// Package callfilter makes programs that the kernel runs before each system call of a thread (seccomp(2)).
package callfilter

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets into struct seccomp_data, from which a program loads.
const (
	number       = 0
	architecture = 4
	arguments    = 16
)

// Argument returns the offset of the lower half of an argument of the call, on little-endian machines.
func Argument(index int) uint32 { return arguments + 8*uint32(index) }

// architectures are the kernel's numbers of those for which there are programs.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Program is a list of instructions. It ends with an answer.
type Program []unix.SockFilter

// New returns a program that answers calls of other architectures, whose numbers mean other calls, with foreign, and has loaded the
// number of all others. ok is false on architectures for which there are no programs.
func New(foreign uint32) (p Program, ok bool) {
	own, ok := architectures[runtime.GOARCH]
	p.Load(architecture)
	p.Jump(unix.BPF_JEQ, own, 1, 0)
	p.Answer(foreign)
	p.Load(number)
	return p, ok
}

// Load adds an instruction that loads 32 bits from an offset.
func (p *Program) Load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

// Jump adds one that passes by as many instructions as yes says if what was loaded meets a condition, and as no says if it does not.
func (p *Program) Jump(condition uint16, value uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | condition | unix.BPF_K, K: value, Jt: yes, Jf: no})
}

// Answer adds one that ends the program with an answer (SECCOMP_RET_…).
func (p *Program) Answer(value uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value})
}

// Install has the kernel run the program for this thread and for all that it starts. With SECCOMP_FILTER_FLAG_NEW_LISTENER it returns
// the descriptor of the listener.
func (p Program) Install(flags uintptr) (descriptor int, errno unix.Errno) {
	header := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	got, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&header)))
	runtime.KeepAlive(p)
	return int(got), errno
}
