package measure

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"tkestack.io/tapp/test/bench/record"
)

// cores is what go test adds to the names of benchmarks.
var cores = regexp.MustCompile(`-\d+$`)

// Micro reads what go test -bench -benchmem has printed.
func Micro(path string) ([]record.Micro, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read benchmarks: %w", err)
	}
	var out []record.Micro
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		m := record.Micro{Name: cores.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("read benchmarks: %q: %w", line, err)
			}
			switch fields[i+1] {
			case "ns/op":
				m.Nanos = v
			case "B/op":
				m.Bytes = v
			case "allocs/op":
				m.Allocs = v
			}
		}
		out = append(out, m)
	}
	return out, nil
}
