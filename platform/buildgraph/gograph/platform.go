package gograph

import (
	"slices"
	"strings"
)

// platform decides which files a build takes. It is only asked whether a target
// has commands at all: hashes hold all files.
type platform struct {
	os, arch string
	cgo      bool
	tags     []string
}

func platformOf(o Options) platform {
	p := platform{os: o.variable("GOOS"), arch: o.variable("GOARCH"), cgo: o.variable("CGO_ENABLED") != "0"}
	if p.os == "" {
		p.os = "linux"
	}
	if p.arch == "" {
		p.arch = "amd64"
	}
	if tags, ok := o.flag("tags"); ok {
		p.tags = strings.Split(strings.Trim(tags, `"'`), ",")
	}
	return p
}

// takes reports whether a Go file is part of a build.
func (p platform) takes(name string, f *facts) bool {
	if f.cgo && !p.cgo || !p.fits(name) {
		return false
	}
	return f.expression == nil || f.expression.Eval(p.has)
}

// has reports whether a build tag is set. Release tags are: an old toolchain
// refuses the module by its go line.
func (p platform) has(tag string) bool {
	switch {
	case tag == p.os, tag == p.arch, tag == "gc":
		return true
	case tag == "cgo":
		return p.cgo
	case tag == "unix":
		return slices.Contains(unixSystems, p.os)
	case tag == "linux":
		return p.os == "android"
	case tag == "solaris":
		return p.os == "illumos"
	case tag == "darwin":
		return p.os == "ios"
	case strings.HasPrefix(tag, "go1."):
		return true
	}
	return slices.Contains(p.tags, tag)
}

// fits applies the rule of file names: name_GOOS, name_GOARCH, name_GOOS_GOARCH,
// each with or without _test.
func (p platform) fits(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	i := strings.Index(name, "_")
	if i < 0 {
		return true
	}
	words := strings.Split(strings.TrimSuffix(name[i:], "_test"), "_")
	n := len(words)
	if n >= 2 && slices.Contains(systems, words[n-2]) && slices.Contains(architectures, words[n-1]) {
		return words[n-1] == p.arch && p.has(words[n-2])
	}
	if slices.Contains(systems, words[n-1]) || slices.Contains(architectures, words[n-1]) {
		return words[n-1] == p.arch || p.has(words[n-1])
	}
	return true
}

// Names that Go reserves in file names and constraints.
var (
	systems = strings.Fields(`aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1
		windows zos`)
	unixSystems   = strings.Fields(`aix android darwin dragonfly freebsd hurd illumos ios linux netbsd openbsd solaris`)
	architectures = strings.Fields(`386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 mips64le mips64p32 mips64p32le
		ppc ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm`)
)
