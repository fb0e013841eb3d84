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

// counters are those of the API server.
type counters struct {
	sizes Sizes
	// closed are the watches that it gave up because it could not get rid of their events
	// fast enough.
	closed int
}

// readCounters asks the API server for its counters.
func readCounters(ctx context.Context, api rest.Interface) (counters, error) {
	c := counters{sizes: Sizes{}}
	data, err := api.Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return c, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	for line := range bytes.Lines(data) {
		name, rest, _ := strings.Cut(string(line), "{")
		if name != "apiserver_request_body_size_bytes_sum" && name != "apiserver_terminated_watchers_total" {
			continue
		}
		labels, value, _ := strings.Cut(rest, "} ")
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return c, fmt.Errorf("reading the API server's metrics: %q: %w", line, err)
		}
		if name == "apiserver_terminated_watchers_total" {
			c.closed += int(n)
			continue
		}
		of := map[string]string{}
		for _, label := range strings.Split(labels, ",") {
			name, quoted, _ := strings.Cut(label, "=")
			of[name] = strings.Trim(quoted, `"`)
		}
		c.sizes[of["verb"]+" "+of["resource"]] += int64(n)
	}
	return c, nil
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
