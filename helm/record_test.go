package helm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"tkestack.io/tapp/helm"
)

var at = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// decodeAsHelm is what helm's storage does with the Secret (pkg/storage/driver).
func decodeAsHelm(t interface{ Fatal(...any) }, data []byte) *release.Release {
	raw, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	out := &release.Release{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func encodeAsHelm(t interface{ Fatal(...any) }, r *release.Release) []byte {
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

func times() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "none") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()
	})
}

func records() *rapid.Generator[*helm.Record] {
	text := rapid.String()
	object := rapid.MapOfN(rapid.StringMatching(`[a-zA-Z]{1,8}`), text, 1, 4)
	return rapid.Custom(func(t *rapid.T) *helm.Record {
		r := &helm.Record{
			Name: rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "name"), Namespace: rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "namespace"),
			Version: rapid.IntRange(1, 1000).Draw(t, "version"), Manifest: text.Draw(t, "manifest"),
			ApplyMethod: rapid.SampledFrom([]string{"", helm.ApplyServerSide, helm.ApplyClientSide}).Draw(t, "method"),
			Info: helm.Info{
				FirstDeployed: times().Draw(t, "first"), LastDeployed: times().Draw(t, "last"), Deleted: times().Draw(t, "deleted"),
				Description: text.Draw(t, "description"), Notes: text.Draw(t, "notes"), RollbackRevision: rapid.IntRange(0, 9).Draw(t, "rollback"),
				Status: rapid.SampledFrom([]string{helm.StatusDeployed, helm.StatusFailed, helm.StatusPendingInstall}).Draw(t, "status"),
			},
		}
		r.Chart = raw(t, map[string]any{"metadata": map[string]any{"name": "web", "version": "1.0.0"}, "values": object.Draw(t, "values")})
		r.Config = raw(t, object.Draw(t, "config"))
		for range rapid.IntRange(0, 3).Draw(t, "hooks") {
			r.Hooks = append(r.Hooks, helm.Hook{
				Name: text.Draw(t, "hook"), Kind: "Job", Path: text.Draw(t, "path"), Manifest: text.Draw(t, "text"), Weight: rapid.Int().Draw(t, "weight"),
				Events: []string{helm.PreInstall}, DeletePolicies: []string{helm.HookFailed},
				LastRun: helm.HookRun{StartedAt: times().Draw(t, "started"), CompletedAt: times().Draw(t, "completed"), Phase: helm.HookPhaseSucceeded},
			})
		}
		if rapid.Bool().Draw(t, "labelled") {
			r.Labels = map[string]string{"team": "a"}
		}
		return r
	})
}

func raw(t *rapid.T, value any) json.RawMessage {
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRecordsAreHelms: helm reads all that a record says, and what helm writes of it
// comes back unchanged.
func TestRecordsAreHelms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := records().Draw(t, "record")
		secret, err := r.Secret(at)
		if err != nil {
			t.Fatal(err)
		}
		back, err := helm.DecodeRecord(secret)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, r) {
			t.Fatalf("there and back:\n%+v\n%+v", r, back)
		}
		theirs := decodeAsHelm(t, secret.Data["release"])
		if theirs.Chart.Metadata.Name != "web" || theirs.Info.Status.String() != r.Info.Status || len(theirs.Hooks) != len(r.Hooks) {
			t.Fatalf("helm reads %+v", theirs)
		}
		written := &corev1.Secret{ObjectMeta: secret.ObjectMeta, Data: map[string][]byte{"release": encodeAsHelm(t, theirs)}}
		again, err := helm.DecodeRecord(written)
		if err != nil {
			t.Fatal(err)
		}
		// Helm's chart has more fields than ours here.
		again.Chart = r.Chart
		if !reflect.DeepEqual(again, r) {
			t.Fatalf("through helm:\n%+v\n%+v", r, again)
		}
	})
}

func TestSecret(t *testing.T) {
	r := &helm.Record{Name: "blue", Namespace: "shop", Version: 3, Info: helm.Info{Status: helm.StatusDeployed}, Labels: map[string]string{"team": "a", "owner": "me"}}
	secret, err := r.Secret(at)
	if err != nil {
		t.Fatal(err)
	}
	want := metav1.ObjectMeta{Name: "sh.helm.release.v1.blue.v3", Namespace: "shop", Labels: map[string]string{
		"owner": "helm", "name": "blue", "status": "deployed", "version": "3", "modifiedAt": "1795521600", "team": "a",
	}}
	if !reflect.DeepEqual(secret.ObjectMeta, want) || secret.Type != "helm.sh/release.v1" {
		t.Errorf("%+v", secret)
	}
}

// TestLargeRecord: the sentence has the sizes, and what to do.
func TestLargeRecord(t *testing.T) {
	noise := make([]byte, 800<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	r := &helm.Record{Name: "blue", Version: 1, Chart: json.RawMessage(`{"metadata": {"name": "web", "version": "1.0.0"}}`), Manifest: base64.StdEncoding.EncodeToString(noise)}
	_, err := r.Secret(at)
	const want = `^chart web-1\.0\.0: its record has 1[01]\d{5} bytes, and a Secret holds 1048576: keep files out of the chart with \.helmignore, or make values and manifests smaller$`
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestHooksFor(t *testing.T) {
	hook := func(name string, weight int, events ...string) helm.Hook {
		return helm.Hook{Name: name, Weight: weight, Events: events}
	}
	hooks := []helm.Hook{hook("a", 5, helm.PreInstall), hook("d", -1, helm.PreInstall, helm.PreUpgrade), hook("c", 0, helm.PreInstall), hook("b", 0, helm.PreInstall), hook("e", 0, helm.PostInstall)}
	for event, want := range map[string]string{helm.PreInstall: "dbca", helm.PreUpgrade: "d", helm.PostInstall: "e", helm.PreDelete: ""} {
		got := ""
		for _, h := range helm.HooksFor(hooks, event) {
			got += h.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}

// TestHelm3Records: what helm 3 wrote has "" for times that are not set.
func TestHelm3Records(t *testing.T) {
	text := `{"name": "web", "version": 1, "info": {"first_deployed": "2020-01-02T03:04:05Z", "deleted": "", "status": "deployed"},
		"hooks": [{"name": "h", "last_run": {"started_at": "", "completed_at": "", "phase": ""}}]}`
	r, err := helm.DecodeRecord(&corev1.Secret{Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString([]byte(text)))}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Info.Deleted.IsZero() || r.Info.FirstDeployed.Year() != 2020 || !r.Hooks[0].LastRun.StartedAt.IsZero() {
		t.Errorf("%+v", r)
	}
}

func TestBadRecords(t *testing.T) {
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	for name, c := range map[string]struct{ data, want string }{
		"nothing":   {"", "reading the release in Secret shop/s: unexpected end of JSON input"},
		"no base64": {"%", "reading the release in Secret shop/s: illegal base64 data at input byte 0"},
		"no JSON":   {packed("a"), "reading the release in Secret shop/s: invalid character 'a' looking for beginning of value"},
		"no name":   {packed(`{"version": 1}`), "reading the release in Secret shop/s: it has no name or no version"},
		"a bomb":    {packed(strings.Repeat(" ", 65<<20)), "reading the release in Secret shop/s: it has more than 67108864 bytes"},
		"cut off":   {packed(`{"name": "a", "version": 1}`)[:16], "reading the release in Secret shop/s: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}, Data: map[string][]byte{"release": []byte(c.data)}}
			if _, err := helm.DecodeRecord(s); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(base64.StdEncoding.EncodeToString([]byte(`{"name": "web", "version": 1, "info": {"deleted": ""}}`))))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := helm.DecodeRecord(&corev1.Secret{Data: map[string][]byte{"release": data}})
		if err != nil {
			return
		}
		if _, err := r.Secret(at); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
