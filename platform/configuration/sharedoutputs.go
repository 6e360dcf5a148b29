package configuration

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SharedOutputs is a store in which several builders keep the outputs of steps, besides the folder that each machine has.
type SharedOutputs struct {
	// URL is that of a Bazel remote cache by HTTP (https, http) or by gRPC (grpcs, grpc; its path is the instance's name), or a bucket
	// (s3://bucket/prefix). Empty: there is none.
	URL string `yaml:"url" maximum:"2000" pattern:"line"`
	// Seal says where the key is with which builders seal what they keep there, at least 16 bytes. Whoever else can write there cannot
	// forge anything without it.
	Seal SecretPlace `yaml:"seal"`
	// User and Password are what the store asks for, and of a bucket the id and the secret of the access key. No user: nothing; for a
	// bucket what AWS's variables and its file of credentials say.
	User     string      `yaml:"user" maximum:"200" pattern:"line"`
	Password SecretPlace `yaml:"password"`
	// Token says where the value of TokenHeader is, which is sent by gRPC, as a bearer's if the header is authorization.
	Token       SecretPlace `yaml:"token"`
	TokenHeader string      `yaml:"token_header" maximum:"100" pattern:"line"`
	// CA is a file with the certificates of the authorities that may sign the store's. Empty: those of the system.
	CA string       `yaml:"ca" maximum:"4096" pattern:"line"`
	S3 SharedBucket `yaml:"s3"`
	// Timeout is how long the store may take for one target. One that takes longer, or fails, is left alone for a while.
	Timeout time.Duration `yaml:"timeout" minimum:"1s" maximum:"10m"`
}

// SharedBucket is where a bucket is.
type SharedBucket struct {
	// Endpoint is the address of the service. Empty: AWS's of the region.
	Endpoint string `yaml:"endpoint" maximum:"2000" pattern:"line"`
	Region   string `yaml:"region" maximum:"100" pattern:"line"`
	// Addressing says where the bucket's name stands: in the path, in the host's name (virtual), or where the service is known to take it.
	Addressing string `yaml:"addressing" enum:"auto,path,virtual"`
}

// Values of SharedBucket.Addressing.
const (
	AddressingAuto    = "auto"
	AddressingPath    = "path"
	AddressingVirtual = "virtual"
)

// Protocols of SharedOutputs.
const (
	OutputsByHTTP = "http"
	OutputsByGRPC = "grpc"
	OutputsByS3   = "s3"
)

var (
	defaultSharedBucket  = SharedBucket{Region: "us-east-1", Addressing: AddressingAuto}
	defaultSharedOutputs = SharedOutputs{TokenHeader: "authorization", S3: defaultSharedBucket, Timeout: 30 * time.Second}
)

// Protocol returns the one by which the store is asked, "" if there is none.
func (o SharedOutputs) Protocol() string {
	scheme, _, _ := strings.Cut(o.URL, ":")
	switch scheme {
	case "http", "https":
		return OutputsByHTTP
	case "grpc", "grpcs":
		return OutputsByGRPC
	case "s3":
		return OutputsByS3
	}
	return ""
}

// SecretFiles returns the files that have the store's secrets.
func (o SharedOutputs) SecretFiles() (files []string) {
	for _, place := range []SecretPlace{o.Seal, o.Password, o.Token} {
		if place.File != "" {
			files = append(files, place.File)
		}
	}
	return files
}

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	headerName = regexp.MustCompile(`^[a-z0-9_.-]+$`)
)

func checkSharedOutputs(o SharedOutputs, at *path, f *findings) {
	if !f.sound(at) || o.URL == "" {
		return
	}
	// The URL is not repeated: there may be a token in it.
	address, err := url.Parse(o.URL)
	switch protocol := o.Protocol(); {
	case err != nil || protocol == "" || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "":
		f.add(at.child("url"), "is not the address of a store", "as in https://cache.example.com/landfall, grpcs://cache.example.com/landfall or s3://bucket/landfall; user and password have fields of their own")
	case protocol == OutputsByS3 && !bucketName.MatchString(address.Host):
		f.add(at.child("url"), "does not name a bucket", "as in s3://bucket/landfall, with the service's address in s3.endpoint")
	}
	checkSecretPlace(o.Seal, at.child("seal"), f)
	if o.User != "" {
		checkSecretPlace(o.Password, at.child("password"), f)
	}
	if o.Token.Given() {
		checkSecretPlace(o.Token, at.child("token"), f)
		switch {
		case o.Protocol() != OutputsByGRPC:
			f.add(at.child("token"), "is sent by gRPC alone", "give user and password, or a url of grpcs")
		case o.User != "":
			f.add(at.child("token"), "stands beside a user", "give one of the two")
		}
	}
	if where := at.child("token_header"); f.sound(where) && (!headerName.MatchString(o.TokenHeader) || slices.Contains([]string{"te", "host", "content-type", "user-agent"}, o.TokenHeader) || strings.HasPrefix(o.TokenHeader, "grpc-") || strings.HasSuffix(o.TokenHeader, "-bin")) {
		f.add(where, fmt.Sprintf("is %s, must be the name of a header, in small letters", quote(o.TokenHeader)), "as in authorization or x-api-key")
	}
	checkAuthorities(o.CA, at.child("ca"), f)
	checkSharedBucket(o.S3, o.Protocol() == OutputsByS3, at.child("s3"), f)
}

func checkAuthorities(file string, at *path, f *findings) {
	if file != "" && !filepath.IsAbs(file) {
		f.add(at, fmt.Sprintf("is %s, must be an absolute path", quote(file)), "as in /etc/landfall/ca.pem")
	}
}

// checkSharedBucket checks where a bucket is; isBucket says whether there is one.
func checkSharedBucket(b SharedBucket, isBucket bool, at *path, f *findings) {
	if f.sound(at) && b != defaultSharedBucket && !isBucket {
		f.add(at, "is for a bucket, and url names none", "take it out, or give a url as in s3://bucket/landfall")
	}
	if where := at.child("endpoint"); f.sound(where) && b.Endpoint != "" {
		if e, err := url.Parse(b.Endpoint); !isEndpoint(b.Endpoint) || err != nil || strings.Trim(e.Path, "/") != "" || e.RawQuery != "" {
			f.add(where, "is not the address of a service", "as in https://s3.example.com, without the bucket")
		}
	}
}
