package sim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// restarts is S12: a change of a template that means a restart is no update in place. Charts
// put a checksum of their configuration into the annotations (rucio/helm-charts#69), and init
// containers prepare what the main one needs (openkruise/kruise#560). InPlaceOnly, and a pod
// that is taken for one of another program, are written in place all the same.
func (o *oracle) restarts(before, after *corev1.Pod, seen []*tappv1.TApp) error {
	if o.w.tampered[before.UID] || slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
		return t.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.InPlaceOnly
	}) {
		return nil
	}
	if was, is := before.Annotations[checksum], after.Annotations[checksum]; was != is {
		return fmt.Errorf("S12: pod %s goes on with %s %q, and was started with %q", before.Name, checksum, is, was)
	}
	for i, c := range before.Spec.InitContainers {
		if is := after.Spec.InitContainers[i].Image; !isImage(is, c.Image) && !isImage(c.Image, is) {
			return fmt.Errorf("S12: pod %s gets init image %s in place, and it ran %s", before.Name, is, c.Image)
		}
	}
	return nil
}
