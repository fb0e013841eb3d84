package report

import (
	"fmt"

	"tkestack.io/tapp/test/bench/record"
)

// failover shows how soon another replica works after the leader went.
func (d data) failover() string {
	t := &table{head: []string{"the leader", "controller", "shortest", "median", "longest", "of", "load"}}
	for _, killed := range []bool{true, false} {
		way := map[bool]string{true: "is killed", false: "is told to end"}[killed]
		for _, c := range []struct{ contender, name string }{{record.TApp, "TApp"}, {record.StatefulSetAlone, "StatefulSet alone"}} {
			for _, m := range d.Failover {
				if m.Contender == c.contender && m.Killed == killed {
					t.add(way, c.name, tenths(m.Least), tenths(m.Median), tenths(m.Most), fmt.Sprint(m.Count), fmt.Sprintf("%.1f", m.Load))
				}
			}
		}
	}
	return t.String()
}

func tenths(s float64) string { return fmt.Sprintf("%.1f s", s) }
