package tapp

import (
	"encoding/json"
	"strconv"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
)

// Storage is what a TApp may take in etcd, in bytes of JSON.
type Storage struct {
	// Most is what etcd takes in one request.
	Most int
	// Rest of it is kept for conditions, failures, contents, annotations that are added later, and
	// what the request has beside the object.
	Rest int
}

// Etcd is the storage of an etcd that is not told otherwise.
func Etcd() Storage { return Storage{Most: 1536 << 10, Rest: 96 << 10} }

// most is how many instances a TApp can have at most so that its status can be stored
// whatever becomes of them; below 0 if that of none can. The largest number is
// plan.MaxReplicas. Reviews are without managedFields: what those take is estimated.
func (s Storage) most(t *tappv1.TApp) int {
	m := t.ObjectMeta
	m.ManagedFields = nil
	meta, err := json.Marshal(&m)
	if err != nil {
		return plan.MaxReplicas // others tell of that
	}
	spec, err := json.Marshal(&t.Spec)
	if err != nil {
		return plan.MaxReplicas
	}
	has := ids.Of(&t.Spec)
	room := s.Most - s.Rest - len(meta) - len(spec) - sizeOfOwned(spec) - sizeOfOthers(t, has)
	if room < 0 {
		return -1
	}
	return min(room/sizeOfInstance(t, has.Last()), plan.MaxReplicas)
}

// sizeOfOwned is what managedFields say of a JSON text, if one manager has all of it:
// "f:image":{} for a field, and "k:{\"name\":\"main\"}":{} for an object of a list. What has
// more in it has ".":{} in it, too. Of the keys of the objects of lists the longest ones are
// taken: their names, and paths.
func sizeOfOwned(text []byte) int {
	const field, itself, item = len(`"f:":{},`), len(`".":{},`), len(`"k:{\"containerPort\":65535,\"protocol\":\"SCTP\"}":{},`)
	size := 0
	var within []byte // { and [ around a place
	named := false    // the value at the place is a name
	for at := 0; at < len(text); at++ {
		switch c := text[at]; c {
		case '{', '[':
			if c == '{' && len(within) > 0 && within[len(within)-1] == '[' {
				size += item
			}
			size += itself
			within = append(within, c)
		case '}', ']':
			within = within[:max(0, len(within)-1)]
		case '"':
			from := at + 1
			for at = from; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			word := text[min(from, len(text)):min(at, len(text))]
			if isKey := at+1 < len(text) && text[at+1] == ':'; isKey {
				size += field + len(word)
				named = string(word) == "name" || string(word) == "mountPath"
				continue
			}
			if named {
				size += len(word)
			}
			named = false
		}
	}
	return size
}

// nodeName is how long names of nodes are assumed to be, unless longer ones are known.
const nodeName = 63

// sizeOfInstance is what the status takes for an instance with this id. The maps of the
// status are atomic: managedFields do not name their entries once more.
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

// sizeOfOthers is what the status takes for instances that the spec does not have now: those
// that are still to go, as after a change of spec.ordinals.start, and the nodes of all that
// ever were. These are kept: an instance that comes back runs where it ran.
func sizeOfOthers(t *tappv1.TApp, has ids.Range) int {
	const quoted = len(`"":"",`)
	isOther := func(id string) bool {
		n, err := strconv.Atoi(id)
		return err != nil || !has.Has(n)
	}
	size := 0
	for id := range t.Status.Statuses {
		if isOther(id) {
			size += len(id) + quoted + len(tappv1.InstanceKilling)
		}
	}
	if t.Spec.NeverMigrate {
		for id, node := range t.Status.Nodes {
			if isOther(id) {
				size += len(id) + quoted + len(node)
			}
		}
	}
	return size
}
