package plugin

import (
	"fmt"
	"strings"
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestTable: colours have no width, and nothing trails.
func TestTable(t *testing.T) {
	var grid table
	grid.add("ID", "STATE", "REASON")
	grid = append(grid,
		[]cell{{text: "0"}, {"Running", colourOf(tappv1.InstanceRunning)}, {}},
		[]cell{{text: "10"}, {"PodFailed", colourOf(tappv1.InstancePodFailed)}, {text: "Backoff"}},
		[]cell{{text: "11"}, {"Killed", colourOf(tappv1.InstanceKilled)}, {text: "ü"}},
	)
	for p, want := range map[painter]string{
		false: "ID   STATE       REASON\n0    Running\n10   PodFailed   Backoff\n11   Killed      ü\n",
		true: "ID   STATE       REASON\n0    \x1b[32mRunning\x1b[0m\n10   \x1b[31mPodFailed\x1b[0m   Backoff\n" +
			"11   \x1b[2mKilled\x1b[0m      ü\n",
	} {
		var b strings.Builder
		if err := grid.print(&b, p); err != nil || b.String() != want {
			t.Errorf("got %q, %v, want %q", b.String(), err, want)
		}
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		desired, done, unavailable int
		want                       string
	}{
		{0, 0, 0, "########################################"},
		{5, 0, 0, "........................................"},
		{5, 1, 1, "########++++++++........................"},
		{5, 4, 1, "################################++++++++"},
		{5, 5, 0, "########################################"},
		{3, 2, 1, "##########################++++++++++++++"},
		{1000, 1, 1, "+......................................."},
		{1000, 999, 1, "#######################################+"},
	} {
		got := bar(&progress{desired: c.desired, done: c.done, unavailable: c.unavailable}, false)
		if got != "["+c.want+"]" {
			t.Errorf("%d of %d done, %d unavailable: %s", c.done, c.desired, c.unavailable, got)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"short", 10, "short"},
		{"just so", 7, "just so"},
		{"too long", 3, "too"},
		{"\x1b[32mgreen\x1b[0m and more", 7, "\x1b[32mgreen\x1b[0m a"},
		{"\x1b[32mgreen\x1b[0m", 2, "\x1b[32mgr\x1b[0m"}, // what colours ends
		{"üöä", 2, "üö"},
	} {
		if got := clip(c.line, c.width); got != c.want {
			t.Errorf("%q at %d: %q", c.line, c.width, got)
		}
	}
}

// TestScreen: a frame takes the place of the last one on a terminal; elsewhere it
// follows, if it differs.
func TestScreen(t *testing.T) {
	for live, want := range map[bool]string{
		false: "a\nb\nc\n",
		true:  "a\nb\n\x1b[2A\x1b[Jc\n",
	} {
		var b strings.Builder
		s := &screen{w: &b, live: live}
		s.show([]string{"a", "b"})
		s.show([]string{"a", "b"})
		s.show([]string{"c"})
		if b.String() != want {
			t.Errorf("live %t: %q, want %q", live, b.String(), want)
		}
	}
}

func TestColouredDiff(t *testing.T) {
	const diff = "--- a\n+++ b\n same\n-old\n+new"
	if got := string(colouredDiff([]byte(diff), false)); got != diff {
		t.Errorf("%q", got)
	}
	want := "\x1b[31m--- a\x1b[0m\n\x1b[32m+++ b\x1b[0m\n same\n\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m"
	if got := string(colouredDiff([]byte(diff), true)); got != want {
		t.Errorf("%q", got)
	}
}

// TestNoColour: what is no terminal, and who set NO_COLOR, gets none.
func TestNoColour(t *testing.T) {
	if newPainter(&strings.Builder{}) {
		t.Error("colours for what is no terminal")
	}
	if got := painter(true).paint(plain, "x") + painter(true).paint(red, ""); got != "x" {
		t.Errorf("%q", got)
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ text, names, err string }{
		{"kind: A\nmetadata: {name: a}\n---\n---\nkind: B\nmetadata: {name: b}\n", "[a b]", ""},
		{`{"kind": "A", "metadata": {"name": "a"}}`, "[a]", ""},
		{"kind: List\nitems: [{kind: A, metadata: {name: a}}, {kind: B, metadata: {name: b}}]", "[a b]", ""},
		{"", "[]", ""},
		{"metadata: {name: a}", "[]", "reading x: an object without a kind"},
		{"kind: [", "[]", "reading x: error converting YAML to JSON: yaml: line 1: did not find expected node content"},
	} {
		objects, err := decode("x", strings.NewReader(c.text))
		names := []string{}
		for _, o := range objects {
			names = append(names, o.GetName())
		}
		if fmt.Sprint(names) != c.names || fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%q: %v, %v", c.text, names, err)
		}
	}
}
