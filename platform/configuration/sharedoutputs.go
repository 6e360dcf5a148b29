package configuration

import "time"

// SharedOutputs is a store in which several builders keep the outputs of steps, besides the folder that each machine has.
type SharedOutputs struct {
	// URL is that of a Bazel remote cache by HTTP. Empty: there is none.
	URL string `yaml:"url" maximum:"2000" pattern:"line"`
	// Seal says where the key is with which builders seal what they keep there, at least 16 bytes. Whoever else can write there cannot
	// forge anything without it.
	Seal SecretPlace `yaml:"seal"`
	// User and Password are what the store asks for. No user: nothing.
	User     string      `yaml:"user" maximum:"200" pattern:"line"`
	Password SecretPlace `yaml:"password"`
	// Timeout is how long the store may take for one target. One that takes longer, or fails, is left alone for a while.
	Timeout time.Duration `yaml:"timeout" minimum:"1s" maximum:"10m"`
}

func checkSharedOutputs(o SharedOutputs, at *path, f *findings) {
	if !f.sound(at) || o.URL == "" {
		return
	}
	// The URL is not repeated: there may be a token in it.
	if !isEndpoint(o.URL) {
		f.add(at.child("url"), "is not the address of a store", "as in https://cache.example.com/landfall")
	}
	checkSecretPlace(o.Seal, at.child("seal"), f)
	if o.User != "" {
		checkSecretPlace(o.Password, at.child("password"), f)
	}
}
