package appset

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
)

// delete takes the parts from all clusters that ever had one. The finalizer goes when
// each of them is certain to have none, or was given up by name.
func (c *computation) delete() {
	if !slices.Contains(c.app.Finalizers, v1beta1.Finalizer) {
		return
	}
	waits := false
	for _, s := range c.sites {
		if !s.empty() && !c.buried(s) && (s.remembered || s.ours) {
			waits = true
			c.clear(s)
		}
	}
	if waits {
		return
	}
	own := &Own{Clusters: c.app.Annotations[v1beta1.AnnotationClusters], Why: "no cluster has a part any more",
		Finalizers: slices.DeleteFunc(slices.Clone(c.app.Finalizers), func(f string) bool { return f == v1beta1.Finalizer })}
	for _, s := range c.sites {
		if !c.buried(s) && (s.remembered || s.certain()) {
			own.Gone = append(own.Gone, s.Name)
		}
	}
	c.forget = own
}

// clear deletes or releases the part of one cluster. If the cluster is not certain, it is
// waited for, or its part is given up.
func (c *computation) clear(s *site) {
	switch {
	case s.certain() && c.orphans():
		c.wait("%s", s.tell(v1beta1.ReasonDeleting, "cluster %s: the part is being set free", s.title))
		c.act(Release, s, fmt.Sprintf("the AppSet is deleted, and leaves its workloads in cluster %s", s.title)).Patch = release(s.Part)
	case s.certain() && s.Part.DeletionTimestamp != nil && s.stalled() != nil && s.isObserved():
		stalled := s.stalled()
		c.stall(cmp.Or(stalled.Reason, ReasonPartStalled), "%s", s.tell(stalled.Reason, "cluster %s: the part stays: %s", s.title, message.Quote(stalled.Message)))
	case s.certain():
		c.wait("%s", s.tell(v1beta1.ReasonDeleting, "cluster %s: the part is being deleted", s.title))
		if s.Part.DeletionTimestamp == nil {
			c.act(Delete, s, "the AppSet is being deleted")
		}
	case c.abandoned(s):
		c.bury(s)
	case s.writable() && s.AsOf.IsZero():
		c.wait("%s", s.tell(ReasonUnreachable, "cluster %s is waited for: what it has is not known yet", s.title))
	default:
		c.unheard(s)
	}
}

func (c *computation) orphans() bool {
	return c.app.Spec.DeletionPolicy == v1beta1.DeletionOrphan
}

// unheard stalls the deletion because of a silent cluster, and says what a human can do.
func (c *computation) unheard(s *site) {
	_, why := s.trouble()
	c.stall(ReasonUnreachable, "%s", s.tell(ReasonUnreachable, "the deletion waits for cluster %s, which %s. Wait until it is back, or give its part up: annotate the AppSet with %s=%s",
		s.title, why, v1beta1.AnnotationAbandonClusters, s.Name))
}

// bury gives up the part of a cluster that a human named: a tombstone remembers that it is
// to be deleted when the cluster returns.
func (c *computation) bury(s *site) {
	c.wait("%s", s.tell(ReasonAbandoned, "cluster %s is given up: the part is deleted when it returns", s.title))
	uid := s.was
	if uid == "" && s.State != v1beta1.ClusterMistaken {
		uid = s.UID
	}
	a := c.act(Bury, s, fmt.Sprintf("cluster %s was given up by %s", s.title, v1beta1.AnnotationAbandonClusters))
	a.Tombstone = &Tombstone{AppSet: types.NamespacedName{Namespace: c.app.Namespace, Name: c.app.Name}, UID: c.app.UID, Cluster: s.Name, ClusterUID: uid, Since: c.in.Now}
	a.Event = &Event{corev1.EventTypeWarning, ReasonAbandoned, a.Why}
}

// buried says whether there is a tombstone of this AppSet's part in a cluster.
func (c *computation) buried(s *site) bool {
	return slices.ContainsFunc(c.in.Tombstones, func(t Tombstone) bool { return c.isSelf(t.UID) && t.Cluster == s.Name })
}

// tombstoneOf returns the tombstone of the part in a cluster if an earlier AppSet gave it
// up; nil: there is none.
func (c *computation) tombstoneOf(s *site) *Tombstone {
	for i := range c.in.Tombstones {
		if t := &c.in.Tombstones[i]; t.matches(&s.Cluster) && uidOf(s.Part) == t.UID && !c.isSelf(t.UID) {
			return t
		}
	}
	return nil
}

// matches says whether the tombstone is about a part in this cluster.
func (t *Tombstone) matches(cluster *Cluster) bool {
	return t.ClusterUID != "" && t.ClusterUID == cluster.UID || t.ClusterUID == "" && t.Cluster == cluster.Name
}

// returned adds the actions of Returned. If the AppSet asks again for a part that it gave
// up, the tombstone goes and the part stays.
func (c *computation) returned() {
	for _, a := range Returned(c.in) {
		listed := c.find(a.Cluster)
		switch {
		case a.Op == Delete && slices.ContainsFunc(c.actions, func(b Action) bool { return b.Op == Delete && b.Cluster == a.Cluster }):
		case a.Op == Delete && listed != nil && listed.spec != nil && c.isSelf(uidOf(listed.Part)) && !c.deleting():
			c.actions = append(c.actions, Action{Op: Unbury, Cluster: a.Cluster, UID: a.UID, Tombstone: a.Tombstone, Why: "the AppSet names the cluster again"})
		default:
			c.actions = append(c.actions, a)
		}
	}
}

// Returned deletes parts that were given up, in clusters that are certain again, and then
// their tombstones. It needs no AppSet: that may be gone by then.
func Returned(in Input) []Action {
	var out []Action
	for i := range in.Tombstones {
		t := &in.Tombstones[i]
		for n := range in.Clusters {
			s := site{Cluster: in.Clusters[n]}
			if !t.matches(&s.Cluster) || !s.certain() {
				continue
			}
			switch a := (Action{Cluster: s.Name, Tombstone: t}); {
			case s.Part == nil || uidOf(s.Part) != t.UID:
				a.Op, a.Why = Unbury, fmt.Sprintf("cluster %s is back, and has no part that was given up", s.Name)
				out = append(out, a)
			case s.Part.DeletionTimestamp == nil:
				a.Op, a.UID, a.Version, a.Why = Delete, s.Part.UID, s.Part.ResourceVersion, fmt.Sprintf("cluster %s is back with a part that was given up", s.Name)
				out = append(out, a)
			}
		}
	}
	return out
}
