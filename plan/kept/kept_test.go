package kept

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// TestContentOf: every cell of the table of losses.
func TestContentOf(t *testing.T) {
	type row map[Hold]Content
	for cause, row := range map[Cause]row{
		Lost:    {Paused: AsItWas, Free: Present, NoRoom: AsItWas},
		Failed:  {Paused: AsItWas, Free: Present, NoRoom: Present},
		Updated: {Paused: Present, Free: Present, NoRoom: Present},
		New:     {Paused: Usual, Free: Present, NoRoom: Usual},
		Started: {Paused: AsItWas, Free: Present, NoRoom: Present},
	} {
		for hold, want := range row {
			if got := ContentOf(cause, hold); got != want {
				t.Errorf("cause %d, hold %d: content %d, not %d", cause, hold, got, want)
			}
		}
	}
}

func TestContents(t *testing.T) {
	c := ReadContents(map[string]string{"a": "0-3,7", "b": "4,8-10", "bad": "x,-1,3-1,9-,11-z"})
	for id, want := range map[int]string{0: "a", 3: "a", 4: "b", 5: "", 6: "", 7: "a", 8: "b", 10: "b", 11: "", 1000: ""} {
		if got := c.Of(id); got != (Last{Hash: want}) {
			t.Errorf("instance %d had %+v, not %q", id, got, want)
		}
	}
	if got := ReadContents(nil).Of(0); got != (Last{}) {
		t.Errorf("instance 0 had %+v, and nothing is known", got)
	}
	var w Writer
	if got := w.Stored(); got != nil {
		t.Errorf("stored is %v", got)
	}
	for _, id := range []int{0, 1, 2, 3, 7} {
		w.Add(id, Last{Hash: "a", Follows: id > 1})
		w.Add(id+100, Last{Hash: "b"}) // of any order among hashes
	}
	stored := w.Stored()
	if got, want := fmt.Sprint(stored), "map[a:0-1,2-3!,7! b:100-103,107]"; got != want {
		t.Errorf("stored is %s, not %s", got, want)
	}
	c = ReadContents(stored)
	for id, want := range map[int]Last{1: {"a", false}, 2: {"a", true}, 3: {"a", true}, 7: {"a", true}, 103: {"b", false}} {
		if got := c.Of(id); got != want {
			t.Errorf("instance %d had %+v, not %+v", id, got, want)
		}
	}
}

// TestContentsAreBounded: instances beyond 32 KiB are not told of, and all before are.
func TestContentsAreBounded(t *testing.T) {
	var w Writer
	const n = 50_000
	for id := range n {
		w.Add(id, Last{"hash-" + strconv.Itoa(id%2), true}) // no two in a row have the same
	}
	stored := w.Stored()
	size := 0
	for hash, ids := range stored {
		size += len(hash) + len(ids)
	}
	if size > MaxBytes || size < MaxBytes/3 {
		t.Errorf("%d bytes, and at most %d are allowed", size, MaxBytes)
	}
	c, known := ReadContents(stored), 0
	for id := range n {
		switch got := c.Of(id).Hash; {
		case got == "hash-"+strconv.Itoa(id%2) && known == id:
			known++
		case got != "":
			t.Fatalf("instance %d had %q, and %d before it are known", id, got, known)
		}
	}
	if known == 0 {
		t.Error("no instance is known")
	}
}

func templateOf(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}}}
}

func hashOf(t *testing.T, image string) string {
	t.Helper()
	spec := templateOf(image)
	h, err := template.Hash(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return h.Template
}

func revisionOf(number int64, data string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-" + strconv.FormatInt(number, 10)}, Revision: number, Data: runtime.RawExtension{Raw: []byte(data)}}
}

// former templates: 1 has web:1; 2 has web:2, and web:1 by the name blue, which instance 5
// has; 3 cannot be read; 4 has web:3 alone.
func former(t *testing.T) *Templates {
	t.Helper()
	text := func(image string) string {
		return `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"` + image + `","name":"web","resources":{}}]}}`
	}
	return ReadTemplates([]*appsv1.ControllerRevision{
		revisionOf(1, `{"spec":{"template":`+text("web:1")+`}}`),
		revisionOf(2, `{"spec":{"template":`+text("web:2")+`,"templatePool":{"blue":`+text("web:1")+`},"templates":{"5":"blue"},"defaultTemplateName":"default"}}`),
		revisionOf(3, `{"spec":{"template":"what?"`),
		revisionOf(4, `{"spec":{"template":`+text("web:3")+`}}`),
	})
}

func TestTemplates(t *testing.T) {
	f := former(t)
	one, two, three, four := hashOf(t, "web:1"), hashOf(t, "web:2"), hashOf(t, "web:3"), hashOf(t, "web:4")
	for hash, want := range map[string]int64{one: 2, two: 2, three: 4} {
		has := f.Find(hash)
		if has == nil || has.Revision != want || has.Hashes.Template != hash || len(has.Spec.Spec.Containers) != 1 {
			t.Errorf("%s: found %+v, not revision %d", hash, has, want)
		}
	}
	if has := f.Find(four); has != nil {
		t.Errorf("found %+v, which no revision has", has)
	}
	for _, c := range []struct{ id, hash, name string }{
		{"0", one, "default"}, {"5", one, "blue"}, {"0", two, "default"}, {"5", two, ""}, {"0", three, "default"}, {"0", four, ""},
	} {
		if name := f.NameOf(c.id, c.hash); name != c.name {
			t.Errorf("instance %s came to %s by the name %q, not %q", c.id, c.hash, name, c.name)
		}
	}
	used := map[string]bool{one: true, four: true}
	for number, want := range map[int64]bool{1: false, 2: true, 3: false, 4: false} {
		if got := f.IsNewestOf(number, used); got != want {
			t.Errorf("revision %d is used: %t", number, got)
		}
	}
}

func TestDecide(t *testing.T) {
	one, two, three, four := hashOf(t, "web:1"), hashOf(t, "web:2"), hashOf(t, "web:3"), hashOf(t, "web:4")
	readable := strings.NewReplacer(one, "<1>", two, "<2>", three, "<3>", four, "<4>")
	all := former(t)
	usual := `; it comes as most serving instances of template "default" do (hash <1>), since spec.paused is true`
	for name, c := range map[string]struct {
		i        Instance
		serving  map[string]int
		unread   bool
		foresees bool
		rejects  string
		want     string
	}{
		"nothing to roll out":            {i: Instance{Had: four, Cause: Lost, Hold: Paused}, want: "present"},
		"lost while paused":              {i: Instance{Had: one, Cause: Lost, Hold: Paused}, want: "<1> ; it comes as it was (template hash <1>), since spec.paused is true"},
		"lost without room":              {i: Instance{Had: two, Cause: Lost, Hold: NoRoom}, want: "<2> ; it comes as it was (template hash <2>), since the budget has no room for its update"},
		"lost, and there is room":        {i: Instance{Had: one, Cause: Lost}, want: "present"},
		"ordered to another name":        {i: Instance{ID: "5", Had: one, Cause: Lost, Hold: NoRoom}, want: "present"},
		"ordered, and paused":            {i: Instance{ID: "5", Had: one, Cause: Lost, Hold: Paused}, want: "<1> ; it comes as it was (template hash <1>), since spec.paused is true"},
		"by an unknown way":              {i: Instance{ID: "5", Had: two, Cause: Lost, Hold: NoRoom}, want: "<2> ; it comes as it was (template hash <2>), since the budget has no room for its update"},
		"not read":                       {i: Instance{Had: one, Cause: Lost, Hold: Paused}, unread: true, want: "unread"},
		"not read, and only foreseen":    {i: Instance{Had: one, Cause: Lost, Hold: Paused}, unread: true, foresees: true, want: "present ; it comes as it was (template hash <1>), since spec.paused is true"},
		"lost, nothing known":            {i: Instance{Cause: Started, Hold: Paused}, serving: map[string]int{one: 2}, want: "<1> " + usual},
		"of another program":             {i: Instance{Had: "1234", Cause: Lost, Hold: Paused}, serving: map[string]int{one: 2}, want: "<1> " + usual},
		"new, most serve another":        {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{one: 2, four: 1}, want: "<1> " + usual},
		"new, most serve the present":    {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{one: 1, four: 2}, want: "present"},
		"new, as many serve the present": {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{one: 2, four: 2}, want: "present"},
		"new, none serves":               {i: Instance{Cause: New, Hold: Paused}, want: "present"},
		"new, the newer of two":          {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{one: 2, three: 2}, want: `<3> ; it comes as most serving instances of template "default" do (hash <3>), since spec.paused is true`},
		"new, not read":                  {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{one: 2}, unread: true, want: "unread"},
		"new, only the present serves":   {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{four: 2}, unread: true, want: "present"},
		"new, foreseen":                  {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{one: 2}, unread: true, foresees: true, want: "present " + usual},
		"the revision is gone":           {i: Instance{Had: "v1-0123456789abcdef", Cause: Lost, Hold: Paused}, serving: map[string]int{one: 1}, want: "RevisionLost <1> ; no revision has the template that it had (hash v1-0123456789abcdef)" + usual},
		"it is gone, and none serves":    {i: Instance{Had: "v1-0123456789abcdef", Cause: Lost, Hold: NoRoom}, want: "RevisionLost present ; no revision has the template that it had (hash v1-0123456789abcdef); it comes with its present template"},
		"the selector misses it":         {i: Instance{Had: two, Cause: Lost, Hold: Paused}, rejects: "web:2", want: "RevisionLost present ; no revision has the template that it had (hash <2>); it comes with its present template"},
		"what is gone is not usual":      {i: Instance{Cause: New, Hold: Paused}, serving: map[string]int{two: 5, one: 1}, rejects: "web:2", want: "<1> " + usual},
	} {
		t.Run(name, func(t *testing.T) {
			i := c.i
			i.Template, i.Present = "default", four
			d := Decider{Former: all, Foresees: c.foresees, Serving: map[string]map[string]int{"default": c.serving, "blue": {two: 9}},
				Selects: func(s *corev1.PodTemplateSpec) bool { return s.Spec.Containers[0].Image != c.rejects }}
			if c.unread {
				d.Former = nil
			}
			b := d.Decide(&i)
			got := "present"
			if b.Template != nil {
				got = b.Template.Hashes.Template
			}
			if b.Unread {
				got = "unread"
			}
			got = strings.TrimSpace(b.Reason + " " + got + " " + b.Why)
			if got = readable.Replace(got); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func TestStillStarts(t *testing.T) {
	ready := func(is corev1.ConditionStatus, since time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is, LastTransitionTime: ago(since)}}
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   time.Duration
	}{
		"starting":        {func(*corev1.Pod) {}, 9 * time.Minute},
		"Ready":           {ready(corev1.ConditionTrue, time.Second), 0},
		"was Ready":       {ready(corev1.ConditionFalse, 10*time.Second), 0},
		"never was Ready": {ready(corev1.ConditionFalse, 50*time.Second), 9 * time.Minute},
		"too old":         {func(p *corev1.Pod) { p.CreationTimestamp = ago(10 * time.Minute) }, 0},
		"restarted":       {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 }, 0},
		"its image is not had": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		}, 0},
		"its image is fetched": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		}, 9 * time.Minute},
		"without a status": {func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }, 9 * time.Minute},
		"a container not begun": {func(p *corev1.Pod) {
			ready(corev1.ConditionFalse, 10*time.Second)(p)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{})
		}, 9 * time.Minute},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(time.Minute)}, Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(30 * time.Second)}}}}}}
		c.change(pod)
		if left, is := StillStarts(pod, now, 10*time.Minute); left != c.want || is != (c.want > 0) {
			t.Errorf("%s: %t, for %s, not %s", name, is, left, c.want)
		}
	}
}

func TestIsKept(t *testing.T) {
	a, b := hashOf(t, "a"), hashOf(t, "b")
	for name, c := range map[string]struct {
		label, annotation string
		want              bool
	}{"from its template": {a, "", false}, "kept": {a, a, true}, "updated since": {b, a, false}, "neither": {"", "", false},
		"its hash was taken": {"", a, true}, "its hash was overwritten": {"wrong", a, true}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{tappv1.LabelTemplateHash: c.label}, Annotations: map[string]string{tappv1.AnnotationKept: c.annotation}}}
		if got := IsKept(pod); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestCauseAndLastContent(t *testing.T) {
	failed := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}}}
	evicted := failed.DeepCopy()
	evicted.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	running := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	ours, present := hashOf(t, "a"), hashOf(t, "b")
	for name, c := range map[string]struct {
		pod               *corev1.Pod
		had               Last
		forUpdate, killed bool
		cause             Cause
		last              Last
	}{
		"failed":                    {failed, Last{ours, false}, false, false, Failed, Last{ours, true}},
		"failed, of another scheme": {failed, Last{"a", false}, false, false, Failed, Last{present, true}},
		"evicted":                   {evicted, Last{ours, false}, false, false, Lost, Last{ours, false}},
		"evicted after it failed":   {evicted, Last{ours, true}, false, false, Failed, Last{ours, true}},
		"vanished":                  {nil, Last{ours, false}, false, false, Lost, Last{ours, false}},
		"vanished after it failed":  {nil, Last{ours, true}, false, false, Started, Last{ours, true}},
		"deleted for update":        {nil, Last{ours, false}, true, false, Updated, Last{ours, false}},
		"started again":             {nil, Last{ours, false}, false, true, Started, Last{ours, true}},
		"started, and never ran":    {nil, Last{}, false, true, Started, Last{present, true}},
		"new":                       {nil, Last{}, false, false, New, Last{}},
		"running":                   {running, Last{ours, false}, false, false, Lost, Last{ours, false}},
	} {
		if got := CauseOf(c.pod, c.had, c.forUpdate, c.killed); got != c.cause {
			t.Errorf("%s: cause %d, not %d", name, got, c.cause)
		}
		if got := LastOf(c.pod, c.had, present, c.killed); got != c.last {
			t.Errorf("%s: had %+v, not %+v", name, got, c.last)
		}
	}
}
