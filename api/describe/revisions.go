package describe

import (
	"fmt"
	"strconv"

	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/view"
)

// AppSetRevisions tells what each version changed; they come oldest first.
func AppSetRevisions(s *v1beta1.AppSet, versions []podset.Version) ([]apiv1.AppSetRevision, error) {
	now := ""
	if units, _, problems := podset.Units(s); len(problems) == 0 {
		now = podset.Revision(units)
	}
	summary := apiv1.Summary{Namespace: s.Namespace, Name: s.Name}
	out := make([]apiv1.AppSetRevision, len(versions))
	for i := range versions {
		v := &versions[i]
		withoutArchives(&v.History)
		r := apiv1.AppSetRevision{Revision: view.Revision{Revision: v.Revision, Name: v.Name, Created: v.Created, Current: v.Stable, Update: v.Target || v.Content == now,
			Change: "the versions " + v.Versions}, Content: v.Content, Versions: v.Versions, Changes: []view.FieldChange{}}
		if i > 0 {
			changes, err := view.Changes("", versions[i-1].History, v.History)
			if err != nil {
				return nil, fmt.Errorf("comparing revisions: %w", err)
			}
			r.Changes, r.Change = append(r.Changes, changes...), view.InWords(changes)
		}
		if !r.Update {
			r.Command = fleetCommand(&summary, "undo") + " --to-revision " + strconv.FormatInt(v.Revision, 10)
		}
		out[i] = r
	}
	return out, nil
}

// withoutArchives of charts: their digests say what is different.
func withoutArchives(h *podset.History) {
	if h.PodSpec.Chart != nil {
		h.PodSpec.Chart.RawChart = nil
	}
	for c := range h.ClusterTopology.Clusters {
		podSets := h.ClusterTopology.Clusters[c].PodSets
		for p := range podSets {
			if podSets[p].Chart != nil {
				podSets[p].Chart.RawChart = nil
			}
		}
	}
}
