// Package sandbox holds processes that run code which nobody has approved for this machine: the steps of
// changes. On Linux such a process is in namespaces of its own (mounts, processes, IPC, host name, network; users too, unless
// the service runs as root), with a root folder of read-only system folders and of those that it is given. It has no
// privileges that reach outside, and cannot gain any.
//
// A program calls [Spec.Attributes] when it starts a process of its own binary, which calls [Spec.Enter], and then
// [Restrict] on the thread that starts the foreign program. [Spec.Wrap] does all of it for a command.
package sandbox

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnavailable is wrapped by errors about what this system cannot give. Nothing was run.
var ErrUnavailable = errors.New("not available on this system")

// Spec is what a sandbox lets its processes see, and how they reach the network. Paths are absolute. Where a path leads
// through symbolic links it is there under both names.
type Spec struct {
	// Read are folders and files that can be read, besides those of [SystemPaths]. What is not there is left out. A
	// device below /dev can be used as its permissions allow.
	Read []string
	// Write are folders and files that can be read and written. They must be there.
	Write []string
	// Overlays are folders of layers, to read and write.
	Overlays []Overlay
	// Hide are folders that are empty inside, and files too, should they lie below a folder that is given. What of Read
	// and Write lies below them is there all the same.
	Hide []string
	// Network is what they reach over it. Empty is [None].
	Network Network
	// Deny are networks that are not reached with [Outbound], besides this machine.
	Deny []netip.Prefix
	// Uplink is the descriptor of a socket with [Outbound]: what carries the packets is given the link there, and answers
	// with [LinkCarried]. IPv6 gives the link an address of IPv6 too.
	Uplink int
	IPv6   bool
	// Processes bounds how many processes and threads there are at once, where the system can (Linux 6.14); 0 is no bound.
	Processes int
	// Tmp is the folder that /tmp and /var/tmp are inside. Empty: one in memory.
	Tmp string
}

// Network is what the processes of a sandbox reach over the network.
type Network string

// The networks.
const (
	// None is a loopback of their own.
	None Network = "none"
	// Outbound is what this machine reaches, but not the machine itself.
	Outbound Network = "outbound"
	// Host is all that this machine reaches, its own services among it.
	Host Network = "host"
)

// Networks are all of them.
var Networks = []Network{None, Outbound, Host}

// systemPaths are folders of every system that hold programs and no secrets.
var systemPaths = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/sys/devices/system/cpu"}

// settingPaths are what is given of /etc: what programs need to run, resolve names, and check certificates.
var settingPaths = []string{
	"alternatives", "bash.bashrc", "bazel", "bazel.bazelrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
	"environment", "fonts", "gai.conf", "gitconfig", "group", "host.conf", "hosts", "inputrc", "java", "java-8-openjdk",
	"java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"locale.alias", "locale.conf", "localtime", "magic", "magic.mime", "maven", "mime.types", "networks", "nsswitch.conf", "npmrc",
	"os-release", "passwd", "perl", "pip.conf", "pki", "profile", "profile.d", "protocols", "python3", "redhat-release", "resolv.conf",
	"rpc", "services", "shells", "ssl", "terminfo", "timezone", "xattr.conf",
}

// settings is the folder that settingPaths are in, but in tests.
var settings = "/etc"

// secretPaths are private keys below what is given of /etc.
var secretPaths = []string{"/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/private", "/etc/pki/entitlement", "/etc/pki/rpm-gpg/private"}

// SystemPaths returns the folders and files of the system that every sandbox has, to read.
func SystemPaths() []string {
	list := slices.Clone(systemPaths)
	for _, name := range settingPaths {
		list = append(list, filepath.Join(settings, name))
	}
	return list
}

// privateSettings returns what of the given settings not everybody on this machine may read. A step of a service that runs as root could:
// the password of a registry in a pip.conf, say.
func privateSettings() (list []string) {
	for _, name := range settingPaths {
		top := filepath.Join(settings, name)
		if path, err := filepath.EvalSymlinks(top); err == nil {
			filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.Type()&fs.ModeSymlink != 0 {
					return nil // gone, or leads to what is looked at by itself
				}
				info, err := e.Info()
				if err != nil {
					return nil
				}
				if info.Mode()&0o004 == 0 || e.IsDir() && info.Mode()&0o001 == 0 {
					if list = append(list, path); e.IsDir() {
						return fs.SkipDir
					}
				}
				return nil
			})
		}
	}
	return list
}

// packages is a folder that holds Node's packages and nothing else.
const packages = "/node_modules/"

// ToolPaths returns what the folders of a PATH need to be readable for the programs in them to run: the folders themselves,
// where one is the bin of an installation (a toolchain, with lib beside bin) the whole of it, and the same for the programs
// elsewhere that links in them lead to, or the node_modules that such a program is in. Home folders, and folders whose names begin
// with a dot, are not taken for installations: credentials are kept there.
func ToolPaths(path string, home string) []string {
	var list []string
	add := func(path string) {
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue
		}
		folder = filepath.Clean(folder)
		add(folder)
		if above := installation(folder, home); above != "" {
			add(above)
		}
		if slices.ContainsFunc(systemPaths, func(system string) bool { return within(folder, system) }) {
			continue // Links there lead to other folders of the system.
		}
		entries, _ := os.ReadDir(folder)
		for _, e := range entries {
			if e.Type() != fs.ModeSymlink {
				continue
			}
			program, err := filepath.EvalSymlinks(filepath.Join(folder, e.Name()))
			if err != nil || within(program, folder) {
				continue
			}
			if above := installation(filepath.Dir(program), home); above != "" {
				add(above)
			} else if before, _, is := strings.Cut(program, packages); is {
				add(before + strings.TrimSuffix(packages, "/")) // A program of Node's reads its package, and those that this one needs.
			} else if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() {
				add(program)
			}
		}
	}
	return list
}

// installation returns the folder above a bin with lib beside it, "" if there is none.
func installation(bin, home string) string {
	above, name := filepath.Split(bin)
	above = filepath.Clean(above)
	if name != "bin" || above == "/" || strings.HasPrefix(filepath.Base(above), ".") || within(home, above) {
		return ""
	}
	if info, err := os.Stat(filepath.Join(above, "lib")); err != nil || !info.IsDir() {
		return ""
	}
	return above
}

// within reports whether a path is a folder or lies below it.
func within(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

// Sees reports whether a path is among what a sandbox has: whether it is there, and under which other names, aside.
func Sees(s Spec, path string) bool {
	path = filepath.Clean(path)
	seen, best := false, -1
	for _, of := range []struct {
		paths []string
		sees  bool
	}{{s.Hide, false}, {secretPaths, false}, {SystemPaths(), true}, {s.Read, true}, {s.Write, true}} {
		for _, p := range of.paths {
			if p = filepath.Clean(p); within(path, p) && len(p) >= best {
				seen, best = of.sees, len(p)
			}
		}
	}
	return seen || within(path, "/tmp") && best < len("/tmp")
}
