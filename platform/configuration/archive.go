package configuration

import (
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Archive is where the old part of the log is, once `landfall archive` has moved it there.
type Archive struct {
	// URL is a folder's absolute path, or a bucket (s3://bucket/prefix). Empty: the brokers have the whole log.
	URL string `yaml:"url" maximum:"2000" pattern:"line"`
	// User and Password are the id and the secret of the bucket's access key. No user: what AWS's variables and its file of credentials
	// say.
	User     string      `yaml:"user" maximum:"200" pattern:"line"`
	Password SecretPlace `yaml:"password"`
	// CA is a file with the certificates of the authorities that may sign the service's. Empty: those of the system.
	CA string       `yaml:"ca" maximum:"4096" pattern:"line"`
	S3 SharedBucket `yaml:"s3"`
	// Keep is how long the brokers have a record at least.
	Keep time.Duration `yaml:"keep" minimum:"1h" maximum:"87600h"`
}

// DefaultArchive is none.
var DefaultArchive = Archive{S3: defaultSharedBucket, Keep: 90 * 24 * time.Hour}

// IsBucket reports whether the archive is in a bucket.
func (a Archive) IsBucket() bool { return strings.HasPrefix(a.URL, "s3:") }

// Problem says what is wrong with the URL, "" if nothing is. The URL is not repeated: there may be a secret in it.
func (a Archive) Problem() string {
	address, err := url.Parse(a.URL)
	switch {
	case a.URL == "":
	case !a.IsBucket() && !filepath.IsAbs(a.URL):
		return "is no absolute path of a folder and no address of a bucket"
	case a.IsBucket() && (err != nil || !bucketName.MatchString(address.Host) || address.User != nil || address.RawQuery != "" || address.Fragment != ""):
		return "does not name a bucket"
	}
	return ""
}

func checkArchive(a Archive, at *path, f *findings) {
	if !f.sound(at) || a.URL == "" {
		return
	}
	if problem := a.Problem(); problem != "" {
		f.add(at.child("url"), problem, "as in /srv/landfall/archive, or s3://bucket/landfall with the service's address in s3.endpoint")
	}
	if a.User != "" {
		checkSecretPlace(a.Password, at.child("password"), f)
	}
	checkAuthorities(a.CA, at.child("ca"), f)
	checkSharedBucket(a.S3, a.IsBucket(), at.child("s3"), f)
}
