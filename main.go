// Command tapp runs TApps on Kubernetes: its controllers and its webhooks are
// commands of this one program, and under the name kubectl-tapp it is a plugin of
// kubectl.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/api/page"
	"tkestack.io/tapp/api/server"
	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/helm/engine"
	"tkestack.io/tapp/plugin"
	"tkestack.io/tapp/webhook"
	"tkestack.io/tapp/webhook/check"
)

// version is set by the linker (-X main.version=...).
var version = ""

func main() {
	// The first signal asks to end in order; with it the handler goes, so that the
	// second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	if plugin.IsName(os.Args[0]) {
		streams := plugin.Streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		os.Exit(plugin.Main(ctx, programVersion(), os.Args, streams))
	}
	files, err := page.New(page.Options{})
	if err == nil {
		err = newApp(files).RunContext(ctx, commandLine(os.Args))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// newApp has the commands. files is the web page.
func newApp(files http.Handler) *cli.App {
	return &cli.App{
		Name:            "tapp",
		Usage:           "run applications whose instances have templates of their own on Kubernetes",
		Version:         programVersion(),
		HideHelpCommand: true,
		Commands: []*cli.Command{
			runCommand(programVersion(), files), controller.Command(programVersion()), webhook.Command(programVersion()),
			server.Command(programVersion(), files), check.Command(programVersion()), engine.Command(),
		},
	}
}

// commandLine turns the name under which the program was started into a command:
// tkestack/tapp's was called tapp-controller, and had no commands.
func commandLine(args []string) []string {
	if filepath.Base(args[0]) == "tapp-controller" {
		return append([]string{"tapp", "controller"}, args[1:]...)
	}
	return args
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
