package sandbox

// Overlay is a folder of layers: who is in the sandbox reads all of them, and writes to the uppermost alone. The system merges
// them (overlayfs).
type Overlay struct {
	// Path is where the folder is. There must be one, and no link on the way to it.
	Path string
	// Dir is the folder that the layers lie in. Their names are relative to it, and have none of the characters , : and \.
	Dir string
	// Lower are the layers that are only read, the uppermost first. There is at least one.
	Lower []string
	// Upper takes what is written. Work is an empty folder on the same disk, which the system needs.
	Upper, Work string
}
