package main

import (
	"slices"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"tapp", "controller", "--v=2"}, []string{"tapp", "controller", "--v=2"}},
		{[]string{"/usr/bin/tapp-controller", "--v=2"}, []string{"tapp", "controller", "--v=2"}},
		{[]string{"tapp-controller"}, []string{"tapp", "controller"}},
	} {
		if got := commandLine(c.args); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.args, got, c.want)
		}
	}
}
