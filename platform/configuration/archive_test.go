package configuration

import (
	"strings"
	"testing"
)

func TestAnArchiveIsAFolderOrABucket(t *testing.T) {
	parse := func(archive string) string { return problemsBeside(t, "broker: {archive: {"+archive+"}}") }
	for _, right := range []string{
		"url: /srv/landfall/archive, keep: 720h",
		"url: s3://shop",
		"url: s3://shop.log/land/fall, user: ada, password: {environment: KEY}, ca: /etc/ca.pem, s3: {endpoint: \"https://s3.example.com:9000/\", region: eu-west-1, addressing: path}",
	} {
		if problems := parse(right); problems != "" {
			t.Errorf("%s: %s", right, problems)
		}
	}
	for wrong, want := range map[string]string{
		"url: archive":                                   "is no absolute path of a folder and no address of a bucket",
		"url: https://s3.example.com/shop":               "is no absolute path of a folder and no address of a bucket",
		"url: s3://Shop":                                 "does not name a bucket",
		"url: \"s3://ada:hunter2@shop\"":                 "does not name a bucket",
		"url: s3://shop, user: ada":                      "says in 0 ways where it is",
		"url: s3://shop, s3: {endpoint: s3.example.com}": "is not the address of a service",
		"url: /srv/archive, s3: {region: eu-west-1}":     "is for a bucket",
		"url: s3://shop, ca: ca.pem":                     "must be an absolute path",
		"url: /srv/archive, keep: 1m":                    "must be at least 1h",
	} {
		if problems := parse(wrong); !strings.Contains(problems, want) || strings.Contains(problems, "hunter2") {
			t.Errorf("%s: %q, want %q", wrong, problems, want)
		}
	}
}
