package tapp

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"
)

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, is bool, since time.Duration) {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: ago(since)}
	if is {
		c.Status = corev1.ConditionTrue
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}

// merge applies a strategic merge patch, as the API server does.
func merge[T any](t rapid.TB, to *T, patch []byte) {
	t.Helper()
	old, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, *new(T))
	if err != nil {
		t.Fatalf("patch %s: %v", patch, err)
	}
	*to = *new(T)
	if err := json.Unmarshal(merged, to); err != nil {
		t.Fatal(err)
	}
}

func span(t rapid.TB, s string, otherwise time.Duration) time.Duration {
	t.Helper()
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// readIDs reads "0-3,7".
func readIDs(t rapid.TB, s string) (out []int) {
	t.Helper()
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			t.Fatalf("ids: %q", s)
		}
		for ; a <= b; a++ {
			out = append(out, a)
		}
	}
	return out
}
