package template

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// A rule compares one field of two structs in its own way. It is called only
// when want sets the field.
type rule func(c *comparison, path string, want, have reflect.Value)

// ruleOf a field, nil for most. (No map: its rules would depend on themselves.)
func ruleOf(owner reflect.Type, field string) rule {
	switch reflect.Zero(owner).Interface().(type) {
	case corev1.PodSpec:
		return podSpecRule(field)
	case corev1.Container:
		return containerRule(field)
	case metav1.LabelSelector:
		if field == "matchExpressions" {
			// The API server adds those that matchLabelKeys stand for.
			return subsetOf("MatchExpressions")
		}
	case corev1.NodeSelectorTerm:
		if field == "matchFields" {
			// neverMigrate adds the node's name.
			return subsetOf("MatchFields")
		}
	}
	return nil
}

func podSpecRule(field string) rule {
	switch field {
	case "tolerations":
		// Admission adds some.
		return subsetOf("Tolerations")
	case "readinessGates":
		return compareReadinessGates
	case "schedulingGates":
		// They are taken off the pod before it is scheduled.
		return func(*comparison, string, reflect.Value, reflect.Value) {}
	case "serviceAccount":
		return compareServiceAccount
	case "terminationGracePeriodSeconds":
		return compareGracePeriod
	}
	return nil
}

func subsetOf(field string) rule {
	return func(c *comparison, path string, want, have reflect.Value) {
		c.subset(path, want.FieldByName(field), have.FieldByName(field))
	}
}

// compareReadinessGates leaves out our own: spec.updateStrategy.inPlaceUpdate.drain
// touches no running pod.
func compareReadinessGates(c *comparison, path string, want, have reflect.Value) {
	gates := have.FieldByName("ReadinessGates")
	for _, gate := range want.FieldByName("ReadinessGates").Interface().([]corev1.PodReadinessGate) {
		if gate.ConditionType != tappv1.GateInPlaceUpdate && !containsEqual(gates, reflect.ValueOf(gate)) {
			c.differs(path + "[" + string(gate.ConditionType) + "]")
		}
	}
}

// compareServiceAccount knows that serviceAccount is an old name of
// serviceAccountName, which the API server overwrites with it.
func compareServiceAccount(c *comparison, path string, want, have reflect.Value) {
	if want.FieldByName("ServiceAccountName").String() == "" &&
		want.FieldByName("DeprecatedServiceAccount").String() != have.FieldByName("ServiceAccountName").String() {
		c.differs(path)
	}
}

// compareGracePeriod knows that the API server makes a negative one 1.
func compareGracePeriod(c *comparison, path string, want, have reflect.Value) {
	w := want.FieldByName("TerminationGracePeriodSeconds").Elem().Int()
	if w < 0 {
		w = 1
	}
	if h := have.FieldByName("TerminationGracePeriodSeconds"); h.IsNil() || h.Elem().Int() != w {
		c.differs(path)
	}
}

// keyed compares lists whose elements have a key: the order means nothing, and
// the pod may have more. Where a key occurs more than once (env: the last one
// wins), the last ones belong together, then the last but one, and so on.
func (c *comparison) keyed(path, mergeKey string, want, have reflect.Value) {
	byKey := map[string][]reflect.Value{}
	for i := range have.Len() {
		key := elementKey(have.Index(i), mergeKey)
		byKey[key] = append(byKey[key], have.Index(i))
	}
	partners := make([]reflect.Value, want.Len())
	for i := want.Len() - 1; i >= 0; i-- {
		key := elementKey(want.Index(i), mergeKey)
		if left := byKey[key]; len(left) > 0 {
			partners[i], byKey[key] = left[len(left)-1], left[:len(left)-1]
		}
	}
	for i, partner := range partners {
		path := path + "[" + elementKey(want.Index(i), mergeKey) + "]"
		if partner.IsValid() {
			c.values(path, want.Index(i), partner)
		} else {
			c.differs(path)
		}
	}
}

// elementKey is what identifies an element of a list. The patch merge key alone
// does not where the API server knows a key of several fields (listMapKey).
func elementKey(element reflect.Value, mergeKey string) string {
	switch e := element.Interface().(type) {
	case corev1.ContainerPort:
		if e.Protocol == "" {
			e.Protocol = corev1.ProtocolTCP
		}
		return fmt.Sprintf("%d/%s", e.ContainerPort, e.Protocol)
	case corev1.TopologySpreadConstraint:
		return e.TopologyKey + "/" + string(e.WhenUnsatisfiable)
	}
	for _, f := range jsonFields(element.Type()) {
		if f.name == mergeKey {
			return strings.TrimSpace(fmt.Sprint(element.FieldByIndex(f.index).Interface()))
		}
	}
	return ""
}
