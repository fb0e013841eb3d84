package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/urfave/cli/v2"
)

// newApp runs a command. What it logs goes nowhere: klog keeps the logger for the tests
// that follow, whose goroutines log at once.
func newApp(command *cli.Command) *cli.App {
	return &cli.App{Name: "tapp", Writer: io.Discard, ErrWriter: io.Discard, Commands: []*cli.Command{command}, ExitErrHandler: func(*cli.Context, error) {}}
}

func newAPIServer(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// TestCommand: what is missing is said at the start.
func TestCommand(t *testing.T) {
	app := newApp(Command("v1.2.3"))
	err := app.RunContext(t.Context(), []string{"tapp", "webhook", "--master=http://127.0.0.1", "--metrics-address="})
	const want = "there is no certificate to serve admission with: give --tlsCertFile and --tlsKeyFile, or --tls-self-managed"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}
