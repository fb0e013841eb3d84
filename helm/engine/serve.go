// Package engine is the child process that renders charts by Helm's engine: a request
// on its standard input, an answer on its standard output.
package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"

	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/helm"
)

// Command is the hidden command `tapp render`.
func Command() *cli.Command {
	return &cli.Command{
		Name: helm.Command, Hidden: true, HideHelp: true,
		Usage:  "render a chart: a request on standard input, an answer on standard output",
		Action: func(c *cli.Context) error { return Serve(c.App.Reader, c.App.Writer, c.App.ErrWriter) },
	}
}

// Serve reads one request and answers it. It bounds the memory of this process, and
// takes from it the possibility to open files and connections: it is to be called in
// a process that does nothing else.
func Serve(in io.Reader, out, progress io.Writer) error {
	memory, err := strconv.ParseInt(os.Getenv(helm.MemoryVariable), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: this command is for tapp itself: %w", helm.MemoryVariable, err)
	}
	var request helm.Request
	if err := json.NewDecoder(in).Decode(&request); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if err := confine(memory); err != nil {
		return fmt.Errorf("bounding the memory of the render process: %w", err)
	}
	// Helm logs what it thinks of a chart.
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))

	rendered, err := Render(request, progress)
	answer := helm.Answer{Rendered: rendered}
	if err != nil && !errors.As(err, &answer.Error) {
		return err
	}
	return json.NewEncoder(out).Encode(answer)
}
