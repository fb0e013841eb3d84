package fleet

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/dynamic"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/kubeconfig"
)

// plugin is a program that makes credentials, and providers the operator's file that names it.
func plugin(t *testing.T) kubeconfig.Providers {
	t.Helper()
	program := filepath.Join(t.TempDir(), "plugin")
	const script = "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"made\"}}'\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(object{"providers": []any{object{"name": "test", "execConfig": object{
		"apiVersion": "client.authentication.k8s.io/v1", "command": program,
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	providers, err := kubeconfig.ParseProviders(file)
	if err != nil {
		t.Fatal(err)
	}
	return providers
}

func profile(name string, s *server, annotations object) object {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return object{
		"metadata": object{"name": name, "namespace": "clusters", "uid": "profile-" + name, "labels": object{"zone": "gz"}, "annotations": annotations},
		"spec":     object{"displayName": name, "clusterManager": object{"name": "test"}},
		"status": object{
			"properties":      []any{object{"name": "location", "value": "south"}, object{"name": "nodes", "value": "n 1, n 2"}},
			"accessProviders": []any{object{"name": "test", "cluster": object{"server": s.URL, "certificate-authority-data": ca}}},
		},
	}
}

// TestProfiles: a ClusterProfile registers a cluster by a program of the operator's; its
// identity is kept with it; a Secret of its name wins; it is maintained and dropped at run
// time. One that offers what the operator does not know harms no other.
func TestProfiles(t *testing.T) {
	hub, member, other := newServer(t, "hub"), newServer(t, "1"), newServer(t, "2")
	r := newRig(t, hub, func(o *Options) {
		inventory, err := dynamic.NewForConfig(hubConfig(hub))
		if err != nil {
			t.Fatal(err)
		}
		o.Profiles, o.Providers = inventory.Resource(v1beta1.ClusterProfiles()).Namespace("clusters"), plugin(t)
	})
	r.until("synced", r.HasSynced)
	hub.put("clusterprofiles/clusters/Gz_1", profile("Gz_1", member, nil))
	unknown := profile("unknown", other, nil)
	unknown["status"] = object{"accessProviders": []any{object{"name": "someone", "cluster": object{"server": other.URL}}}}
	hub.put("clusterprofiles/clusters/unknown", unknown)
	r.until("ready", r.state("gz-1", v1beta1.ClusterReady, ""))
	r.until("unfit", r.state("unknown", v1beta1.ClusterUnfit, ReasonKubeconfig))
	if m, _ := r.Member("unknown"); m.Message != "it has access by someone, and the controller's file of providers names test" {
		t.Errorf("unknown: %s", m.Message)
	}
	m, _ := r.Member("gz-1")
	if got := fmt.Sprint(m.Meta); got != "map[location:south zone:gz]" || m.UID != "1" {
		t.Errorf("it is %s with the metadata %s", m.UID, got)
	}
	if got := hub.annotation("clusterprofiles/clusters/Gz_1", v1beta1.AnnotationClusterUID); got != "1" {
		t.Errorf("kept is the identity %q", got)
	}
	if got := member.tokens(); got["made"] == 0 || len(got) != 1 {
		t.Errorf("it was asked with the tokens %v", got)
	}

	hub.put("clusterprofiles/clusters/Gz_1", profile("Gz_1", member, object{v1beta1.AnnotationClusterStatus: "Maintaining", v1beta1.AnnotationClusterUID: "1"}))
	r.until("maintained", r.state("gz-1", v1beta1.ClusterMaintaining, ReasonMaintained))
	r.register("gz-1", member.kubeconfig("x"))
	r.until("the Secret wins", r.state("gz-1", v1beta1.ClusterReady, ""))
	hub.put("secrets/clusters/gz-1", nil)
	hub.put("clusterprofiles/clusters/Gz_1", nil)
	r.until("gone", func() bool { _, known := r.Member("gz-1"); return !known })
}

// TestNoProfiles: where ClusterProfiles are not defined, the others are known.
func TestNoProfiles(t *testing.T) {
	hub, member := newServer(t, "hub"), newServer(t, "1")
	hub.set(func() { hub.noAPI = true })
	r := newRig(t, hub, func(o *Options) {
		inventory, err := dynamic.NewForConfig(hubConfig(hub))
		if err != nil {
			t.Fatal(err)
		}
		o.Profiles, o.Providers = inventory.Resource(v1beta1.ClusterProfiles()).Namespace("clusters"), plugin(t)
	})
	r.register("m", member.kubeconfig("x"))
	r.until("ready", r.state("m", v1beta1.ClusterReady, ""))
}
