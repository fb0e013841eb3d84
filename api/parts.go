package api

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/describe"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet"
)

// getPart shows the part of an AppSet in a cluster, as it was seen last.
func (a *API) getPart(q *request) error {
	if err := q.checkQuery(); err != nil {
		return err
	}
	part, member, err := a.Members.part(q.cluster, q.namespace, q.name)
	if err != nil {
		return err
	}
	if part == nil || apierrors.IsNotFound(a.mayOfPart(q, part, "")) {
		return answer.NotFound("advdeployments %q in cluster %s is not of an AppSet that you may get", q.name, q.cluster)
	}
	if err := a.mayOfPart(q, part, ""); err != nil {
		return err
	}
	out := apiv1.PartDetail{Part: summarizePart(&member, part), PodSets: part.Status.AggrStatus.PodSets}
	if out.Object, err = describe.Manifest(part, v1beta1.SchemeGroupVersion.String(), v1beta1.KindAdvDeployment); err != nil {
		return err
	}
	return q.writeValue(out)
}

// partKey is by what parts are sorted and pages continue.
func partKey(p *apiv1.Part) string { return p.Cluster + "/" + p.Namespace + "/" + p.Name }

// listParts lists the parts of the AppSets that the caller may see, in the cluster and the
// namespace of the path or in all. Clusters that are silent are told, with what was seen last.
func (a *API) listParts(q *request) error {
	if err := q.checkQuery(); err != nil {
		return err
	}
	if a.Members == nil {
		return errNoMembers
	}
	objects, v, err := a.storedAppSets(q)
	if err != nil {
		return err
	}
	mine, clusters := map[string]*v1beta1.AppSet{}, []string{}
	for _, object := range objects {
		s, ok := object.(*v1beta1.AppSet)
		if key := keyOfAppSet(s); ok && (v.sees == nil || v.sees(key)) {
			mine[key] = s
			clusters = append(clusters, clustersOfAppSet(s)...)
		}
	}
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	if only := v1beta1.FoldClusterName(q.cluster); only != "" {
		if !slices.Contains(clusters, only) {
			return answer.NotFound("no AppSet that you may see is in a cluster %q", q.cluster)
		}
		clusters = []string{only}
	}
	out, err := a.Members.list(clusters, func(part *v1beta1.AdvDeployment) bool {
		s := mine[part.Annotations[v1beta1.AnnotationAppSet]]
		_, _, uid := appSetOf(part)
		return s != nil && s.UID == uid && (q.namespace == "" || q.namespace == part.Namespace)
	})
	if err != nil {
		return err
	}
	if out, err = pageOf(q, out, partKey); err != nil {
		return err
	}
	return q.writeValue(out)
}

func summarizePart(member *fleet.Member, part *v1beta1.AdvDeployment) apiv1.Part {
	sum := &part.Status.AggrStatus
	out := apiv1.Part{
		Cluster: member.Name, State: string(member.State), Reason: member.Reason, Message: member.Message,
		Namespace: part.Namespace, Name: part.Name, UID: string(part.UID), AppSet: part.Annotations[v1beta1.AnnotationAppSet],
		Generation: part.Generation, ObservedGeneration: part.Status.ObservedGeneration,
		Phase: string(sum.Status), Version: sum.Version, Desired: sum.Desired, Available: sum.Available,
	}
	if !member.Fresh && !member.AsOf.IsZero() {
		out.AsOf = apiv1.Present(metav1.NewTime(member.AsOf))
	}
	return out
}

func keyOfAppSet(s *v1beta1.AppSet) string {
	if s == nil {
		return ""
	}
	return s.Namespace + "/" + s.Name
}

// list the parts in these clusters that the filter lets through, sorted by their keys.
func (m *Members) list(clusters []string, filter func(*v1beta1.AdvDeployment) bool) (apiv1.List[apiv1.Part], error) {
	out := apiv1.List[apiv1.Part]{Items: []apiv1.Part{}}
	known := m.now.Load()
	if known == nil {
		return out, errMembersUnknown
	}
	var silent []string
	for _, name := range clusters {
		member, ok := known.Member(name)
		if !ok {
			silent = append(silent, name)
			continue
		}
		if !member.Fresh {
			silent = append(silent, name)
		}
		for _, part := range known.PartsIn(name) {
			if filter(part) {
				out.Items = append(out.Items, summarizePart(&member, part))
			}
		}
	}
	slices.SortFunc(out.Items, func(a, b apiv1.Part) int { return strings.Compare(partKey(&a), partKey(&b)) })
	out.Total = len(out.Items)
	if len(silent) > 0 {
		out.Degraded = fmt.Sprintf("%d of %d clusters do not answer: %s", len(silent), len(clusters), strings.Join(silent[:min(len(silent), 10)], ", "))
	}
	return out, nil
}
