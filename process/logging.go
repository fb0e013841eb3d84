package process

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// logging is how to log.
type logging struct {
	verbosity int
	format    string
}

// start makes the logger, and makes klog use it, which the libraries write to.
func (l logging) start(w io.Writer) (klog.Logger, error) {
	if l.verbosity < 0 {
		return klog.Logger{}, fmt.Errorf("-v is %d; give 0 or more", l.verbosity)
	}
	var logger klog.Logger
	switch l.format {
	case "text":
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w), textlogger.Verbosity(l.verbosity)))
	case "json":
		// logr's verbosity n is slog's level -n.
		logger = logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.Level(-l.verbosity)}))
	default:
		return klog.Logger{}, fmt.Errorf("--logging-format is %q; give text or json", l.format)
	}
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	if err := flags.Set("v", strconv.Itoa(l.verbosity)); err != nil {
		return klog.Logger{}, err
	}
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	return logger, nil
}
