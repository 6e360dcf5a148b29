package main

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const answerLimit = 2 * time.Second

// namesOfHost are other ways to name the machine; some systems take some of them for the loopback.
var namesOfHost = []string{"localhost", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "127.1.2.3", "198.18.73.1", "198.18.73.2", "169.254.169.254"}

// ports tries all that listens on the machine, at each address that it has or that leads to it.
func ports() {
	addresses := slices.Clone(know.Addresses)
	for _, host := range slices.Concat(know.HostAddresses, namesOfHost, own()) {
		for _, port := range know.Ports {
			addresses = append(addresses, net.JoinHostPort(host, port))
		}
	}
	tried := map[string]bool{}
	answers := make(chan string)
	for _, address := range addresses {
		if tried[address] {
			continue
		}
		tried[address] = true
		go func() {
			c, err := net.DialTimeout("tcp", address, answerLimit)
			if err != nil {
				answers <- ""
				return
			}
			c.Close()
			answers <- address
		}()
	}
	for range tried {
		if address := <-answers; address != "" {
			report("port", "%s", address)
		}
	}
}

// datagrams sends one to each address of the machine.
func datagrams() {
	for _, host := range slices.Concat(know.HostAddresses, own()) {
		c, err := net.Dial("udp", net.JoinHostPort(host, fmt.Sprint(know.Datagrams)))
		if err != nil {
			continue
		}
		answer := make([]byte, 64)
		c.SetDeadline(time.Now().Add(answerLimit))
		if _, err := c.Write([]byte("x")); err == nil {
			if n, err := c.Read(answer); err == nil && n == 1 {
				report("datagram", "%s answers", host)
			}
		}
		c.Close()
	}
}

func own() (list []string) {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if ip := a.(*net.IPNet).IP; !ip.IsLinkLocalUnicast() {
			list = append(list, ip.String())
		}
	}
	return list
}

// gateway tries the ports below 1025 of what the packets go to on their way out, and of the resolvers there.
func gateway() {
	limit := make(chan struct{}, 64)
	var all sync.WaitGroup
	for _, host := range []string{"198.18.73.1", "198.18.73.53", "fd4c:616e:6466::1"} {
		for port := 1; port <= 1024; port++ {
			limit <- struct{}{}
			all.Go(func() {
				defer func() { <-limit }()
				c, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(port)), answerLimit)
				if err != nil {
					return
				}
				c.Close()
				if host != "198.18.73.53" || port != 53 { // where names are resolved
					fmt.Printf("FOUND gateway: %s has port %d\n", host, port)
					gateways.Add(1)
				}
			})
		}
	}
	all.Wait()
	found += int(gateways.Load())
}

var gateways atomic.Int64

// rawSockets asks for those that see or forge packets of others.
func rawSockets() {
	for name, s := range map[string][3]int{
		"packets": {syscall.AF_PACKET, syscall.SOCK_RAW, 0x0300}, "IP": {syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_TCP},
		"ICMP": {syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP}, "IPv6": {syscall.AF_INET6, syscall.SOCK_RAW, syscall.IPPROTO_TCP},
		"the host of a virtual machine": {40, syscall.SOCK_STREAM, 0}, "Bluetooth": {31, syscall.SOCK_RAW, 0}, "the kernel's ciphers": {38, syscall.SOCK_SEQPACKET, 0},
	} {
		if fd, err := syscall.Socket(s[0], s[1], s[2]); err == nil {
			syscall.Close(fd)
			report("raw socket", "for %s", name)
		}
	}
}

// interfaces reports the network interfaces of the machine that are here, and what netlink or a call could change.
func interfaces() {
	for _, address := range own() {
		if !net.ParseIP(address).IsLoopback() && slices.Contains(know.HostAddresses, address) {
			report("interface", "that with %s", address)
		}
	}
	// A message that brings up the loopback, which is up: header, then ifinfomsg.
	message := make([]byte, 32)
	for i, b := range map[int]byte{0: 32, 4: syscall.RTM_NEWLINK, 6: syscall.NLM_F_REQUEST | syscall.NLM_F_ACK, 8: 1, 20: 1, 24: syscall.IFF_UP, 28: syscall.IFF_UP} {
		message[i] = b
	}
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, syscall.NETLINK_ROUTE)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	if syscall.Sendto(fd, message, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}) != nil {
		return
	}
	answer := make([]byte, 4096)
	if n, _, err := syscall.Recvfrom(fd, answer, 0); err == nil && n >= 20 && bytes.Equal(answer[16:20], make([]byte, 4)) {
		report("netlink", "an interface can be changed")
	}
}
