package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConnect: nothing is asked of the API server, and what is missing is said.
func TestConnect(t *testing.T) {
	t.Setenv("TAPP_KUBECONFIG", "")
	const want = "TAPP_KUBECONFIG names no cluster: run these tests by `make`, which lists its targets, or on the cluster of `make up`"
	if _, err := Connect("a-test"); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	t.Setenv("TAPP_KUBECONFIG", path)
	if _, err := Connect("a-test"); err == nil || err.Error() != "TAPP_KUBECONFIG: reading "+path+": stat "+path+": no such file or directory" {
		t.Errorf("got error %v", err)
	}
	content := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Connect("a-test")
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.Host != "https://127.0.0.1:1" || c.Config.UserAgent != "a-test" || c.Kube == nil {
		t.Errorf("got %+v", c.Config)
	}
	if c.Program("kubectl") != filepath.Join(dir, "bin", "kubectl") || c.LogFile("audit.log") != filepath.Join(dir, "logs", "audit.log") {
		t.Errorf("got %s, %s", c.Program("kubectl"), c.LogFile("audit.log"))
	}
}
