package rollout

import "fmt"

// blind is a cluster that may have some of what is stable, and was not seen yet, where no
// record tells what that is. What the others have may be in the midst of a change. Empty:
// there is none.
func (in *Input) blind() string {
	if in.Record != nil {
		return ""
	}
	for i := range in.Units {
		if in.Units[i].Unseen {
			return in.Units[i].Cluster
		}
	}
	return ""
}

// unknown keeps all units as they are until the cluster is seen.
func (in *Input) unknown(cluster string) Decision {
	d := Decision{Record: &Record{}, State: Unknown, Current: -1, Units: make([]Verdict, len(in.Units)),
		Why: fmt.Sprintf("no record tells what is stable, and cluster %s, which may have some of it, was not seen yet", cluster)}
	for i := range in.Units {
		u := &in.Units[i]
		d.Units[i] = Verdict{Content: u.Has, Grant: u.Grant, Ceiling: u.Ceiling, Reserved: true, Stage: -1, Why: d.Why, Progress: u.Progress}
	}
	return d
}
