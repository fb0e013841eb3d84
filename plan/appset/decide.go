package appset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/podset"
)

func (c *computation) stall(reason, format string, args ...any) {
	c.stalls = append(c.stalls, stall{reason: reason, message: fmt.Sprintf(format, args...)})
}

func (c *computation) wait(format string, args ...any) {
	c.waits = append(c.waits, fmt.Sprintf(format, args...))
}

// troubles tells of the clusters that cannot be read or written to. The AppSet is stalled
// if a human has to act, and waits otherwise.
func (c *computation) troubles() {
	for _, s := range c.sites {
		if s.certain() || !s.listed && !s.remembered && !s.ours {
			continue
		}
		reason, why := s.trouble()
		if reason == "" {
			continue
		}
		said := s.tell(reason, "cluster %s %s", s.title, why)
		switch s.State {
		case v1beta1.ClusterUnregistered, v1beta1.ClusterMistaken, v1beta1.ClusterUnfit:
			c.stalls = append(c.stalls, stall{reason: reason, message: said})
		default:
			c.waits = append(c.waits, said)
		}
	}
}

// trouble says why nothing certain is known of the cluster. The text continues a sentence
// that begins with the name of the cluster.
func (s *site) trouble() (reason, why string) {
	switch s.State {
	case v1beta1.ClusterUnregistered:
		reason, why = ReasonUnregistered, "is not registered: register it under this name, or correct the name in spec.clusterTopology"
		if !s.listed {
			why = "is not registered, and may still have a part"
		}
	case v1beta1.ClusterMistaken:
		reason, why = ReasonMistaken, "is mistaken for another one; nothing is written there"
	case v1beta1.ClusterUnfit:
		reason, why = ReasonUnfit, "cannot be used"
	case v1beta1.ClusterMaintaining:
		reason, why = ReasonMaintaining, "is in maintenance; nothing is written there until it is over"
	case v1beta1.ClusterReady:
		reason, why = ReasonUnreachable, "has not been read yet"
		if !s.AsOf.IsZero() {
			why = "answers, but what it has is known only as of " + since(s.AsOf)
		}
	default:
		reason, why = ReasonUnreachable, fmt.Sprintf("is %s; it was seen last at %s", strings.ToLower(string(s.State)), since(s.AsOf))
		if s.AsOf.IsZero() {
			why = fmt.Sprintf("is %s, and has not been seen yet", strings.ToLower(string(s.State)))
		}
	}
	if s.Message != "" {
		why += ": " + message.Quote(s.Message)
	}
	return reason, why
}

func since(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// compare finds the differences between each part, as it was seen last, and what the
// AppSet asks for.
func (c *computation) compare() {
	for _, s := range c.sites {
		if s.spec != nil && s.ours {
			s.differences = c.compared.differences(c.marks(s), s.spec, s.Part)
			s.asWanted = len(s.differences) == 0 || slices.Equal(s.differences, c.in.Overruled[s.Name])
		}
	}
}

// site decides about the part of one cluster. It does nothing where the AppSet asks for no
// part, or where nothing may be written.
func (c *computation) site(s *site) {
	if s.spec == nil || !s.writable() {
		return
	}
	if refusal, refused := c.in.Refused[s.Name]; refused {
		c.refused(s, refusal)
	}
	switch {
	case s.Part == nil && len(s.units) == 0: // no chart of it could be fetched; pin has told of that
	case s.Part == nil && s.held:
		c.wait("cluster %s waits for its part until its stage is reached", s.title)
	case s.Part == nil:
		c.wait("cluster %s is given its part", s.title)
		c.act(Create, s, fmt.Sprintf("cluster %s has no part", s.title)).Manifest = c.partOf(s)
	case !s.ours:
		c.foreign(s)
	case s.Part.DeletionTimestamp != nil:
		c.wait("cluster %s: the part is being deleted, and will be made again", s.title)
	case c.tombstoneOf(s) != nil:
		c.wait("cluster %s: the part of an earlier AppSet goes first", s.title)
	default:
		c.adjust(s)
	}
}

// adjust writes a part of ours that differs from what the AppSet asks for.
func (c *computation) adjust(s *site) {
	differences := message.Quote(strings.Join(s.differences, ", "))
	switch {
	case len(s.differences) == 0:
		return
	case s.asWanted:
		c.stall(v1beta1.ReasonRefused, "%s", s.tell(v1beta1.ReasonRefused, "cluster %s overrules its part: %s", s.title, differences))
		return
	}
	c.wait("cluster %s: the part is being changed", s.title)
	wanted := c.partOf(s)
	if !wasApplied(wanted, s.Part) {
		c.act(Apply, s, fmt.Sprintf("cluster %s: the part is not as the AppSet says: %s", s.title, differences)).Manifest = wanted
		return
	}
	why := fmt.Sprintf("cluster %s: somebody edited the part, which is put right: %s", s.title, differences)
	a := c.act(Correct, s, why)
	a.Manifest, a.Patch, a.Event = wanted, correction(wanted, s.Part), &Event{corev1.EventTypeWarning, ReasonPartCorrected, why}
}

func (c *computation) foreign(s *site) {
	c.taken = true
	whose := "nobody's mark is on it"
	way := fmt.Sprintf(", or give it to the AppSet: label it %s=%s, and annotate it %s=%s/%s", v1beta1.LabelFleetID, c.in.Fleet, v1beta1.AnnotationAppSet, c.app.Namespace, c.app.Name)
	if appSet := s.Part.Annotations[v1beta1.AnnotationAppSet]; appSet != "" {
		whose, way = fmt.Sprintf("it is of AppSet %s in fleet %s", appSet, s.Part.Labels[v1beta1.LabelFleetID]), ""
	}
	c.stall(v1beta1.ReasonResourceExists, "%s", s.tell(v1beta1.ReasonResourceExists, "cluster %s: AdvDeployment %q already exists and is not of this AppSet: %s. Delete or rename it%s", s.title, c.app.Name, whose, way))
}

func (c *computation) refused(s *site, r Refusal) {
	if r.NoNamespace {
		c.stall(ReasonNoNamespace, "%s", s.tell(ReasonNoNamespace, "cluster %s has no namespace %s: kubectl create namespace %s", s.title, c.app.Namespace, c.app.Namespace))
		return
	}
	c.stall(v1beta1.ReasonRefused, "%s", s.tell(v1beta1.ReasonRefused, "cluster %s refuses the part: %s", s.title, message.Quote(r.Words)))
}

// lacks says whether it has not got all podSets that the AppSet asks for there.
func (s *site) lacks() bool {
	return slices.ContainsFunc(s.units, func(u podset.Unit) bool { return u.Replicas > 0 && s.podSet(u.PodSet.Name) == nil })
}

// leaves says whether the topology no longer has the cluster, while it has a part of ours
// or may have one.
func (c *computation) leaves(s *site) bool {
	return s.spec == nil && (s.ours || s.remembered && !s.empty()) && !c.buried(s)
}

// leave deletes the parts of clusters that left the topology. It deletes one at a time,
// and only while the AppSet is available in all clusters of the topology. PodSets that wait for
// their stage are not: they may be what replaces those of a cluster that leaves.
func (c *computation) leave() {
	now := c.app.Annotations[v1beta1.AnnotationLeave] == v1beta1.LeaveNow
	well := len(c.unfetched) == 0 && !slices.ContainsFunc(c.sites, func(s *site) bool { return s.spec != nil && (!c.isDone(s) || s.lacks()) })
	gone := 0
	for _, s := range c.sites {
		if !c.leaves(s) {
			continue
		}
		switch {
		case !s.certain() && c.abandoned(s):
			c.bury(s)
		case !s.certain(): // troubles has told of it
			c.wait("cluster %s leaves, and is not heard", s.title)
		case s.Part.DeletionTimestamp != nil:
			gone++
			c.wait("%s", s.tell(ReasonLeaving, "cluster %s leaves: the part is being deleted", s.title))
		case now || well && gone == 0:
			gone++
			c.wait("%s", s.tell(ReasonLeaving, "cluster %s leaves: the part is being deleted", s.title))
			c.act(Delete, s, fmt.Sprintf("cluster %s left spec.clusterTopology", s.title))
		default:
			c.wait("%s", s.tell(ReasonLeaving, "cluster %s leaves when the others are available; to empty it at once annotate the AppSet with %s=%s", s.title, v1beta1.AnnotationLeave, v1beta1.LeaveNow))
		}
	}
}
