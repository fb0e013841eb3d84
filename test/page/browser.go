//go:build cluster

package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience ends what hangs; nothing waits longer than it has to.
const patience = 10 * time.Minute

// chromium starts the browser for all tests of the package. It gets a profile of its own
// that goes with it, and asks nobody but the servers of the tests.
func chromium(ctx context.Context) (context.Context, func(), error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, fmt.Errorf("chromium is missing (Debian: apt-get install chromium): %w", err)
	}
	profile, err := os.MkdirTemp("", "tapp-page-")
	if err != nil {
		return nil, nil, err
	}
	flag := func(name string) chromedp.ExecAllocatorOption { return chromedp.Flag(name, true) }
	allocator, cancel := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, flag("disable-quic"),
		flag("disable-background-networking"), flag("disable-component-update"), flag("disable-sync"), flag("disable-dev-shm-usage"))
	browser, end := chromedp.NewContext(allocator)
	stop := func() {
		end()
		cancel()
		_ = os.RemoveAll(profile) // it is in the folder for temporary files
	}
	if err := chromedp.Do(browser); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting chromium: %w", err)
	}
	return browser, stop, nil
}

// tab is a page of the browser, with cookies and storage of its own.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// look is how a tab is seen.
type look struct {
	width, height int64
	scale         float64
	dark          bool
}

var (
	desk  = look{width: 1360, height: 900, scale: 1}
	night = look{width: 1360, height: 900, scale: 1, dark: true}
	phone = look{width: 360, height: 740, scale: 1}
	wall  = look{width: 3840, height: 2160, scale: 1}
)

// open a tab at an address. When the test ends, whatever the browser has complained of
// fails it: errors of scripts, violations of the content security policy, refused loads.
func open(t *testing.T, l look, address string) *tab {
	t.Helper()
	b := &tab{T: t}
	ctx, cancel := chromedp.NewContext(suite.browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.listen))
	ctx, stop := context.WithTimeout(ctx, patience)
	b.ctx = ctx
	t.Cleanup(func() {
		if t.Failed() {
			b.shoot(filepath.Join("..", "..", "dist", "page", "failed-"+strings.ReplaceAll(t.Name(), "/", "-")+".png"))
		}
		stop()
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			t.Errorf("the browser says: %s", p)
		}
	})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	call(b, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true}) // tapp api makes one of its own
	b.see(l)
	b.visit(address)
	return b
}

func (b *tab) listen(event any) {
	var problem string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			problem = fmt.Sprintf("console.%s: %s", e.Type, texts(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			problem = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
	if problem == "" || strings.Contains(problem, "ERR_NETWORK_CHANGED") { // the machine's doing: other clusters' nodes come and go
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

func texts(args []*runtime.RemoteObject) string {
	var out []string
	for _, a := range args {
		out = append(out, string(a.Value)+a.Description)
	}
	return strings.Join(out, " ")
}

// expect takes those complaints of the browser back that a test has caused itself. It
// returns how many there were.
func (b *tab) expect(part string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.problems)
	b.problems = slices.DeleteFunc(b.problems, func(p string) bool { return strings.Contains(p, part) })
	return before - len(b.problems)
}

func (b *tab) see(l look) {
	b.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: l.scale, Mobile: l.width < 500})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// call a command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	out, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// visit another address.
func (b *tab) visit(address string) {
	b.Helper()
	b.do(chromedp.Navigate(address))
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return out
}

// until waits until an expression is true. The page's own policy forbids chromedp.Poll,
// which makes functions of text.
func (b *tab) until(what, expression string) {
	b.Helper()
	ok := eval[bool](b, fmt.Sprintf(`new Promise((resolve) => {
		const end = Date.now() + %d;
		(function look() { if (%s) resolve(true); else if (Date.now() > end) resolve(false); else setTimeout(look, 30); })();
	})`, (patience/2).Milliseconds(), expression))
	if !ok {
		b.Fatalf("%s: it did not come about. The page says:\n%s", what, b.text("body"))
	}
}

// shows waits until an element has a text in it.
func (b *tab) shows(selector, text string) {
	b.Helper()
	b.until(fmt.Sprintf("%s shows %q", selector, text), fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, text))
}

// text of the first element.
func (b *tab) text(selector string) string {
	b.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// shoot writes a picture of what is seen.
func (b *tab) shoot(path string) {
	b.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Errorf("making a picture: %v", err)
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		b.Error(err)
		return
	}
	if err := os.WriteFile(path, png, 0o600); err != nil {
		b.Error(err)
	}
}

// point at the square of an instance, and press it.
func (b *tab) point(id string) {
	b.Helper()
	x, y := b.square(id)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}
func (b *tab) press(id string) { b.Helper(); x, y := b.square(id); b.do(chromedp.MouseClickXY(x, y)) }

// square is where that of an instance is. It is scrolled to.
func (b *tab) square(id string) (x, y float64) {
	b.Helper()
	p := eval[[]float64](b, fmt.Sprintf(`(() => { const g = window.tappGrid, n = g.place.get(%q); g.element.scrollIntoView({block: "center"}); const r = g.element.getBoundingClientRect();
		return [r.left + g.gutter + (n %% g.columns + .5) * g.pitch, r.top + (Math.floor(n / g.columns) + .5) * g.pitch - g.element.scrollTop]; })()`, id))
	return p[0], p[1]
}

// click an element, which is scrolled to first.
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
}

func (b *tab) focus(selector string) {
	b.Helper()
	eval[bool](b, fmt.Sprintf("(document.querySelector(%q).focus({focusVisible: true}), true)", selector))
}

// focused is the name of the element that has the focus.
func (b *tab) focused() string {
	b.Helper()
	return eval[string](b, `(() => { const e = document.activeElement;
		return (e.getAttribute('aria-label') ?? document.querySelector('label[for="' + e.id + '"]')?.innerText ?? e.innerText ?? '').trim(); })()`)
}

// keys by their names in the browser's protocol.
var keys = map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Home": kb.Home, "End": kb.End,
	"ArrowRight": kb.ArrowRight, "ArrowLeft": kb.ArrowLeft, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp}

// key presses one.
func (b *tab) key(name string) {
	b.Helper()
	if code, ok := keys[name]; ok {
		name = code
	}
	b.do(chromedp.KeyEvent(name))
}

// enter a text into a field, and send its form.
func (b *tab) enter(selector, text string) {
	b.Helper()
	b.until(selector+" is there", fmt.Sprintf("document.querySelector(%q)", selector))
	b.focus(selector)
	b.do(chromedp.KeyEvent(text), chromedp.KeyEvent(kb.Enter))
}

// paste a text into a field.
func (b *tab) paste(selector, text string) {
	b.Helper()
	b.until(selector+" is there", fmt.Sprintf("document.querySelector(%q)", selector))
	b.focus(selector)
	call(b, input.InsertText, input.InsertTextParams{Text: text})
}

// button presses the one with this text.
func (b *tab) button(within, text string) {
	b.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find((e) => e.innerText === %q)", within+" button", text)
	b.until("there is a button "+text, find)
	eval[bool](b, "("+find+".click(), true)")
}

func (b *tab) location() string { b.Helper(); return eval[string](b, "location.href") }
