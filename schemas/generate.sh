#!/bin/sh
# Generates events/v1 from schemas/events/v1, and copies schemas/clickhouse to where the historian embeds it.
# With --check it changes nothing and fails if what is there is not what would be generated.
set -eu
cd "$(dirname "$0")/.."

# Versions are pinned so that everyone generates the same files: protoc's stands in them too.
plugin_version=v1.36.12
protoc_version=3.21.12

if ! command -v protoc >/dev/null; then
	echo "generate.sh: protoc is missing; install it (Debian: apt-get install protobuf-compiler)" >&2
	exit 1
fi
found=$(protoc --version | cut -d' ' -f2)
if [ "$found" != "$protoc_version" ]; then
	echo "generate.sh: protoc is $found, the generated files are made with $protoc_version" >&2
	exit 1
fi

plugin=.tools/protoc-gen-go
if [ ! -x "$plugin" ] || [ "$($plugin --version | cut -d' ' -f2)" != "$plugin_version" ]; then
	mkdir -p .tools
	GOBIN="$PWD/.tools" GOWORK=off go install "google.golang.org/protobuf/cmd/protoc-gen-go@$plugin_version"
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT INT TERM
protoc -I schemas --plugin="$plugin" --go_out="$out" --go_opt=module=landfall.build schemas/events/v1/*.proto

if [ "${1:-}" = --check ]; then
	if ! diff -r -q "$out/events/v1" events/v1; then
		echo "generate.sh: events/v1 is not what schemas/events/v1 generates; run schemas/generate.sh" >&2
		exit 1
	fi
	if ! diff -r -q schemas/clickhouse services/historian/warehouse/migrations; then
		echo "generate.sh: the historian's migrations are not those of schemas/clickhouse; run schemas/generate.sh" >&2
		exit 1
	fi
	exit 0
fi
rm -f services/historian/warehouse/migrations/*.sql
cp schemas/clickhouse/*.sql services/historian/warehouse/migrations/
# A file whose schema is gone must go too; unchanged files keep their times.
for file in events/v1/*.pb.go; do
	[ -e "$out/$file" ] || rm -f "$file"
done
for file in "$out"/events/v1/*.pb.go; do
	to=events/v1/$(basename "$file")
	cmp -s "$file" "$to" || cp "$file" "$to"
done
