package tapp

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// benchmarks by name: what is there of n instances.
var benchmarks = map[string]func(t rapid.TB, n int) Input{
	"steady":   func(t rapid.TB, n int) Input { return many(t, n, "default", true) },
	"patched":  func(t rapid.TB, n int) Input { return many(t, n, "image", false, "default") }, // without the gate, and updated once
	"outdated": func(t rapid.TB, n int) Input { return many(t, n, "image", true) },
	"takeover": takeover,
	"create":   func(t rapid.TB, n int) Input { return many(t, n, "", true) },
}

// many makes n pods from a version; none from "". They differ as pods of one
// TApp do, so that one is made as in any test and the others after it.
func many(t rapid.TB, n int, from string, gated bool, patched ...string) Input {
	s := story(int32(n))
	if from == "" {
		return s.input(t)
	}
	p := podStory{IDs: "0", From: from}
	if !gated {
		p.Gate = "none"
	}
	for _, to := range patched {
		p.Patched, p.Kubelet = to, "done"
	}
	s.Pods = []podStory{p}
	in := s.input(t)
	first := in.Pods[0]
	in.Pods = nil
	for num := range n {
		pod := first.DeepCopy()
		id := strconv.Itoa(num)
		pod.Name, pod.UID = "web-"+id, types.UID("pod-"+id)
		pod.Labels[tappv1.LabelInstanceID], pod.Labels[tappv1.LabelPodIndex] = id, id
		in.Pods = append(in.Pods, pod)
	}
	slices.Reverse(in.Pods) // a cache gives them in any order
	before := Compute(in)
	in.TApp.Status = before.Status
	in.Revisions = []*appsv1.ControllerRevision{before.History[0].Revision}
	return in
}

// takeover is n pods of tkestack/tapp whose image is outdated: each plan compares
// each of them field by field until its turn comes.
func takeover(t rapid.TB, n int) Input {
	in := many(t, n, "image", false)
	for _, pod := range in.Pods {
		pod.Labels[tappv1.LabelTemplateHash], pod.Labels[tappv1.LabelUniqHash] = "1234567890", "1234567890"
	}
	return in
}

func BenchmarkCompute(b *testing.B) {
	for _, what := range sortedKeys(benchmarks) {
		for _, n := range []int{100, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				in := benchmarks[what](b, n)
				b.ReportAllocs()
				for b.Loop() {
					Compute(in)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
			})
		}
	}
}
