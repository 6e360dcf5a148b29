package outbound

import (
	"net"
	"net/netip"
	"testing"
)

func TestWhatNoMachineReachesIsRefused(t *testing.T) {
	f := Filter{Deny: prefixes("10.20.0.0/16", "2001:db8:7::/48")}
	for text, refused := range map[string]bool{
		"127.0.0.1": true, "127.255.255.254": true, "0.0.0.0": true, "0.1.2.3": true, "255.255.255.255": true, "224.0.0.251": true, "239.1.2.3": true,
		"169.254.169.254": true, "168.63.129.16": true, "100.100.100.200": true, "198.18.73.1": true, "198.18.73.53": true, "10.20.3.4": true,
		"::": true, "::1": true, "::127.0.0.1": true, "::ffff:127.0.0.1": true, "::ffff:10.20.0.1": true, "fe80::1": true, "fe80::1%eth0": true,
		"ff02::fb": true, "fd00:ec2::254": true, "fd20:ce::254": true, "fd4c:616e:6466::1": true, "2001:db8:7::9": true, "2001:db8::1%eth0": true,
		"10.19.255.255": false, "10.21.0.0": false, "172.16.0.1": false, "192.168.1.1": false, "192.0.2.9": false, "100.64.0.1": false, "198.18.72.255": false,
		"198.18.74.0": false, "2001:db8:8::1": false, "fd00::1": false, "fc00::1": false, "::1:0:0:1": false,
	} {
		if got := f.lists(netip.MustParseAddr(text).Unmap()); got != refused {
			t.Errorf("%s is refused: %t, want %t", text, got, refused)
		}
	}
	if !f.Refuses(netip.Addr{}) {
		t.Error("no address at all is let through")
	}
}

func TestEachAddressOfThisMachineIsRefused(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil || len(own) == 0 {
		t.Fatalf("this machine has %d addresses, %v", len(own), err)
	}
	for _, a := range own {
		address, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		forms := []netip.Addr{address, netip.AddrFrom16(address.As16())}
		if four := address.Unmap(); four.Is4() {
			translated := netip.MustParseAddr("64:ff9b::").As16()
			copy(translated[12:], four.AsSlice())
			forms = append(forms, netip.AddrFrom16(translated))
		}
		for _, form := range forms {
			if !(Filter{}).Refuses(form) {
				t.Errorf("%s is not refused", form)
			}
		}
	}
}

func TestVariablesThatNameThisMachineAreTold(t *testing.T) {
	for value, want := range map[string]string{
		"http://127.0.0.1:3128": "127.0.0.1", "localhost:3128": "localhost", "https://proxy.golang.org,http://localhost:3000": "localhost",
		"http://user:word@[::1]:8080/simple": "::1", "http://169.254.169.254/latest": "169.254.169.254", "http://10.20.0.7:8081/npm": "10.20.0.7",
		"localhost": "", "/usr/local/bin:/usr/bin": "", "-mod=readonly": "", "off": "", "": "", "::1": "", "1": "", "localhost,127.0.0.1,.example.com": "",
	} {
		if got := (Filter{Deny: prefixes("10.20.0.0/16")}).Unreachable(value); got != want {
			t.Errorf("%q names %q, want %q", value, got, want)
		}
	}
}

func TestABrokerThatStepsReachIsTold(t *testing.T) {
	f := Filter{Deny: prefixes("10.20.0.0/16")}
	for want, brokers := range map[string][]string{
		"": {"10.20.0.7:9092", "127.0.0.1:9092", "localhost:9092", "[::1]:9092", "no port"}, "10.21.0.7:9092": {"10.20.0.7:9092", "10.21.0.7:9092"}, "[2001:db8::1]:9092": {"[2001:db8::1]:9092"},
	} {
		if got := f.Reached(t.Context(), brokers); got != want {
			t.Errorf("of %q steps reach %q, want %q", brokers, got, want)
		}
	}
}
