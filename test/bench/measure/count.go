package measure

import (
	"slices"
	"strings"
	"time"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/record"
)

// count fills in what the audit log says of the contender.
func count(r *record.Run, requests []audit.Request, s Subject) {
	var asked, first, last time.Time
	r.Writes = map[string]int{}
	statuses := map[string][]audit.Request{}
	gates := map[string][]time.Time{}
	for _, q := range requests {
		if !q.IsWrite() {
			continue
		}
		if s.Asked != nil && s.Asked(q) && (asked.IsZero() || q.Received.Before(asked)) {
			asked = q.Received
		}
		if !s.Wrote(q) {
			continue
		}
		r.Writes[kind(q)]++
		if q.Code == 409 {
			r.Conflicts++
		}
		if first.IsZero() || q.Received.Before(first) {
			first = q.Received
		}
		if q.Received.After(last) {
			last = q.Received
		}
		of := q.Namespace + "/" + q.Name
		switch {
		case q.Subresource != "status":
		case q.Resource == "pods":
			gates[of] = append(gates[of], q.Received)
		default:
			statuses[of] = append(statuses[of], q)
		}
	}
	if !asked.IsZero() && !first.IsZero() {
		r.FirstWrite, r.LastWrite = first.Sub(asked).Seconds(), last.Sub(asked).Seconds()
	}
	for _, writes := range statuses {
		n, _ := audit.Busiest(writes, time.Second)
		r.BusiestStatus = max(r.BusiestStatus, n)
	}
	r.Away = away(gates)
}

// away is how long the gates of pods were closed; nil if none was closed and opened.
func away(gates map[string][]time.Time) *record.Away {
	var out []float64
	for _, writes := range gates {
		if len(writes) > 1 {
			out = append(out, slices.MaxFunc(writes, time.Time.Compare).Sub(slices.MinFunc(writes, time.Time.Compare)).Seconds())
		}
	}
	if len(out) == 0 {
		return nil
	}
	a := &record.Away{Most: slices.Max(out)}
	a.Median, a.P99 = spread(out)
	return a
}

// spread sorts the figures, of which there is at least one.
func spread(figures []float64) (median, p99 float64) {
	slices.Sort(figures)
	return figures[len(figures)/2], figures[len(figures)*99/100]
}

func kind(q audit.Request) string {
	if q.Subresource != "" {
		return q.Verb + " " + q.Resource + "/" + q.Subresource
	}
	return q.Verb + " " + q.Resource
}

// kubelet says how KWOK kept up; nil when no pod was bound or changed.
func kubelet(requests []audit.Request) *record.Kubelet {
	causes := map[string]time.Time{}
	answers := map[string][]time.Time{}
	var first, last time.Time
	answered := 0
	for _, q := range requests {
		pod := q.Namespace + "/" + q.Name
		switch {
		case q.Resource != "pods" || q.Code >= 300:
		case strings.HasPrefix(q.UserAgent, "kwok/") && q.Subresource == "status":
			answers[pod] = append(answers[pod], q.Received)
			answered++
			if first.IsZero() || q.Received.Before(first) {
				first = q.Received
			}
			if q.Received.After(last) {
				last = q.Received
			}
		case q.Subresource == "binding", q.Verb == "patch" && q.Subresource == "":
			if q.Received.After(causes[pod]) {
				causes[pod] = q.Received
			}
		}
	}
	var lags []float64
	for pod, cause := range causes {
		slices.SortFunc(answers[pod], time.Time.Compare)
		if i := slices.IndexFunc(answers[pod], func(t time.Time) bool { return t.After(cause) }); i >= 0 {
			lags = append(lags, answers[pod][i].Sub(cause).Seconds())
		}
	}
	if answered < 2 || !last.After(first) {
		return nil
	}
	k := &record.Kubelet{Rate: float64(answered-1) / last.Sub(first).Seconds()}
	if len(lags) > 0 {
		k.Median, k.P99 = spread(lags)
	}
	return k
}
