package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// judgeStorage rejects what etcd cannot store.
func judgeStorage(t *tappv1.TApp) field.ErrorList { return Etcd().Judge(t) }

// Judge rejects more instances than the status can tell of, and a spec that leaves no room
// for a status: it could never be stored, and the controller waits for that at many a step.
func (s Storage) Judge(t *tappv1.TApp) field.ErrorList {
	const round = 100 // that a small change of the spec changes nothing of what is told
	n, most := *t.Spec.Replicas, s.most(t)
	if int(n) <= most || n > plan.MaxReplicas {
		return nil
	}
	why := "the spec is so large"
	if t.Spec.NeverMigrate {
		why = "spec.neverMigrate keeps a node name for each instance"
	}
	if most > round {
		most = most / round * round
	}
	what := fmt.Sprintf("%s: %d instances do; split it into several TApps", why, most)
	if most < 0 {
		what = "the spec leaves no room for a status; make it smaller, or split it into several TApps"
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), n, "the TApp and its status have to fit into 1.5 MiB, and "+what)}
}
