// Command plot draws charts as SVG, from a description in JSON.
//
//	plot plots.json docs/performance
//
// draws each chart of the file into <name>.svg of the directory.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plot FILE DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(file, dir string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the charts: %w", err)
	}
	var charts []chart
	if err := json.Unmarshal(data, &charts); err != nil {
		return fmt.Errorf("read the charts: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the charts: %w", err)
	}
	for _, c := range charts {
		if err := c.draw(filepath.Join(dir, c.Name+".svg")); err != nil {
			return fmt.Errorf("draw %s: %w", c.Name, err)
		}
	}
	return nil
}
