package measure

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// Sizes are the bytes of request bodies that the API server has read, by
// "<verb> <resource>": what was on the wire, whoever sent it. Subresources count
// with their resource.
type Sizes map[string]int64

// readSizes asks the API server for its counters.
func readSizes(ctx context.Context, api rest.Interface) (Sizes, error) {
	data, err := api.Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	sizes := Sizes{}
	for line := range bytes.Lines(data) {
		labels, ok := strings.CutPrefix(string(line), "apiserver_request_body_size_bytes_sum{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		of := map[string]string{}
		for _, label := range strings.Split(labels, ",") {
			name, quoted, _ := strings.Cut(label, "=")
			of[name] = strings.Trim(quoted, `"`)
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("reading the API server's metrics: %q: %w", line, err)
		}
		sizes[of["verb"]+" "+of["resource"]] += int64(n)
	}
	return sizes, nil
}

// since is what was added after an earlier reading.
func (s Sizes) since(earlier Sizes) Sizes {
	added := Sizes{}
	for key, n := range s {
		if d := n - earlier[key]; d > 0 {
			added[key] = d
		}
	}
	return added
}
