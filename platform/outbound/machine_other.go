//go:build !linux

package outbound

import "net/netip"

func ofThisMachine(address netip.Addr) bool { return ofInterface(address) }
