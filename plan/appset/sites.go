package appset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// site is one cluster in the making of a plan.
type site struct {
	Cluster
	// title is the name as the topology has it.
	title  string
	listed bool
	units  []podset.Unit
	// missing are units that do not exist, and whose chart could not be fetched.
	missing []podset.Unit
	// spec that its part is to have, and the hash of its content; nil: the AppSet asks for
	// no part there.
	spec     *v1beta1.AdvDeploymentSpec
	revision string
	// held: its part keeps its content; if there is no part yet, none is made.
	held bool
	// remembered: the AppSet's annotation lists the cluster, with the identity was.
	remembered bool
	was        types.UID
	// ours: Part has the marks of this AppSet. differences are those of such a part from what
	// the AppSet asks for. asWanted: there are none, or only those that the cluster's own
	// admission makes.
	ours, asWanted bool
	differences    []string
	// waiting are podSets of its part that wait for ids of other clusters, and why.
	waiting []podset.Note
	// reason and message tell what is wrong with the cluster, or what it waits for.
	reason, message string
}

// writable says whether it may be written to: it answers, and has the expected identity.
func (s *site) writable() bool {
	return s.UID != "" && (s.State == v1beta1.ClusterReady || s.State == v1beta1.ClusterSuspect)
}

// certain says whether Part is current, so that decisions may rely on what is absent, too.
func (s *site) certain() bool { return s.writable() && s.Certain }

// empty says whether it is known to have no part of ours.
func (s *site) empty() bool { return s.certain() && !s.ours }

// isUnseen says whether it is in the topology, and may have a part of ours that was not
// observed.
func (s *site) isUnseen() bool { return s.listed && !s.ours && !s.empty() }

func (s *site) tell(reason, format string, args ...any) string {
	s.reason, s.message = reason, fmt.Sprintf(format, args...)
	return s.message
}

// computation is a plan in the making.
type computation struct {
	in  Input
	app *v1beta1.AppSet

	sites    []*site // those of the topology in its order, then others by name
	units    []podset.Unit
	notes    []podset.Note
	problems []podset.Problem
	// unfetched says why the charts of some units cannot be had.
	unfetched map[rollout.Key]string
	// frozen: nothing is written.
	frozen  bool
	rolling *progression

	own      *Own
	forget   *Own
	keep     *podset.Keep
	obsolete []*appsv1.ControllerRevision
	actions  []Action
	stalls   []stall
	waits    []string
	taken    bool

	compared compared
	// common is what the manifests of all parts share: as Go types and as JSON.
	common struct {
		spec  *v1beta1.PodSpec
		plain map[string]any
	}
}

// stall is something that needs help.
type stall struct{ reason, message string }

func newComputation(in Input) *computation {
	c := &computation{in: in, app: in.AppSet}
	c.units, c.notes, c.problems = podset.Units(c.app)
	c.pin()
	seen := map[string]Cluster{}
	for _, cluster := range in.Clusters {
		seen[cluster.Name] = cluster
	}
	memory := remembered(c.app)
	add := func(name, title string) *site {
		s := &site{title: title}
		if found, ok := seen[name]; ok {
			s.Cluster = found
		} else {
			s.Cluster = Cluster{Name: name, State: v1beta1.ClusterUnregistered}
		}
		s.was, s.remembered = memory[name]
		delete(seen, name)
		s.identify(c)
		c.sites = append(c.sites, s)
		return s
	}
	for i := range c.app.Spec.ClusterTopology.Clusters {
		title := c.app.Spec.ClusterTopology.Clusters[i].Name
		name := v1beta1.FoldClusterName(title)
		if c.find(name) != nil {
			continue // a problem of the spec, which is told
		}
		s := add(name, title)
		s.listed = true
		for n := range c.units {
			if c.units[n].Cluster == title {
				s.units = append(s.units, c.units[n])
			}
		}
	}
	for _, name := range others(memory, seen) {
		cluster, ok := seen[name]
		if c.find(name) != nil {
			continue
		}
		if _, known := memory[name]; known || ok && c.isOurs(cluster.Part) {
			add(name, name)
		}
	}
	c.unite()
	c.retain()
	for _, s := range c.sites {
		if len(s.units)+len(s.missing) > 0 {
			spec := podset.Part(c.app, s.units)
			s.spec, s.revision = &spec, podset.Revision(s.units)
		}
	}
	return c
}

// unite merges sites that are one cluster under several names: in that cluster, their parts
// would be one object. The first site stays, and takes over what is remembered of the others.
// Another one that is in the topology is reported as Mistaken. One that is not is dropped,
// and does not count as a cluster that left.
func (c *computation) unite() {
	first := map[types.UID]*site{}
	c.sites = slices.DeleteFunc(c.sites, func(s *site) bool {
		identity := cmp.Or(s.was, s.UID)
		one, known := first[identity]
		if identity == "" || !known {
			first[identity] = s
			return false
		}
		if s.remembered {
			one.remembered, one.was = true, identity
		}
		s.remembered, s.was, s.ours = false, "", false
		s.State, s.Certain, s.Part = v1beta1.ClusterMistaken, false, nil
		s.Message = fmt.Sprintf("it is cluster %s, by the UID %s: name it once", one.title, identity)
		return !s.listed
	})
}

func others(memory map[string]types.UID, seen map[string]Cluster) []string {
	var out []string
	for name := range memory {
		out = append(out, name)
	}
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *computation) find(name string) *site {
	for _, s := range c.sites {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// identify discards what was observed if the name now leads to another cluster than the one
// that has the part.
func (s *site) identify(c *computation) {
	if s.was == s.Replaces {
		s.was = ""
	}
	if s.was != "" && s.UID != "" && s.was != s.UID {
		s.State, s.Certain, s.Part = v1beta1.ClusterMistaken, false, nil
		s.Message = fmt.Sprintf("the part is in the one with the UID %s; if this one replaces it, label its registration with %s=%s", s.was, v1beta1.LabelReplacesUID, s.was)
	}
	s.ours = c.isOurs(s.Part)
}

// lose makes clusters unfit that do not store all fields of their parts. Clusters that left
// the topology are not concerned: their part can be deleted without those fields.
func (c *computation) lose() {
	for _, s := range c.sites {
		fields := c.in.Lost[s.Name]
		if !s.listed || len(fields) == 0 || !s.writable() {
			continue
		}
		s.State, c.taken = v1beta1.ClusterUnfit, true
		s.Message = fmt.Sprintf("its AdvDeployments do not keep %s: install the version of tapp there that the hub has", strings.Join(fields, ", "))
	}
}

// isOurs says whether a part has the marks of this AppSet: its UID, or its fleet and name.
func (c *computation) isOurs(part *v1beta1.AdvDeployment) bool {
	if part == nil {
		return false
	}
	return types.UID(part.Labels[v1beta1.LabelAppSetUID]) == c.app.UID ||
		IsOf(part, c.in.Fleet, types.NamespacedName{Namespace: c.app.Namespace, Name: c.app.Name})
}

// IsOf says whether a part is of the AppSet of that name in the fleet, whichever its UID.
func IsOf(part *v1beta1.AdvDeployment, fleet string, appSet types.NamespacedName) bool {
	return part.Labels[v1beta1.LabelFleetID] == fleet && part.Annotations[v1beta1.AnnotationAppSet] == appSet.String()
}

// Concerned are the clusters that the AppSet names, and those that may have a part of it, by
// their folded names.
func Concerned(a *v1beta1.AppSet) []string {
	memory := remembered(a)
	out := make([]string, 0, len(memory)+len(a.Spec.ClusterTopology.Clusters))
	for name := range memory {
		out = append(out, name)
	}
	for i := range a.Spec.ClusterTopology.Clusters {
		out = append(out, v1beta1.FoldClusterName(a.Spec.ClusterTopology.Clusters[i].Name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// remembered are the clusters that may have a part, with their identities, from the
// annotation AnnotationClusters. If somebody removed that, they are all clusters of the
// status and the topology; if the finalizer is missing, too, as after kubectl replace, those
// that have told of a part.
func remembered(a *v1beta1.AppSet) map[string]types.UID {
	out := map[string]types.UID{}
	text, written := a.Annotations[v1beta1.AnnotationClusters]
	for _, entry := range names(text) {
		name, uid, _ := strings.Cut(entry, "=")
		out[v1beta1.FoldClusterName(name)] = types.UID(uid)
	}
	if written {
		return out
	}
	ours := slices.Contains(a.Finalizers, v1beta1.Finalizer)
	for i := range a.Status.AggrStatus.Clusters {
		if cluster := &a.Status.AggrStatus.Clusters[i]; ours || hadPart(cluster) {
			out[v1beta1.FoldClusterName(cluster.Name)] = ""
		}
	}
	if ours {
		for i := range a.Spec.ClusterTopology.Clusters {
			out[v1beta1.FoldClusterName(a.Spec.ClusterTopology.Clusters[i].Name)] = ""
		}
	}
	return out
}

// hadPart says whether a cluster has told of a part of the AppSet.
func hadPart(c *v1beta1.ClusterStatus) bool {
	return slices.ContainsFunc(c.PodSets, func(p v1beta1.PodSetStatus) bool { return p.HaveDeploy != nil })
}

// names of a list that is separated by commas or white space.
func names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}

// abandoned says whether a human gave up the cluster, by AnnotationAbandonClusters.
func (c *computation) abandoned(s *site) bool {
	return slices.ContainsFunc(names(c.app.Annotations[v1beta1.AnnotationAbandonClusters]), func(name string) bool {
		return v1beta1.FoldClusterName(name) == s.Name
	})
}
