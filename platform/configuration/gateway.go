package configuration

import (
	"fmt"
	"net/netip"
	"strings"
)

// ProxyNetworks returns Proxies, which is sound.
func (g Gateway) ProxyNetworks() []netip.Prefix { return networks(g.Proxies) }

// listenExample is what people read beside an address that is none.
const listenExample = "127.0.0.1:7878, or :7878 for all interfaces"

func checkGateway(g Gateway, at *path, f *findings) {
	if listen := at.child("listen"); f.sound(listen) {
		if message := checkAddress(g.Listen, true); message != "" {
			f.add(listen, message, "as in "+listenExample)
		}
	}
	for i, host := range g.Hosts {
		if at := at.child("hosts").index(i); f.sound(at) && !isHostName(host) {
			f.add(at, fmt.Sprintf("is %s, must be the name of a host", quote(host)), "as in landfall.example.com, without scheme and port")
		}
	}
	url := at.child("url")
	if f.sound(url) && g.URL != "" && !isWebAddress(g.URL) {
		f.add(url, fmt.Sprintf("is %s, must be the address of a site", quote(g.URL)), "as in https://landfall.example.com, without a slash at its end, a query or a user")
	}
	for i, text := range g.Proxies {
		checkNetwork(text, at.child("proxies").index(i), f)
	}
	tls := at.child("tls")
	if !f.sound(tls.child("certificate"), tls.child("key")) {
		return
	}
	switch {
	case (g.TLS.Certificate == "") != (g.TLS.Key == ""):
		missing := "key"
		if g.TLS.Certificate == "" {
			missing = "certificate"
		}
		f.add(tls.child(missing), "is not given", "give certificate and key, or neither")
	case g.TLS.On() && f.sound(url) && !strings.HasPrefix(g.URL, "https://"):
		f.add(url, fmt.Sprintf("is %s, must begin with https:// where gateway.tls is given", quote(g.URL)), "give the name that the certificate is of, as in https://landfall.example.com")
	}
}
