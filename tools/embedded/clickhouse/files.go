package clickhouse

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// user owns the history. The server's own session logs in as default without a password, so default
// may open the ports and nothing else.
const user = "landfall"

// Analyst is the user who may read the history and do nothing else. AnalystFile is the file in a server's folder that holds the
// password, which stays the same from start to start.
const (
	Analyst     = "analyst"
	AnalystFile = "analyst"
)

// databaseName is the database of the history.
const databaseName = "landfall"

const serverSettings = `<clickhouse>
	<logger>
		<level>warning</level>
		<console>0</console>
		<log>%[1]s/log/server.log</log>
		<size>10M</size>
		<count>2</count>
	</logger>
	<user_directories><users_xml><path>%[1]s/users.xml</path></users_xml></user_directories>
	<max_server_memory_usage>%[2]d</max_server_memory_usage>
	<mark_cache_size>67108864</mark_cache_size>
	<background_pool_size>2</background_pool_size>
	<max_connections>256</max_connections>
	<background_schedule_pool_size>8</background_schedule_pool_size>
	<access_control_improvements>
		<select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
		<settings_constraints_replace_previous>true</settings_constraints_replace_previous>
	</access_control_improvements>
</clickhouse>
`

const userSettings = `<clickhouse>
	<profiles>
		<default/>
		<` + Analyst + `>
			<readonly>1</readonly>
			<allow_ddl>0</allow_ddl>
			<allow_introspection_functions>0</allow_introspection_functions>
			<max_memory_usage>%[3]d</max_memory_usage>
			<max_memory_usage_for_user>%[3]d</max_memory_usage_for_user>
			<max_temporary_data_on_disk_size_for_user>4294967296</max_temporary_data_on_disk_size_for_user>
			<max_execution_time>60</max_execution_time>
			<max_concurrent_queries_for_user>16</max_concurrent_queries_for_user>
			<constraints>
				<max_execution_time><min>1</min><max>60</max><changeable_in_readonly/></max_execution_time>
				<max_threads><changeable_in_readonly/></max_threads>
				<max_block_size><min>1</min><max>65536</max><changeable_in_readonly/></max_block_size>
				<max_result_rows><changeable_in_readonly/></max_result_rows>
				<max_result_bytes><changeable_in_readonly/></max_result_bytes>
				<result_overflow_mode><changeable_in_readonly/></result_overflow_mode>
				<extremes><changeable_in_readonly/></extremes>
				<session_timezone><changeable_in_readonly/></session_timezone>
				<output_format_json_quote_64bit_integers><changeable_in_readonly/></output_format_json_quote_64bit_integers>
			</constraints>
		</` + Analyst + `>
	</profiles>
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
			<password_sha256_hex>%[1]s</password_sha256_hex>
			<networks><ip>127.0.0.1</ip></networks>
			<profile>default</profile>
			<quota>default</quota>
		</` + user + `>
%[2]s	</users>
</clickhouse>
`

// analystUser is in the settings where there is an analyst.
const analystUser = `		<` + Analyst + `>
			<password_sha256_hex>%s</password_sha256_hex>
			<networks><ip>127.0.0.1</ip></networks>
			<profile>` + Analyst + `</profile>
			<quota>default</quota>
			<grants><query>GRANT SELECT ON ` + databaseName + `.*</query></grants>
		</` + Analyst + `>
`

// writeSettings writes the server's settings, with a password that only this user can read.
func writeSettings(dir string, memory int64, analyst bool) (password string, err error) {
	analysts := ""
	if analyst {
		theirs, err := analystPassword(dir)
		if err != nil {
			return "", err
		}
		analysts = fmt.Sprintf(analystUser, sum(theirs))
	}
	password = newPassword()
	return password, errors.Join(
		os.MkdirAll(filepath.Join(dir, "data"), 0o700), os.MkdirAll(filepath.Join(dir, "log"), 0o700),
		writeFile(filepath.Join(dir, "config.xml"), fmt.Sprintf(serverSettings, dir, memory)),
		writeFile(filepath.Join(dir, "users.xml"), fmt.Sprintf(userSettings, sum(password), analysts, memory/2)),
	)
}

func newPassword() string {
	random := make([]byte, 24)
	rand.Read(random)
	return hex.EncodeToString(random)
}

func sum(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// analystPassword returns the analyst's password. It is made once; whoever removes the file gets another one at the next start.
func analystPassword(dir string) (string, error) {
	path := filepath.Join(dir, AnalystFile)
	content, err := os.ReadFile(path)
	if password := strings.TrimSpace(string(content)); password != "" {
		return password, os.Chmod(path, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("embedded ClickHouse: %w", err)
	}
	password := newPassword()
	return password, errors.Join(writeFile(path, password+"\n"), os.Chmod(path, 0o600))
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
