// Package dashboard is `kubectl tapp dashboard`: the web page of TApp on loopback, with
// the rights of the user's own kubeconfig, and with actions.
//
//	dashboard.go  the command and its server
//	guard.go      who may ask: Host, Origin, token
//	actions.go    the verbs of the plugin that the page can run, with the plan first
//	open.go       --open
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/api"
	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/page"
)

// Target is the cluster that a dashboard is about, and who asks it: the kubeconfig may
// become another one later.
type Target struct {
	Config *rest.Config
	// ControllerNamespace is where the controller publishes its policy.
	ControllerNamespace string
	// Namespace is shown first; "": all.
	Namespace string
	// Verbs run there.
	Verbs Verbs
}

// Options are what the command shares with others.
type Options struct {
	Streams genericiooptions.IOStreams
	// Connect by the common flags.
	Connect func() (*Target, error)
	// Usage makes an error one of the command line.
	Usage func(error) error
}

type dashboard struct {
	Options
	port int
	open bool
}

const (
	headerTimeout = 10 * time.Second
	endTimeout    = 2 * time.Second
	maxHeader     = 64 << 10
)

// New is the command `dashboard`.
func New(o Options) *cobra.Command {
	d := &dashboard{Options: o}
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Show the web page of TApp, with your own rights",
		Long: `Show the web page of TApp: what needs a human, what every TApp, App and AppSet does and why. It is served on this machine
alone, and reads and writes the cluster as you, by your kubeconfig. The address that is printed has a token in it, which nobody
else should get; it holds until the command ends.

The page can confirm, pause, resume, undo, kill, start and restart. It shows the plan first.`,
		Example: `  kubectl tapp dashboard
  kubectl tapp dashboard --open --context production -n shop`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return o.Usage(fmt.Errorf("%q is one argument too many", args[0]))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return d.run(c.Context()) },
	}
	c.Flags().IntVar(&d.port, "port", 0, "Port on 127.0.0.1; 0 is any that is free")
	c.Flags().BoolVar(&d.open, "open", false, "Open the page in the browser")
	return c
}

func (d *dashboard) run(ctx context.Context) error {
	if d.port < 0 || d.port > 65535 {
		return d.Usage(fmt.Errorf("--port is %d; give one from 0 to 65535", d.port))
	}
	target, err := d.Connect()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port)))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	token := newToken()
	handler, end, err := newHandler(ctx, target, listener.Addr(), token)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer end()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	address := "http://" + listener.Addr().String() + "/#token=" + token
	if _, err := fmt.Fprintf(d.Streams.Out, "%s\n", address); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(d.Streams.ErrOut, "The address holds until this command ends (Ctrl-C). Whoever has it acts as you.")
	if d.open {
		forget, err := openBrowser(ctx, address)
		if err != nil {
			_, _ = fmt.Fprintln(d.Streams.ErrOut, "Open it yourself:", err)
		}
		defer forget()
	}
	return serve(ctx, server, listener)
}

// serve until the context ends, which closes the streams too.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the dashboard: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ending the dashboard: %w", err)
	}
	return server.Close()
}

// newHandler routes requests to the page, the API and the actions. end ends what the API
// watches.
func newHandler(ctx context.Context, t *Target, at net.Addr, token string) (_ http.Handler, end func(), err error) {
	files, err := page.New(page.Options{Actions: true, Namespace: t.Namespace})
	if err != nil {
		return nil, nil, err
	}
	loopback := access.Loopback{Token: token, User: "you"}
	// What fails is told on the page.
	a, err := api.New(klog.NewContext(ctx, logr.Discard()), api.Options{Config: t.Config, Authenticator: loopback, Authorizer: loopback, ControllerNamespace: t.ControllerNamespace, Page: files})
	if err != nil {
		return nil, nil, err
	}
	_, port, _ := net.SplitHostPort(at.String())
	actions := newActions(t.Verbs)
	return newGuard(token, port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/actions/plan" || r.URL.Path == "/actions/run" {
			actions.ServeHTTP(w, r)
			return
		}
		a.ServeHTTP(w, r)
	})), a.Close, nil
}
