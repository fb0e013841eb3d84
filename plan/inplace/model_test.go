package inplace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"
)

// oneContainer is a model of a kubelet that runs a pod with one container. It sees the spec
// late, acts on it later, and what it reports is later still.
type oneContainer struct {
	pod *corev1.Pod // as the API server has it
	now time.Time

	// What the kubelet has seen last, and what it runs.
	image      string
	generation int64
	id         int
	under      string // the image text that the container was started from
	restarts   int32
	started    time.Time

	// How it reports.
	generations bool                                 // it tells which generation it saw
	name        func(image string) (name, id string) // how the runtime calls an image
}

func newOneContainer(generations bool, name func(string) (string, string)) *oneContainer {
	k := &oneContainer{generations: generations, name: name, image: "a:0", generation: 1, under: "a:0", id: 1, now: patchTime}
	k.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 1},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "a:0"}}}}
	k.report()
	return k
}

// see the spec. What it saw before it may never have acted on: it reports what it
// sees first, and its sync may fail before it gets to the containers.
func (k *oneContainer) see() {
	k.image, k.generation = k.pod.Spec.Containers[0].Image, k.pod.Generation
}

// report writes the status. The kubelet does it at any time.
func (k *oneContainer) report() {
	name, id := k.name(k.under)
	if k.generations {
		k.pod.Status.ObservedGeneration = k.generation
	}
	k.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: name, ImageID: id, RestartCount: k.restarts,
		ContainerID: fmt.Sprintf("containerd://%d", k.id), Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(k.started)}}}}
}

func (k *oneContainer) act() {
	if k.under != k.image {
		k.restart()
	}
}

func (k *oneContainer) restart() {
	k.id++
	k.restarts++
	k.under, k.started = k.image, k.now
}

// pass lets more time go by than a kubelet takes to act and to report.
func (k *oneContainer) pass() {
	k.report()
	k.now = k.now.Add(time.Hour)
}

// isIdle says whether the kubelet has seen the spec and has nothing to do.
func (k *oneContainer) isIdle() bool { return k.generation == k.pod.Generation && k.under == k.image }

func (k *oneContainer) patch(t *rapid.T, image string) {
	want := k.pod.DeepCopy()
	want.Spec.Containers[0].Image = image
	patch, err := Update{Pod: k.pod, Want: want, Hashes: someHashes, Now: k.now}.Patch()
	if err != nil {
		t.Fatal(err)
	}
	old, err := json.Marshal(k.pod)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(merged, next); err != nil {
		t.Fatal(err)
	}
	if next.Spec.Containers[0].Image != k.pod.Spec.Containers[0].Image {
		next.Generation++
	}
	k.pod = next
}

// How runtimes call an image.
func honest(image string) (string, string) {
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return image, "sha256:" + image
	}
	return named.String(), "sha256:" + named.String()
}

func byID(image string) (string, string) {
	_, id := honest(image)
	return id, id
}

// oneDigest: all tags are one image, and the runtime calls it by the first one.
func oneDigest(string) (string, string) { return "docker.io/library/a:0", "sha256:same" }

// twoOfThree: two of three tags are one image, and the runtime calls it by the second one.
func twoOfThree(image string) (string, string) {
	if strings.HasSuffix(image, ":1") {
		image = "a:2"
	}
	return honest(image)
}

// runOneContainer lets the model take random steps, and then come to rest.
func runOneContainer(t *rapid.T, k *oneContainer, crashes, stalls bool, nextImage func(*rapid.T) string, check func()) {
	steps := map[string]func(*rapid.T){
		"see":    func(*rapid.T) { k.see(); k.report() },
		"miss":   func(*rapid.T) { k.see() }, // the API server gets only the last of several reports
		"act":    func(*rapid.T) { k.act() },
		"report": func(*rapid.T) { k.report() },
		"patch":  func(t *rapid.T) { k.patch(t, nextImage(t)) },
		"":       func(*rapid.T) { check() },
		"pass": func(*rapid.T) {
			if stalls || k.isIdle() {
				k.pass()
			}
		},
	}
	if crashes {
		steps["crash"] = func(*rapid.T) { k.restart() }
	}
	t.Repeat(steps)
	k.see()
	k.act()
	k.pass()
	check()
}

// TestInPlaceIsNotDoneTooEarly: with a kubelet that tells its generation, and a
// runtime that calls images by their own names, an update that is done has the
// wanted image running, and no restart is to come: through chains of updates, and
// a revert at their end. (Not to and fro faster than the kubelet reports: an image that is the
// recorded one again is also what two tags of one image look like, and to wait
// for those would never end.)
func TestInPlaceIsNotDoneTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newOneContainer(true, honest)
		last, reverted := 0, false
		next := func(t *rapid.T) string {
			if reverted || last > 0 && rapid.Bool().Draw(t, "revert") {
				reverted = true
				return fmt.Sprintf("a:%d", last-1)
			}
			last++
			return fmt.Sprintf("a:%d", last)
		}
		runOneContainer(t, k, false, false, next, func() {
			if ProgressOf(k.pod, k.now).Done && k.under != k.pod.Spec.Containers[0].Image {
				t.Fatalf("done, although %s runs and the spec says %s; recorded %s", k.under, k.pod.Spec.Containers[0].Image, k.pod.Annotations)
			}
		})
	})
}

// TestInPlaceComesToItsEnd: once the kubelet is at rest, an update is done. It
// does not hang, whatever the order of events.
func TestInPlaceComesToItsEnd(t *testing.T) {
	anyImage := func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"a:0", "a:1", "a:2", "docker.io/library/a:0"}).Draw(t, "image")
	}
	for name, names := range map[string]func(string) (string, string){"honest": honest, "by id": byID, "one digest": oneDigest, "two of three": twoOfThree} {
		for _, generations := range []bool{true, false} {
			for _, crashes := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, generations %t, crashes %t", name, generations, crashes), func(t *testing.T) {
					rapid.Check(t, func(t *rapid.T) {
						k := newOneContainer(generations, names)
						runOneContainer(t, k, crashes, name == "honest" && generations, anyImage, func() {})
						if update := ProgressOf(k.pod, k.now); !update.Done {
							t.Fatalf("%s: %s; recorded %s", update.Reason, update.Why, k.pod.Annotations)
						}
					})
				})
			}
		}
	}
}
