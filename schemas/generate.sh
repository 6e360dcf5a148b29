#!/bin/sh
# Generates events/v1 from schemas/events/v1 and engine/snapshotv1 from schemas/snapshots/v1, and copies schemas/clickhouse to where the historian embeds it.
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
protoc -I schemas --plugin="$plugin" --go_out="$out" --go_opt=module=landfall.build schemas/events/v1/*.proto schemas/snapshots/v1/*.proto

generated="events/v1 engine/snapshotv1"

if [ "${1:-}" = --check ]; then
	for folder in $generated; do
		# Other files of the folder are written by hand.
		for file in "$out/$folder"/*.pb.go "$folder"/*.pb.go; do
			if ! cmp -s "$out/$folder/$(basename "$file")" "$folder/$(basename "$file")"; then
				echo "generate.sh: $folder/$(basename "$file") is not what the schemas generate; run schemas/generate.sh" >&2
				exit 1
			fi
		done
	done
	if ! diff -r -q schemas/clickhouse services/historian/warehouse/migrations; then
		echo "generate.sh: the historian's migrations are not those of schemas/clickhouse; run schemas/generate.sh" >&2
		exit 1
	fi
	exit 0
fi
rm -f services/historian/warehouse/migrations/*.sql
cp schemas/clickhouse/*.sql services/historian/warehouse/migrations/
# A file whose schema is gone must go too; unchanged files keep their times.
for folder in $generated; do
	mkdir -p "$folder"
	for file in "$folder"/*.pb.go; do
		[ -e "$out/$file" ] || rm -f "$file"
	done
	for file in "$out/$folder"/*.pb.go; do
		to=$folder/$(basename "$file")
		cmp -s "$file" "$to" || cp "$file" "$to"
	done
done
