//go:build cluster

package install

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"tkestack.io/tapp/test/walk"
)

// update has the pages of the documentation written anew, with what is printed now.
var update = flag.Bool("update", false, "write what is printed into docs, where they say something else")

const root = "../.."

// goThrough a page of the documentation, or a section of it, in a namespace. Its commands see the
// repository as a reader does who stands in it, may write files, and find kubectl, helm and
// the plugin.
func goThrough(t *testing.T, page, section, namespace string) {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"chart", "docs", "test"} {
		link(t, filepath.Join(root, name), filepath.Join(dir, name))
	}
	link(t, suite.Program("tapp"), filepath.Join(bin, "kubectl-tapp"))
	chartImage(t, bin)
	w := walk.Walk{
		Page: filepath.Join(root, "docs", page), Section: section, Dir: dir, Namespace: namespace, Patience: patience, Record: *update, Log: t.Logf,
		Env: append(os.Environ(), "KUBECONFIG="+kubeconfig(t, namespace), "NO_COLOR=1",
			"PATH="+bin+string(filepath.ListSeparator)+filepath.Dir(suite.Program("helm"))+string(filepath.ListSeparator)+os.Getenv("PATH")),
	}
	if err := w.Go(t.Context()); err != nil {
		t.Error(err)
	}
}

func link(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err == nil {
		err = os.Symlink(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// kubeconfig of a user who works in the namespace.
func kubeconfig(t *testing.T, namespace string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(suite.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// chartImage puts a helm before the real one, which installs the image that is tested.
func chartImage(t *testing.T, bin string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = install ]; then set -- \"$@\" --set image.repository=%s --set-string image.tag=%s; fi\nexec %s \"$@\"\n",
		suite.repository, suite.tag, suite.Program("helm"))
	if err := os.WriteFile(filepath.Join(bin, "helm"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}
