package configuration

import (
	"fmt"
	"path/filepath"
)

// Values of Steps.Isolation.
const (
	// IsolationRequired refuses to run steps on a system that cannot isolate them.
	IsolationRequired = "required"
	// IsolationBest isolates them as well as the system can.
	IsolationBest = "best"
	// IsolationOff lets steps do what the service's user may do.
	IsolationOff = "off"
)

// Values of Steps.Network.
const (
	// NetworkNone lets the processes of a step reach each other.
	NetworkNone = "none"
	// NetworkHost lets them reach what the machine reaches, itself among it.
	NetworkHost = "host"
)

// isolation is a part of a queue's hash. A queue without these has the hash that it had before there were any.
func (w fieldHash) isolation(s Steps) {
	if s.Isolation != IsolationBest {
		w.text("steps.isolation", s.Isolation)
	}
	if s.Network != NetworkHost {
		w.text("steps.network", s.Network)
	}
	if len(s.Read) > 0 {
		w.list("steps.read", s.Read)
	}
	if len(s.Write) > 0 {
		w.list("steps.write", s.Write)
	}
}

// wholeFolders are those that a sandbox has its own of.
var wholeFolders = map[string]bool{"/": true, "/dev": true, "/proc": true, "/sys": true, "/run": true, "/etc": true}

func checkIsolation(s Steps, at *path, f *findings) {
	for field, paths := range map[string][]string{"read": s.Read, "write": s.Write} {
		for i, path := range paths {
			place := at.child(field).index(i)
			switch {
			case !f.sound(place):
			case !filepath.IsAbs(path) || filepath.Clean(path) != path:
				f.add(place, fmt.Sprintf("is %s, must be an absolute path", quote(path)), "as in /opt/android-sdk, without . and .. and a slash at the end")
			case wholeFolders[path]:
				f.add(place, fmt.Sprintf("is %s, which steps have their own of", quote(path)), "name what they need of it")
			}
		}
	}
}
