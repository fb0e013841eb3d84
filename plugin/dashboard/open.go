package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"runtime"
)

// openBrowser opens the address in the user's browser. Other users of the machine can
// see the arguments of a program, and so it gets a file of the user's that leads there.
// forget removes the file.
func openBrowser(ctx context.Context, address string) (forget func(), err error) {
	forget = func() {}
	f, err := os.CreateTemp("", "tapp-dashboard-*.html") // for the user alone
	if err != nil {
		return forget, fmt.Errorf("writing a file for the browser: %w", err)
	}
	forget = func() { _ = os.Remove(f.Name()) }
	_, err = fmt.Fprintf(f, `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=%s"><title>TApp</title>`, html.EscapeString(address))
	if err = errors.Join(err, f.Close()); err != nil {
		return forget, fmt.Errorf("writing a file for the browser: %w", err)
	}
	program := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if program == nil {
		program = []string{"xdg-open"}
	}
	if err := exec.CommandContext(ctx, program[0], append(program[1:], f.Name())...).Start(); err != nil {
		return forget, fmt.Errorf("starting the browser: %w", err)
	}
	return forget, nil
}
