package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// serve is an API server that has these objects, by path, and nothing else. What is
// created comes back with a UID, and is not stored. It is the cluster of the commands
// of this test.
func serve(t *testing.T, objects map[string]any) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == metav1.DryRunAll {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(bytes.Replace(body, []byte(`"metadata":{`), []byte(`"metadata":{"uid":"dry-run",`), 1))
			return
		}
		if patched := patchedBy(t, objects, r); patched != nil {
			if bytes.Contains(patched, []byte(`"kind":"Status"`)) {
				w.WriteHeader(http.StatusConflict)
			}
			_, _ = w.Write(patched)
			return
		}
		object, ok := objects[r.URL.Path]
		if r.Method != http.MethodGet || !ok {
			parts := strings.Split(r.URL.Path, "/")
			resource := schema.GroupResource{Resource: parts[max(0, len(parts)-2)]}
			if parts[1] == "apis" {
				resource.Group = parts[2]
			}
			missing := apierrors.NewNotFound(resource, parts[len(parts)-1]).Status()
			missing.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.WriteHeader(http.StatusNotFound)
			object = missing
		}
		if refusal, is := object.(*metav1.Status); is {
			w.WriteHeader(int(refusal.Code))
		}
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", Namespace: "shop"}
	config.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

// patchedBy is what a dry run of a merge patch makes of an object, or the status of a conflict
// where the patch is of another resourceVersion; nil: it is none.
func patchedBy(t *testing.T, objects map[string]any, r *http.Request) []byte {
	object := objects[r.URL.Path]
	if r.Method != http.MethodPatch || r.URL.Query().Get("dryRun") != metav1.DryRunAll || object == nil {
		return nil
	}
	before, err := json.Marshal(object)
	if err != nil {
		t.Error(err)
	}
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Errorf("%v: %s", err, patch)
	}
	var was, is metav1.PartialObjectMetadata
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(after, &is)); err != nil {
		t.Error(err)
	}
	if was.ResourceVersion != is.ResourceVersion {
		conflict := apierrors.NewConflict(schema.GroupResource{Resource: was.Kind}, was.Name, errors.New("it has been modified")).Status()
		conflict.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		after, _ = json.Marshal(conflict) // strings and numbers always marshal
	}
	return after
}

// run a command line, of kubectl-tapp or of its completion.
func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var outs, errs bytes.Buffer
	code = Main(t.Context(), "test", args, Streams{In: os.Stdin, Out: &outs, ErrOut: &errs})
	return code, outs.String(), errs.String()
}

const (
	tappsPath     = "/apis/apps.tkestack.io/v1/namespaces/shop/tapps"
	podsPath      = "/api/v1/namespaces/shop/pods"
	claimsPath    = "/api/v1/namespaces/shop/persistentvolumeclaims"
	revisionsPath = "/apis/apps/v1/namespaces/shop/controllerrevisions"
	setsPath      = "/apis/apps/v1/namespaces/shop/statefulsets"
	policyPath    = "/api/v1/namespaces/tapp-system/configmaps/tapp-policy"
)

func podList(pods ...*corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	return list
}

// TestCompletion: what a shell is offered.
func TestCompletion(t *testing.T) {
	web := webTApp(2, func(t *tappv1.TApp) {
		t.Status.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceRunning}
	})
	web.SetGroupVersionKind(tappv1.GroupVersionKind())
	api := web.DeepCopy()
	api.Name = "api"
	api.Spec.Ordinals = &tappv1.Ordinals{Start: 5}
	revision := appsv1.ControllerRevision{Revision: 4, Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`)}}
	revision.Name, revision.OwnerReferences = "web-1", []metav1.OwnerReference{*metav1.NewControllerRef(web, tappv1.GroupVersionKind())}
	foreign := *revision.DeepCopy()
	foreign.Name, foreign.OwnerReferences[0].UID = "web-0", "another"
	serve(t, map[string]any{
		tappsPath:            &tappv1.TAppList{Items: []tappv1.TApp{*api, *web}},
		tappsPath + "/web":   web,
		tappsPath + "/api":   api,
		revisionsPath:        &appsv1.ControllerRevisionList{Items: []appsv1.ControllerRevision{foreign, revision}},
		"/api/v1/namespaces": &corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}},
	})
	for _, c := range []struct{ words, want string }{
		{"get ", "api web"}, {"get api ", "web"}, {"get api web ", ""},
		{"status ", "api web"}, {"status web ", ""},
		{"kill ", "api web"}, {"kill web ", "0\tRunning 1"}, {"kill nope ", ""}, {"explain web ", "0\tRunning 1"}, {"kill api ", "5 6"},
		{"upgrade web 1 --template ", "default canary"}, {"upgrade --template ", ""},
		{"undo web --to-revision ", "4\tweb runs web:1"}, {"plan --to-revision ", ""}, {"undo nope --to-revision ", ""},
		{"diff ", "api web"}, {"diff web ", "4\tweb runs web:1"}, {"diff web 4 ", "4\tweb runs web:1"}, {"diff web 4 4 ", ""},
		{"get --output ", "wide json yaml name"}, {"kill --dry-run=", "none client server"}, {"pause --output ", "name json yaml"},
		{"get --namespace ", "shop"}, {"plan --controller-namespace ", "shop"},
	} {
		code, out, errOut := run(t, append([]string{programComplete}, strings.Split(c.words, " ")...)...)
		const noFiles = ":4\n"
		if got := strings.TrimSuffix(out, noFiles); code != 0 || got == out || strings.Join(strings.Split(strings.TrimSuffix(got, "\n"), "\n"), " ") != c.want {
			t.Errorf("%q: exit code %d, %q, want %q; %s", c.words, code, out, c.want, errOut)
		}
	}
}

// TestPolicyIsRead: explain goes by the policy that is published, and tells of one that
// is not on the error output only.
func TestPolicyIsRead(t *testing.T) {
	tapp := webTApp(2, func(t *tappv1.TApp) {
		t.Status.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceFailed, "1": tappv1.InstanceRunning}
	})
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	objects := map[string]any{tappsPath + "/web": tapp, podsPath: podList(podOf(tapp, "default", 0, failed), podOf(tapp, "default", 1))}
	const missing = "Note: cannot read the controller's policy in namespace %: configmaps \"tapp-policy\" not found; " +
		"assuming --delete-pod-after-app-finish=true, the default. See --controller-namespace.\n"
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: tappv1.PolicyConfigMap},
		Data: map[string]string{tappv1.PolicyKey: `{"deletePodAfterAppFinish":false,"nodeLostAfter":"5m0s","resize":true}`}}
	for _, c := range []struct {
		name   string
		policy any
		args   []string
		reason string
		next   int
		note   string
	}{
		{"not published", nil, nil, "AppNotFinished", 0, strings.Replace(missing, "%", "tapp-system", 1)},
		{"published", published, nil, "", 1, ""},
		{"elsewhere", published, []string{"--controller-namespace", "tapp"}, "AppNotFinished", 0, strings.Replace(missing, "%", "tapp", 1)},
	} {
		delete(objects, policyPath)
		if c.policy != nil {
			objects[policyPath] = c.policy
		}
		serve(t, objects)
		code, out, errOut := run(t, append([]string{program, "explain", "web", "0", "-o", "json"}, c.args...)...)
		var x explanation
		if err := json.Unmarshal([]byte(out), &x); err != nil || code != 0 || errOut != c.note || x.Reason != c.reason || len(x.Next) != c.next {
			t.Errorf("%s: exit code %d, %v, errors %q, printed %s", c.name, code, err, errOut, out)
		}
	}
}

// TestRevisionsAreForbidden: who may not list ControllerRevisions is told for which instance that
// matters, and the rest as ever.
func TestRevisionsAreForbidden(t *testing.T) {
	former := podOf(webTApp(2), "default", 0)
	tapp := webTApp(2, withImage("web:2"), func(t *tappv1.TApp) {
		t.Spec.Paused = true
		t.Status.Contents = map[string]string{former.Labels[tappv1.LabelTemplateHash]: "0-1"}
	})
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, "", errors.New("no")).Status()
	forbidden.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	serve(t, map[string]any{tappsPath + "/web": tapp, podsPath: podList(podOf(webTApp(2), "default", 1)), revisionsPath: &forbidden})
	const note = "Note: controllerrevisions.apps is forbidden: no; with which template the next pod of instance 0 comes is not known. The controller reads them.\n"
	for args, want := range map[string]string{"explain web 0": note, "explain web 1": "", "get web": note, "status web": note, "plan web": note, "diff web": ""} {
		_, out, errOut := run(t, append([]string{program}, strings.Fields(args)...)...)
		if got := strings.Contains(errOut, note); got != (want != "") || out == "" && args != "diff web" {
			t.Errorf("%s: errors %q, printed\n%s", args, errOut, out)
		}
	}
}
