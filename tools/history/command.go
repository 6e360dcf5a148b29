// Package history is `landfall history`: it queries the ClickHouse that the historian fills, and prints the answer as a table or as JSON.
package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/platform/configuration"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/clickhouse"
)

// Place is where a command finds the history.
type Place struct {
	// DSN is the one given. If it is empty, Find takes that of the configuration, else of the environment, else of the embedded server,
	// which landfall up writes to the data directory.
	DSN string
	// Data is the data directory, the configuration's if empty.
	Data          string
	Configuration string
}

// Load reads a configuration file.
type Load func(file string) (*configuration.Configuration, error)

const fromEnvironment = "LANDFALL_CLICKHOUSE_DSN"

// Find returns the DSN of the history. The error says where it was looked for.
func (p Place) Find(load Load) (string, error) {
	if p.DSN != "" {
		return p.DSN, nil
	}
	data := p.Data
	if config, err := load(p.Configuration); err == nil {
		if config.ClickHouse.DSN != "" && data == "" {
			return config.ClickHouse.DSN, nil
		}
		data = cmp.Or(data, config.Data)
	} else if _, missing := os.Stat(p.Configuration); missing == nil {
		return "", err
	}
	if dsn := os.Getenv(fromEnvironment); dsn != "" && p.Data == "" {
		return dsn, nil
	}
	file := filepath.Join(cmp.Or(data, ".landfall"), "clickhouse", clickhouse.DSNFile)
	dsn, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("no history is known here: there is no %s (landfall up writes it while its embedded ClickHouse runs), and neither --clickhouse, %s nor clickhouse.dsn of %s names one",
			file, fromEnvironment, p.Configuration)
	}
	return strings.TrimSpace(string(dsn)), nil
}

// maxRows bounds the rows that one query prints.
const maxRows = 10_000

// answer is the result of a query.
type answer struct {
	columns []string
	rows    [][]any
	// more is set if there were more than maxRows.
	more bool
}

// ask runs one query, read-only: a typing error must not destroy the history.
func ask(ctx context.Context, dsn, query string) (answer, error) {
	connection, ctx, err := connect(ctx, dsn)
	if err != nil {
		return answer{}, err
	}
	defer connection.Close()
	found, err := connection.Query(ctx, query)
	if err != nil {
		return answer{}, at(dsn, err)
	}
	defer found.Close()
	a := answer{columns: found.Columns()}
	types := found.ColumnTypes()
	for found.Next() {
		if len(a.rows) == maxRows {
			a.more = true
			break
		}
		cells := make([]any, len(types))
		for i, t := range types {
			cells[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := found.Scan(cells...); err != nil {
			return a, err
		}
		for i := range cells {
			cells[i] = reflect.ValueOf(cells[i]).Elem().Interface()
		}
		a.rows = append(a.rows, cells)
	}
	return a, found.Err()
}

func (a answer) printTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(a.columns, "\t"))
	for _, row := range a.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = client.Plain(text(cell))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func (a answer) printJSON(out io.Writer) error {
	list := make([]map[string]any, 0, len(a.rows))
	for _, row := range a.rows {
		object := map[string]any{}
		for i, cell := range row {
			object[a.columns[i]] = cell
		}
		list = append(list, object)
	}
	return json.NewEncoder(out).Encode(list)
}

// text formats a value: times in UTC, null as an empty text.
func text(cell any) string {
	v := reflect.ValueOf(cell)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return ""
	}
	if t, is := v.Interface().(time.Time); is {
		if t.Equal(t.Truncate(24 * time.Hour)) {
			return t.UTC().Format(time.DateOnly)
		}
		return t.UTC().Format("2006-01-02 15:04:05.000")
	}
	return fmt.Sprint(v.Interface())
}

// tablesQuery lists the tables; it is run if no query is given.
const tablesQuery = `SELECT name, if(engine = 'View', 'view', 'table') AS kind, total_rows AS rows,
	arrayStringConcat(groupArray(column), ', ') AS columns
FROM (SELECT t.name AS name, t.engine AS engine, t.total_rows AS total_rows, c.name AS column
	FROM system.tables AS t INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
	WHERE t.database = currentDatabase() ORDER BY c.position)
GROUP BY name, engine, rows ORDER BY kind DESC, name`

// Command is `landfall history`.
func Command(load Load) *cobra.Command {
	var p Place
	var asJSON bool
	c := &cobra.Command{
		Use:   "history [QUERY]",
		Short: "Ask the history in ClickHouse, in SQL; without a question, what there is to ask",
		Example: "  landfall history 'SELECT * FROM waits_by_week'\n" +
			"  landfall history --json \"SELECT change, outcome FROM change_outcomes WHERE team = 'shop'\"",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dsn, err := p.Find(load)
			if err != nil {
				return err
			}
			query := tablesQuery
			if len(args) == 1 {
				query = args[0]
			}
			found, err := ask(cmd.Context(), dsn, query)
			if err != nil {
				return err
			}
			if asJSON {
				err = found.printJSON(cmd.OutOrStdout())
			} else {
				err = found.printTable(cmd.OutOrStdout())
			}
			if err == nil && found.more {
				fmt.Fprintf(cmd.ErrOrStderr(), "only the first %d rows are shown; add a LIMIT or group them\n", maxRows)
			}
			return err
		},
	}
	c.Flags().StringVar(&p.DSN, "clickhouse", "", "DSN of the server (default: the configuration's, $"+fromEnvironment+", or that of landfall up)")
	c.Flags().StringVar(&p.Data, "data", "", "data directory of landfall up (default: the configuration's)")
	c.Flags().StringVar(&p.Configuration, "config", "landfall.config.yaml", "configuration file")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON value")
	return c
}
