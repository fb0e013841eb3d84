package fleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Reader reads from one member live, over connections whose other end is verified as for
// writes. It has no rate limit and no timeout but those of the context.
type Reader struct {
	// Core reads pods, their logs and events, and Owners the metadata of what owns them.
	Core   corev1client.CoreV1Interface
	Owners metadata.Interface

	member *member
}

// Reader of a member. Its error is a *StateError where the member is in no state to be asked,
// and ErrUnknown for a name that no registration has or had.
func (f *Fleet) Reader(name string) (*Reader, error) {
	m := f.member(name)
	if m == nil {
		return nil, fmt.Errorf("cluster %s: %w", name, ErrUnknown)
	}
	s, err := m.writable()
	if err != nil {
		return nil, err
	}
	return &Reader{Core: s.connection.requests.core, Owners: s.connection.requests.heads, member: m}, nil
}

// Part of the member, as it was seen last; nil: none is known.
func (r *Reader) Part(namespace, name string) *v1beta1.AdvDeployment {
	return r.member.packed(types.NamespacedName{Namespace: namespace, Name: name}).unpack()
}
