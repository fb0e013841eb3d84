package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"
)

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		args     []string
		out, log string // parts
		err      string
	}{
		{nil, "", "worked at x", ""},
		{[]string{"--at=y"}, "", "worked at y", ""},
		{[]string{"--logging-format=json"}, "", `"msg":"worked at x"`, ""},
		{[]string{"--version"}, "v1.2.3\n", "", ""},
		{[]string{"--logging-format=xml"}, "", "", `--logging-format is "xml"; give text or json`},
		{[]string{"-v=-1"}, "", "", "-v is -1; give 0 or more"},
		{[]string{"more"}, "", "", "\"more\" is no flag; `tapp work` takes flags only"},
	} {
		var at string
		command := Command(Spec{
			Name: "work", Version: "v1.2.3", Flags: []cli.Flag{&cli.StringFlag{Name: "at", Value: "x", Destination: &at}},
			Run: func(ctx context.Context) error {
				klog.FromContext(ctx).Info("worked at " + at)
				return nil
			},
		})
		var out, log bytes.Buffer
		app := &cli.App{Name: "tapp", Writer: &out, ErrWriter: &log, Commands: []*cli.Command{command}, ExitErrHandler: func(*cli.Context, error) {}}
		err := app.RunContext(t.Context(), append([]string{"tapp", "work"}, c.args...))
		if fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%v: got error %v, want %q", c.args, err, c.err)
		}
		if err == nil && (out.String() != c.out || !strings.Contains(log.String(), c.log)) {
			t.Errorf("%v: printed %q, logged %q; want %q, %q", c.args, out.String(), log.String(), c.out, c.log)
		}
	}
}

// TestNames: the last flag counts, whatever there was before.
func TestNames(t *testing.T) {
	for _, c := range []struct{ args, want, err string }{
		{"", "a", ""},
		{"--names=b", "b", ""},
		{"--names=b --names=a,,b,", "a,b", ""},
		{"--names=", "", "--names is empty; name some of a, b"},
		{"--names=c,b,d", "c,b,d", "--names names \"c\"; there are a, b\n--names names \"d\"; there are a, b"},
	} {
		names := Names{"a"}
		command := Command(Spec{Name: "x", Flags: []cli.Flag{&cli.GenericFlag{Name: "names", Value: &names}}, Run: func(context.Context) error { return names.Among("--names", "a", "b") }})
		app := &cli.App{Name: "tapp", ErrWriter: io.Discard, Commands: []*cli.Command{command}, ExitErrHandler: func(*cli.Context, error) {}}
		err := app.RunContext(t.Context(), append([]string{"tapp", "x"}, strings.Fields(c.args)...))
		if names.String() != c.want || fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%q: got %s, error %v; want %s, %q", c.args, names.String(), err, c.want, c.err)
		}
	}
}

// TestUnion: each name once, and that of the first.
func TestUnion(t *testing.T) {
	flags := func(names ...string) (out []cli.Flag) {
		for _, n := range names {
			out = append(out, &cli.BoolFlag{Name: n})
		}
		return out
	}
	first := flags("a", "b")
	got := Union(first, flags("b", "c"), flags("a", "d"))
	var names []string
	for _, f := range got {
		names = append(names, f.Names()...)
	}
	if fmt.Sprint(names) != "[a b c d]" || got[1] != first[1] {
		t.Errorf("got %v", names)
	}
}
