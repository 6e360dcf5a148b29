package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"
)

// otherProcesses reads the memory of others, and takes what they have open, by calls that need no file.
func otherProcesses() {
	for _, pid := range append([]int{1}, know.Pids...) {
		if pid == os.Getpid() {
			continue
		}
		var to [8]byte
		local := syscall.Iovec{Base: &to[0], Len: 8}
		remote := [2]uintptr{0x400000, 8} // where a program of Go begins
		if allowed("process_vm_readv", uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1) {
			report("process", "the memory of %d can be read", pid)
		}
		handle, _, errno := syscall.RawSyscall(numbers["pidfd_open"], uintptr(pid), 0, 0)
		if errno != 0 {
			continue
		}
		for number := range uintptr(8) {
			if allowed("pidfd_getfd", handle, number) {
				report("process", "descriptor %d of %d can be taken", number, pid)
			}
		}
		syscall.Close(int(handle))
	}
}

// limits widens what bounds this step.
func limits() {
	for _, path := range []string{"/sys/fs/cgroup", "/sys/kernel"} {
		if syscall.Access(path, 2) == nil {
			report("limit", "%s can be written", path)
		}
	}
	if file, err := os.OpenFile("/proc/sys/kernel/pid_max", os.O_WRONLY, 0); err == nil {
		file.Close()
		report("limit", "the number of processes can be set")
	}
}

// Bounds of a greedy step, should nothing else bound it.
const (
	mostMemory    = 1 << 30
	mostProcesses = 2000
)

// takeAll takes memory or processes, and ends only if nobody minds.
func takeAll() {
	var blocks [][]byte
	for taken := 0; know.Greedy == "memory" && taken < mostMemory; taken += 1 << 20 {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		blocks = append(blocks, block)
	}
	for range mostProcesses {
		if know.Greedy != "processes" {
			break
		}
		command := exec.Command("sh", "-c", "sleep 60 & exec sleep 60")
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		command.Start()
	}
	time.Sleep(20 * time.Second)
	fmt.Println("FOUND no limit:", len(blocks))
	os.Exit(1)
}
