package clickhouse

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// user owns the history. The server's own session logs in as default without a password, so default
// may open the ports and nothing else.
const user = "landfall"

const serverSettings = `<clickhouse>
	<logger>
		<level>warning</level>
		<console>0</console>
		<log>%[1]s/server.log</log>
		<size>10M</size>
		<count>2</count>
	</logger>
	<user_directories><users_xml><path>%[1]s/users.xml</path></users_xml></user_directories>
	<max_server_memory_usage>%[2]d</max_server_memory_usage>
	<mark_cache_size>67108864</mark_cache_size>
	<background_pool_size>2</background_pool_size>
	<max_connections>256</max_connections>
	<background_schedule_pool_size>8</background_schedule_pool_size>
</clickhouse>
`

const userSettings = `<clickhouse>
	<profiles><default/></profiles>
	<quotas><default/></quotas>
	<users>
		<default>
			<password></password>
			<networks><ip>127.0.0.1</ip></networks>
			<profile>default</profile>
			<quota>default</quota>
			<grants><query>GRANT SYSTEM LISTEN ON *.*</query></grants>
		</default>
		<` + user + `>
			<password_sha256_hex>%s</password_sha256_hex>
			<networks><ip>127.0.0.1</ip></networks>
			<profile>default</profile>
			<quota>default</quota>
		</` + user + `>
	</users>
</clickhouse>
`

// writeSettings writes the server's settings, with a password that only this user can read.
func writeSettings(dir string, memory int64) (password string, err error) {
	random := make([]byte, 24)
	rand.Read(random)
	password = hex.EncodeToString(random)
	sum := sha256.Sum256([]byte(password))
	return password, errors.Join(
		writeFile(filepath.Join(dir, "config.xml"), fmt.Sprintf(serverSettings, dir, memory)),
		writeFile(filepath.Join(dir, "users.xml"), fmt.Sprintf(userSettings, hex.EncodeToString(sum[:]))),
	)
}

func writeFile(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("embedded ClickHouse: %w", err)
	}
	return nil
}

// DSNFile is the file in a server's folder that holds its DSN, for tools of the same user. It is
// there while the server runs, and may be left behind by one that was killed.
const DSNFile = "dsn"

// ports returns two free ports of loopback, those of the last start if they are free.
func ports(dir string) (native, web string, err error) {
	path := filepath.Join(dir, "ports")
	var last []string
	if content, err := os.ReadFile(path); err == nil {
		last = strings.Fields(string(content))
	}
	taken := make([]string, 2)
	for i := range taken {
		listener, err := listenAgain(last, i)
		if err != nil {
			return "", "", fmt.Errorf("embedded ClickHouse: no free port: %w", err)
		}
		defer listener.Close() // both are held until both are known
		_, taken[i], _ = net.SplitHostPort(listener.Addr().String())
	}
	return taken[0], taken[1], writeFile(path, taken[0]+" "+taken[1]+"\n")
}

func listenAgain(last []string, i int) (net.Listener, error) {
	if len(last) == 2 {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", last[i])); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}
