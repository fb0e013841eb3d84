package appset

import (
	"reflect"
	"slices"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// slim is cache.Trim for AppSets. They say much the same of each of their clusters, in the spec and in the status: what is
// equal is there once. That is safe because nobody writes to what is cached.
func slim(object any) (any, error) {
	a, ok := object.(*v1beta1.AppSet)
	if !ok {
		return cache.Trim(object)
	}
	if !cache.TrimOnce(a) {
		return a, nil
	}
	known := words{}
	// They were decoded into more room than they need.
	spec, status := &a.Spec.ClusterTopology, &a.Status.AggrStatus
	spec.Clusters, status.Clusters = slices.Clone(spec.Clusters), slices.Clone(status.Clusters)
	for i := range spec.Clusters {
		known.share(&spec.Clusters[i].Name)
		if i > 0 && reflect.DeepEqual(spec.Clusters[i].PodSets, spec.Clusters[i-1].PodSets) {
			spec.Clusters[i].PodSets = spec.Clusters[i-1].PodSets
		}
		for k := range spec.Clusters[i].PodSets {
			s := &spec.Clusters[i].PodSets[k]
			known.share(&s.Name, &s.Version, &s.Image)
		}
	}
	for i := range status.Clusters {
		c := &status.Clusters[i]
		known.share(&c.Name, (*string)(&c.State), &c.Reason, &c.Message)
		for k := range c.PodSets {
			s := &c.PodSets[k]
			known.share(&s.Name, &s.Version, &s.ClusterName, &s.Revision, &s.Reason, &s.Message)
		}
	}
	return a, nil
}

// words of one AppSet, of which one copy is enough.
type words map[string]string

func (w words) share(all ...*string) {
	for _, word := range all {
		known, ok := w[*word]
		if !ok {
			known = *word
			w[known] = known
		}
		*word = known
	}
}
