package tapp

import (
	"encoding/json"
	"strconv"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// What a TApp takes in etcd, in bytes of JSON. The maps of the status are atomic: their
// entries are not named once more in metadata.managedFields.
const (
	// mostStored is what etcd takes in one request, unless it is told otherwise.
	mostStored = 1536 << 10
	// sizeOfRest is for metadata, conditions, and for what etcd's request has beside the
	// object; the failures of as many instances as are kept are among it.
	sizeOfRest = 96 << 10
	// leastForInstances is what a TApp's instances may take whatever its spec takes: the API
	// server itself tells of a spec that is too large.
	leastForInstances = 64 << 10
	// specTwice: what managedFields say of a spec takes about as much as the spec.
	specTwice = 2
	// nodeName is how long names of nodes are assumed to be, unless longer ones are known.
	nodeName = 63
)

// mostReplicas is how many instances a TApp can have at most so that its status can be
// stored whatever becomes of them. The largest number is plan.MaxReplicas.
func mostReplicas(t *tappv1.TApp) int {
	replicas := int(*t.Spec.Replicas)
	each := sizeOfInstance(t, plan.IDsOf(&t.Spec).Last())
	if replicas <= 0 || replicas*each <= leastForInstances {
		return plan.MaxReplicas // without a look at the spec, which costs most
	}
	spec, err := json.Marshal(&t.Spec)
	if err != nil {
		return plan.MaxReplicas // others tell of that
	}
	room := mostStored - sizeOfRest - specTwice*len(spec)
	return min(max(room, leastForInstances)/each, plan.MaxReplicas)
}

// sizeOfInstance is what the status takes for an instance with this id.
func sizeOfInstance(t *tappv1.TApp, id int) int {
	const quoted = len(`"":"",`)
	digits := len(strconv.Itoa(id))
	size := digits + quoted + len(tappv1.InstanceNotCreated) // no other status is longer
	if t.Spec.NeverMigrate {
		longest := nodeName
		for _, node := range t.Status.Nodes {
			longest = max(longest, len(node))
		}
		size += digits + quoted + longest
	}
	return size
}
