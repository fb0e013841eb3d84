package dashboard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// send an action, and return the answer and the command lines that ran.
func send(t *testing.T, path, body string, fail error) (code int, answer string, lines []string) {
	t.Helper()
	a := newActions(func(_ context.Context, args []string, out io.Writer) error {
		lines = append(lines, strings.Join(args, " "))
		if fail == nil {
			_, _ = io.WriteString(out, "done: "+args[0]+"\n")
		}
		return fail
	})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String()), lines
}

func TestActions(t *testing.T) {
	const web = `"kind":"tapps","namespace":"shop","name":"web"`
	const set = `"kind":"appsets","namespace":"shop","name":"web"`
	for body, want := range map[string]struct{ plan, run []string }{
		`{"verb":"kill",` + web + `,"ids":"0-3,7"}`:     {[]string{"kill -n shop web 0-3,7 --plan"}, []string{"kill -n shop web 0-3,7"}},
		`{"verb":"start",` + web + `,"ids":"7"}`:        {[]string{"start -n shop web 7 --plan"}, []string{"start -n shop web 7"}},
		`{"verb":"restart",` + web + `,"ids":"7"}`:      {[]string{"restart -n shop web 7 --plan"}, []string{"restart -n shop web 7"}},
		`{"verb":"pause",` + web + `}`:                  {[]string{"pause -n shop web --plan"}, []string{"pause -n shop web"}},
		`{"verb":"resume",` + web + `}`:                 {[]string{"resume -n shop web --plan"}, []string{"resume -n shop web"}},
		`{"verb":"undo",` + web + `,"revision":"2"}`:    {[]string{"undo -n shop web --to-revision 2 --plan"}, []string{"undo -n shop web --to-revision 2"}},
		`{"verb":"confirm",` + set + `,"stage":"blue"}`: {[]string{"fleet confirm -n shop web --stage blue --dry-run=server", "fleet explain -n shop web"}, []string{"fleet confirm -n shop web --stage blue"}},
		`{"verb":"undo",` + set + `,"revision":"3"}`:    {[]string{"fleet undo -n shop web --to-revision 3 --dry-run=server", "fleet explain -n shop web"}, []string{"fleet undo -n shop web --to-revision 3"}},
		`{"verb":"pause",` + set + `}`:                  {[]string{"fleet pause -n shop web --dry-run=server", "fleet explain -n shop web"}, []string{"fleet pause -n shop web"}},
	} {
		for path, lines := range map[string][]string{"/actions/plan": want.plan, "/actions/run": want.run} {
			code, answer, got := send(t, path, body, nil)
			if code != http.StatusOK || !slices.Equal(got, lines) {
				t.Errorf("%s %s: %d, ran %q, want %q", path, body, code, got, lines)
			}
			if want := `{"command":"kubectl tapp ` + strings.Join(wantRun(want.run), ""); !strings.HasPrefix(answer, want) {
				t.Errorf("%s %s: %s, want %s...", path, body, answer, want)
			}
		}
	}
}

func wantRun(run []string) []string { return run[:1] }

func TestBadActions(t *testing.T) {
	for body, message := range map[string]string{
		`{"verb":"delete","kind":"tapps","namespace":"a","name":"b"}`:                        `verb: there is no action \"delete\"`,
		`{"verb":"confirm","kind":"tapps","namespace":"a","name":"b"}`:                       `kind: \"confirm\" cannot be done with \"tapps\"`,
		`{"verb":"undo","kind":"apps","namespace":"a","name":"b"}`:                           `kind: \"undo\" cannot be done with \"apps\"`,
		`{"verb":"kill","kind":"appsets","namespace":"a","name":"b","ids":"1"}`:              `kind: \"kill\" cannot be done with \"appsets\"`,
		`{"verb":"pause","kind":"tapps","namespace":"--kubeconfig=x","name":"b"}`:            `namespace: \"--kubeconfig=x\" is no name of a namespace`,
		`{"verb":"pause","kind":"tapps","namespace":"a","name":"--all"}`:                     `name: \"--all\" is no name of an object`,
		`{"verb":"kill","kind":"tapps","namespace":"a","name":"b"}`:                          `ids: \"\" are no ids of instances, such as 0-3,7`,
		`{"verb":"kill","kind":"tapps","namespace":"a","name":"b","ids":"--all"}`:            `ids: \"--all\" are no ids of instances, such as 0-3,7`,
		`{"verb":"pause","kind":"tapps","namespace":"a","name":"b","ids":"1"}`:               `ids: \"1\" are no ids of instances, such as 0-3,7`,
		`{"verb":"undo","kind":"tapps","namespace":"a","name":"b","revision":"-x"}`:          `revision: \"-x\" is no revision to undo to`,
		`{"verb":"pause","kind":"tapps","namespace":"a","name":"b","revision":"1"}`:          `revision: \"1\" is no revision to pause to`,
		`{"verb":"confirm","kind":"appsets","namespace":"a","name":"b","stage":"--comment"}`: `stage: \"--comment\" is no stage to confirm`,
		`{"verb":"pause","kind":"tapps","namespace":"a","name":"b","dryRun":true}`:           `reading the request: json: unknown field \"dryRun\"`,
		`{`: `reading the request: unexpected EOF`,
	} {
		code, answer, ran := send(t, "/actions/run", body, nil)
		if code < 400 || !strings.Contains(answer, `"message":"`+message+`"`) || len(ran) > 0 {
			t.Errorf("%s: %d %s, ran %q; want the message %s", body, code, answer, ran, message)
		}
	}
}

func TestActionsByForm(t *testing.T) {
	for name, r := range map[string]*http.Request{
		"GET":  httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/actions/run", nil),
		"form": httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/actions/run", strings.NewReader("verb=pause")),
	} {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		newActions(func(context.Context, []string, io.Writer) error { t.Error("it ran"); return nil }).ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

func TestFailedAction(t *testing.T) {
	code, answer, _ := send(t, "/actions/run", `{"verb":"pause","kind":"tapps","namespace":"a","name":"b"}`, errors.New("tapps \"b\" is forbidden"))
	if code != http.StatusConflict || !strings.Contains(answer, `tapps \"b\" is forbidden`) {
		t.Errorf("%d %s", code, answer)
	}
}

// TestManyActions: more than a few beside each other are refused, and not queued.
func TestManyActions(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	a := newActions(func(context.Context, []string, io.Writer) error { begun <- struct{}{}; <-end; return nil })
	do := func() *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/actions/run", strings.NewReader(`{"verb":"pause","kind":"tapps","namespace":"a","name":"b"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w
	}
	done := make(chan int, maxActions)
	for range maxActions {
		go func() { done <- do().Code }()
		<-begun
	}
	if w := do(); w.Code != http.StatusTooManyRequests {
		t.Errorf("one more: %d", w.Code)
	}
	close(end)
	for range maxActions {
		if code := <-done; code != http.StatusOK {
			t.Errorf("one of them: %d", code)
		}
	}
}

func TestBounded(t *testing.T) {
	b := &bounded{most: 5}
	for _, s := range []string{"abc", "def", "ghi"} {
		if n, err := io.WriteString(b, s); n != 3 || err != nil {
			t.Errorf("writing: %d %v", n, err)
		}
	}
	if b.String() != "abcde" {
		t.Errorf("it has %q", b.String())
	}
}
