package template

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What admission makes of the fields of a container, by field. Nothing records what the
// template of a pod said that another program made, so that these differences are taken
// for admission's: a pod that is restarted for nothing is the greater harm.
//
// | field | the pod may have |
// |---|---|
// | image | a mirror's copy, or another spelling |
// | imagePullPolicy | Always (the admission plugin AlwaysPullImages) |
// | probes | a request to an agent of a mesh in the pod (Istio, Kuma, an injected container that declares the port) |
// | resources | anything, where a VerticalPodAutoscaler says that it wrote them |
func containerRule(field string) rule {
	switch field {
	case "image":
		return compareImages
	case "imagePullPolicy":
		return comparePullPolicy
	case "resources":
		return compareResources
	case "livenessProbe":
		return compareProbe("LivenessProbe")
	case "readinessProbe":
		return compareProbe("ReadinessProbe")
	case "startupProbe":
		return compareProbe("StartupProbe")
	}
	return nil
}

func compareImages(c *comparison, path string, want, have reflect.Value) {
	if !IsCopy(have.FieldByName("Image").String(), want.FieldByName("Image").String()) {
		c.differsInPlace(path)
	}
}

func comparePullPolicy(c *comparison, path string, want, have reflect.Value) {
	if h := have.FieldByName("ImagePullPolicy").String(); h != string(corev1.PullAlways) && h != want.FieldByName("ImagePullPolicy").String() {
		c.differs(path)
	}
}

// annotationVPA is what a VerticalPodAutoscaler leaves on a pod whose resources it wrote.
const annotationVPA = "vpaUpdates"

func compareResources(c *comparison, path string, want, have reflect.Value) {
	if c.pod != nil && c.pod.Annotations[annotationVPA] != "" {
		return
	}
	c.values(path, want.FieldByName("Resources"), have.FieldByName("Resources"))
}

func compareProbe(field string) rule {
	return func(c *comparison, path string, want, have reflect.Value) {
		w, h := want.FieldByName(field).Interface().(*corev1.Probe), have.FieldByName(field).Interface().(*corev1.Probe)
		if h == nil {
			c.differs(path)
			return
		}
		container := want.Interface().(corev1.Container)
		if c.pod == nil || !c.isRewritten(&container, w, h) {
			c.values(path, reflect.ValueOf(w), reflect.ValueOf(h))
			return
		}
		w = w.DeepCopy()
		w.ProbeHandler = corev1.ProbeHandler{}
		c.values(path, reflect.ValueOf(w), reflect.ValueOf(h))
	}
}

// isRewritten says whether the pod's probe asks an agent of a mesh, which asks the
// container what the wanted one does.
func (c *comparison) isRewritten(container *corev1.Container, want, have *corev1.Probe) bool {
	get := have.HTTPGet
	if get == nil {
		return false
	}
	// Istio: /app-health/<container>/livez, readyz or startupz.
	if strings.HasPrefix(get.Path, "/app-health/"+container.Name+"/") {
		return istioAgrees(c.pod, container, get.Path, want)
	}
	// Kuma: the port in front of the path.
	if want.HTTPGet != nil && get.Path == "/"+portOf(container, want.HTTPGet.Port)+want.HTTPGet.Path {
		return true
	}
	return c.listens(c.pod.Spec.InitContainers, c.template.Spec.InitContainers, get.Port) || c.listens(c.pod.Spec.Containers, c.template.Spec.Containers, get.Port)
}

// listens says whether a container that the template does not have declares the port.
func (c *comparison) listens(have, want []corev1.Container, port intstr.IntOrString) bool {
	for i := range have {
		if slices.ContainsFunc(want, func(c corev1.Container) bool { return c.Name == have[i].Name }) {
			continue
		}
		for _, p := range have[i].Ports {
			if port == intstr.FromInt32(p.ContainerPort) || p.Name != "" && port == intstr.FromString(p.Name) {
				return true
			}
		}
	}
	return false
}

// istioProbers is the variable in which Istio's agent has the probes that it answers,
// by path.
const istioProbers = "ISTIO_KUBE_APP_PROBERS"

// istioAgrees says whether the wanted probe is the one that the agent asks. Where the pod
// does not tell, it is taken for that.
func istioAgrees(pod *corev1.Pod, container *corev1.Container, path string, want *corev1.Probe) bool {
	for _, list := range [2][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, env := range list[i].Env {
				var probers map[string]corev1.ProbeHandler
				if env.Name != istioProbers || json.Unmarshal([]byte(env.Value), &probers) != nil {
					continue
				}
				if asks, ok := probers[path]; ok {
					trial := &comparison{}
					trial.values("", reflect.ValueOf(withNumbers(container, want.ProbeHandler)), reflect.ValueOf(withNumbers(container, asks)))
					return trial.differences == 0
				}
			}
		}
	}
	return true
}

// withNumbers has the ports of a probe as numbers.
func withNumbers(container *corev1.Container, probe corev1.ProbeHandler) corev1.ProbeHandler {
	number := func(port *intstr.IntOrString) { *port = intstr.Parse(portOf(container, *port)) }
	out := (&corev1.Probe{ProbeHandler: probe}).DeepCopy().ProbeHandler
	if out.HTTPGet != nil {
		number(&out.HTTPGet.Port)
	}
	if out.TCPSocket != nil {
		number(&out.TCPSocket.Port)
	}
	return out
}

// portOf is the number of a port that may be named.
func portOf(container *corev1.Container, port intstr.IntOrString) string {
	for _, p := range container.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			return strconv.Itoa(int(p.ContainerPort))
		}
	}
	return port.String()
}
