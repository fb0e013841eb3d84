package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	for name, test := range map[string]struct {
		in       string
		want     string
		count    count
		failed   bool
		failures string
	}{
		"all well": {
			in: `{"Action":"run","Package":"a","Test":"T"}
{"Action":"output","Package":"a","Test":"T","Output":"chatter\n"}
{"Action":"pass","Package":"a","Test":"T"}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass","Package":"a"}`,
			want:  "ok  \ta\t0.1s\n",
			count: count{Passed: 1},
		},
		"a failed test": {
			in: `{"Action":"output","Package":"a","Test":"T","Output":"    t.go:1: why\n"}
{"Action":"fail","Package":"a","Test":"T"}
{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}
{"Action":"fail","Package":"a"}`,
			want:     "    t.go:1: why\nFAIL\ta\t0.1s\n",
			count:    count{Failed: 1},
			failed:   true,
			failures: "a T\n  t.go:1: why",
		},
		"a failed subtest among chatter": {
			in: `{"Action":"output","Package":"a","Test":"T/s","Output":"    t.go:1: chatter\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"    t.go:2: one\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"I1121 20:08:13.06 9911 sync.go:59] \"Synced\"\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"    t.go:3: two\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"        more of two\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"    reflector.go:434: I1127 20:36:38.397259] Stopping\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"    t.go:4: three\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"    t.go:5: four\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"    t.go:6: five\n"}
{"Action":"fail","Package":"a","Test":"T/s"}
{"Action":"output","Package":"a","Test":"T","Output":"--- FAIL: T (0.1s)\n"}
{"Action":"fail","Package":"a","Test":"T"}`,
			want: "    t.go:1: chatter\n    t.go:2: one\nI1121 20:08:13.06 9911 sync.go:59] \"Synced\"\n" +
				"    t.go:3: two\n        more of two\n    reflector.go:434: I1127 20:36:38.397259] Stopping\n" +
				"    t.go:4: three\n    t.go:5: four\n    t.go:6: five\n--- FAIL: T (0.1s)\n",
			count:    count{Failed: 2},
			failed:   true,
			failures: "a T/s\n  t.go:2: one\n  t.go:3: two\n  more of two\n  t.go:4: three\n  t.go:5: four\n  t.go:6: five",
		},
		"a script, by what its last commands printed": {
			in: `{"Action":"output","Package":"a","Test":"T/s","Output":"    testscript.go:584: WORK=$WORK\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"        > exec get\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"        [stdout]\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"        none\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"        > stdout one\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"        FAIL: testdata/s.txtar:14: no match for one\n"}
{"Action":"output","Package":"a","Test":"T/s","Output":"        \n"}
{"Action":"fail","Package":"a","Test":"T/s"}`,
			want: "    testscript.go:584: WORK=$WORK\n        > exec get\n        [stdout]\n        none\n        > stdout one\n" +
				"        FAIL: testdata/s.txtar:14: no match for one\n        \n",
			count:  count{Failed: 1},
			failed: true,
			failures: "a T/s\n  testscript.go:584: WORK=$WORK\n  > exec get\n  [stdout]\n  none\n  > stdout one\n" +
				"  FAIL: testdata/s.txtar:14: no match for one",
		},
		"a crash": {
			in: `{"Action":"run","Package":"a","Test":"T"}
{"Action":"output","Package":"a","Test":"T","Output":"panic: why\n"}
{"Action":"fail","Package":"a"}`,
			want:     "panic: why\n",
			failed:   true,
			failures: "a T\n  panic: why",
		},
		"code that does not compile": {
			in: `{"ImportPath":"a","Action":"build-output","Output":"a.go:1: why\n"}
{"ImportPath":"a","Action":"build-fail"}`,
			want:   "a.go:1: why\n",
			failed: true,
		},
		"text of another program": {in: `go: downloading x`, want: "go: downloading x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out := &strings.Builder{}
			r := &report{out: out, output: map[string][]string{}}
			if err := r.read(strings.NewReader(test.in), time.Hour); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want || r.count != test.count || r.failed != test.failed {
				t.Errorf("printed %q, counted %+v, failed %v", out, r.count, r.failed)
			}
			if got := strings.Join(r.failures, "\n"); got != test.failures {
				t.Errorf("tells at the end %q, want %q", got, test.failures)
			}
		})
	}
}

func TestAdd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "count")
	for range 2 {
		if err := add(file, count{Passed: 2, Skipped: 1}); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(file)
	if want := `{"Passed":4,"Failed":0,"Skipped":2}`; err != nil || string(content) != want {
		t.Errorf("the file holds %s, %v", content, err)
	}
}
