package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestEnabled: the flags of the original systems choose kinds, alone or beside others.
func TestEnabled(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   "tapp",
		"--enable-master":                    "appset",
		"--enable-worker":                    "advdeployment",
		"--enable-worker --enable-master":    "appset advdeployment",
		"--enable-master=false":              "tapp",
		"--controllers tapp,app":             "tapp app",
		"--enable-worker --controllers tapp": "tapp advdeployment",
		"--controllers advdeployment --enable-worker": "advdeployment",
	} {
		t.Run(line, func(t *testing.T) {
			c := Defaults()
			app := &cli.App{Name: "controller", Flags: c.Flags(), Action: func(*cli.Context) error { return nil }}
			if err := app.Run(append([]string{"controller"}, strings.Fields(line)...)); err != nil || !slices.Equal(c.Controllers, strings.Fields(want)) {
				t.Errorf("%v, %v", c.Controllers, err)
			}
		})
	}
}
