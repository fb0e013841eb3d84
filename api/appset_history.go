package api

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/view"
)

// listAppSetRevisions lists what an AppSet asked for.
func (a *API) listAppSetRevisions(q *request) error {
	if err := firstError(q.checkQuery, func() error { return a.may(q, appSetAccess("get", q.namespace, q.name)) }); err != nil {
		return err
	}
	s, err := a.appSet(q)
	if err != nil {
		return err
	}
	list, err := a.clients.kube.ControllerRevisions(q.namespace).List(q.ctx(), metav1.ListOptions{LabelSelector: v1beta1.LabelAppSetUID + "=" + string(s.UID)})
	if err != nil {
		return fmt.Errorf("listing revisions: %w", err)
	}
	versions, err := podset.VersionsOf(s, list.Items)
	if err != nil {
		return err
	}
	slices.Reverse(versions)
	out, err := revisionsOfAppSet(s, versions)
	if err != nil {
		return err
	}
	return q.writeValue(List[AppSetRevision]{Items: out, Total: len(out)})
}

// revisionsOfAppSet tells what each version changed; they come oldest first.
func revisionsOfAppSet(s *v1beta1.AppSet, versions []podset.Version) ([]AppSetRevision, error) {
	now := ""
	if units, _, problems := podset.Units(s); len(problems) == 0 {
		now = podset.Revision(units)
	}
	summary := Summary{Namespace: s.Namespace, Name: s.Name}
	out := make([]AppSetRevision, len(versions))
	for i := range versions {
		v := &versions[i]
		withoutArchives(&v.History)
		r := AppSetRevision{Revision: view.Revision{Revision: v.Revision, Name: v.Name, Created: v.Created, Current: v.Stable, Update: v.Target || v.Content == now,
			Change: "the versions " + v.Versions}, Content: v.Content, Versions: v.Versions, Changes: []view.FieldChange{}}
		if i > 0 {
			changes, err := view.Changes("", versions[i-1].History, v.History)
			if err != nil {
				return nil, fmt.Errorf("comparing revisions: %w", err)
			}
			r.Changes, r.Change = append(r.Changes, changes...), view.InWords(changes)
		}
		if !r.Update {
			r.Command = summary.fleet("undo") + " --to-revision " + strconv.FormatInt(v.Revision, 10)
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
