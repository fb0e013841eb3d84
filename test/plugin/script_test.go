//go:build cluster

package plugin

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"tkestack.io/tapp/test/walk"
)

// TestScripts plays the scripts. Beside testscript's own commands they have
//
//	exits CODE COMMAND...   the exit code of a command is exactly this
//	same FILE               the last output is this, but for what is different each
//	                        time: ages, nodes, addresses, hashes, the width of blanks
//	samerr FILE             the same of the error output
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"same":   func(ts *testscript.TestScript, _ bool, args []string) { same(ts, "stdout", args) },
			"samerr": func(ts *testscript.TestScript, _ bool, args []string) { same(ts, "stderr", args) },
		},
	})
}

// setup gives a script a namespace, which its kubeconfig names.
func setup(env *testscript.Env) error {
	ctx := context.Background() // the script's end comes after its context's
	ns, err := newNamespace(ctx)
	if err != nil {
		return err
	}
	env.Defer(func() { deleteNamespace(env.T().(testing.TB), ns) })
	config, err := clientcmd.LoadFromFile(suite.Kubeconfig)
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = ns
	own := filepath.Join(env.WorkDir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, own); err != nil {
		return err
	}
	env.Setenv("KUBECONFIG", own)
	env.Setenv("NAMESPACE", ns)
	env.Setenv("PATH", suite.path)
	return nil
}

func newNamespace(ctx context.Context) (string, error) {
	ns, err := suite.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plugin-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return ns.Name, nil
}

func deleteNamespace(t testing.TB, ns string) {
	t.Helper()
	if err := suite.Kube.CoreV1().Namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// own are the namespaces of the scripts.
var own = regexp.MustCompile(`\bplugin-[a-z0-9]{5}\b`)

// common is a text without what differs from run to run.
func common(text string) string { return walk.Common(own.ReplaceAllString(text, "<namespace>")) }

func same(ts *testscript.TestScript, output string, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: same FILE")
	}
	got, want := common(ts.ReadFile(output)), common(ts.ReadFile(args[0]))
	if got != want {
		ts.Fatalf("%s", diff.Diff(args[0], []byte(want), output, []byte(got)))
	}
}
