package engine

import (
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// userValues are what goes on top of the chart's own values: Defaults, the user's
// documents and Overrides, later ones over earlier ones.
func (r *rendering) userValues() (map[string]any, error) {
	out := known(r.chart.Values, r.request.Defaults)
	for _, document := range r.request.Values {
		values, err := loader.LoadValues(strings.NewReader(document))
		if err != nil {
			return nil, fmt.Errorf("its rawValues: %w", err)
		}
		out = loader.MergeMaps(out, values)
	}
	return loader.MergeMaps(out, known(r.chart.Values, r.request.Overrides)), nil
}

// known is the part of values that the chart has keys for. A key that holds a map in
// one of them and no map in the other is not what is meant.
func known(of map[string]any, values map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range values {
		have, ok := of[key]
		if !ok {
			continue
		}
		inner, isMap := value.(map[string]any)
		innerOf, hasMap := have.(map[string]any)
		switch {
		case isMap && hasMap:
			if part := known(innerOf, inner); len(part) > 0 {
				out[key] = part
			}
		case !isMap && !hasMap:
			out[key] = value
		}
	}
	return out
}
