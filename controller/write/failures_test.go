package write

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestFailuresAreBounded(t *testing.T) {
	f := Failures{Names: func(ids []int) string { return fmt.Sprintf("instances %d-%d", slices.Min(ids), slices.Max(ids)) }}
	for n := range 1000 {
		err := apierrors.NewForbidden(corev1.Resource("pods"), fmt.Sprint("a-", n), errors.New("exceeded quota"))
		f.Add("create", "exceeded quota", err, n)
	}
	for n := range 20 {
		err := fmt.Errorf("node %d", n)
		f.Add("read a node", err.Error(), err)
	}
	err := f.Join()
	want := "cannot create instances 0-999: pods \"a-0\" is forbidden: exceeded quota\n" +
		"cannot read a node: node 0\ncannot read a node: node 1\ncannot read a node: node 2\ncannot read a node: node 3\nand 16 other errors"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if !apierrors.IsForbidden(err) {
		t.Error("the cause is lost")
	}
	if (&Failures{}).Join() != nil {
		t.Error("no failure is no error")
	}
}
