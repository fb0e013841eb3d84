package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"tkestack.io/tapp/helm"
)

const notesFile = "NOTES.txt"

// rendering is one chart on its way to manifests.
type rendering struct {
	request  helm.Request
	progress io.Writer
	chart    *chart.Chart
	warnings warnings
}

// Render renders a chart in this process, as `helm install` would: what is not done is
// among the warnings. Errors about the chart are *helm.Error.
func Render(request helm.Request, progress io.Writer) (*helm.Rendered, error) {
	r := &rendering{request: request, progress: progress}
	out, err := r.render()
	if err == nil {
		return out, nil
	}
	e := &helm.Error{Message: steady(strings.TrimSpace(err.Error()))}
	if r.chart != nil {
		e.Chart = infoOf(r.chart).String()
	}
	return nil, e
}

func (r *rendering) render() (*helm.Rendered, error) {
	if err := r.load(); err != nil {
		return nil, err
	}
	user, err := r.userValues()
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(r.chart, user); err != nil {
		return nil, fmt.Errorf("its dependencies: %w", err)
	}
	// Before anything is added to the chart for rendering.
	record, err := json.Marshal(r.chart)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	values, err := r.values(user)
	if err != nil {
		return nil, err
	}
	files, err := r.execute(values)
	if err != nil {
		return nil, err
	}
	out := &helm.Rendered{Chart: infoOf(r.chart), Record: record, Notes: r.takeNotes(files)}
	if err := r.sort(files, out); err != nil {
		return nil, err
	}
	if out.Values, err = json.Marshal(user); err != nil {
		return nil, fmt.Errorf("encoding its values: %w", err)
	}
	out.Warnings = r.warnings.sorted()
	return out, nil
}

func infoOf(c *chart.Chart) helm.ChartInfo {
	return helm.ChartInfo{Name: c.Metadata.Name, Version: c.Metadata.Version, AppVersion: c.Metadata.AppVersion}
}

// load reads the archive. Its paths, names and version are judged by Helm's loader.
func (r *rendering) load() error {
	archive.MaxDecompressedChartSize = helm.MaxUnpacked
	c, err := loader.LoadArchive(bytes.NewReader(r.request.Chart))
	if c != nil && c.Metadata != nil {
		r.chart = c
	}
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	fmt.Fprintln(r.progress, helm.ProgressChart+infoOf(c).String())
	sortDependencies(c)
	// As helm install: a library is there to be used by other charts.
	if c.Metadata.Type != "" && c.Metadata.Type != "application" {
		return fmt.Errorf("%s charts are not installable", c.Metadata.Type)
	}
	if c.Metadata.Deprecated {
		r.warnings.add("the chart is deprecated")
	}
	return r.checkDependencies()
}

// sortDependencies: Helm's loader has them in the order of a map, and what is told of
// a chart has to be the same each time.
func sortDependencies(c *chart.Chart) {
	sorted := slices.SortedFunc(slices.Values(c.Dependencies()), func(a, b *chart.Chart) int { return strings.Compare(a.Name(), b.Name()) })
	c.SetDependencies(sorted...)
	for _, sub := range sorted {
		sortDependencies(sub)
	}
}

// checkDependencies: what Chart.yaml asks for has to be in the archive, as `helm
// package` puts it there.
func (r *rendering) checkDependencies() error {
	var missing []string
	for _, want := range r.chart.Metadata.Dependencies {
		if !slices.ContainsFunc(r.chart.Dependencies(), func(c *chart.Chart) bool { return c.Name() == want.Name }) {
			missing = append(missing, want.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("dependencies of Chart.yaml are missing in charts/ of the archive: %s", strings.Join(missing, ", "))
	}
	return nil
}

// values are all that the templates see.
func (r *rendering) values(user map[string]any) (common.Values, error) {
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	if want := r.chart.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", want, capabilities.KubeVersion.Version)
	}
	r.dropRemoteSchemas(r.chart)
	revision := max(r.request.Revision, 1)
	values, err := commonutil.ToRenderValues(r.chart, user, common.ReleaseOptions{
		Name: r.request.Release, Namespace: r.request.Namespace, Revision: revision,
		IsInstall: revision == 1, IsUpgrade: revision > 1,
	}, capabilities)
	if err != nil {
		return nil, err
	}
	return values, nil
}

func (r *rendering) capabilities() (*common.Capabilities, error) {
	out := common.DefaultCapabilities.Copy()
	if r.request.KubeVersion != "" {
		version, err := common.ParseKubeVersion(r.request.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("version %q of Kubernetes: %w", r.request.KubeVersion, err)
		}
		out.KubeVersion = *version
	}
	if len(r.request.APIVersions) > 0 {
		out.APIVersions = r.request.APIVersions
	}
	return out, nil
}

// announce is put before each template, where it tells which one is rendered. It adds
// no line.
const announce = "{{__tapp .}}"

// firstLine is where a message has a column in the first line of a template.
var firstLine = regexp.MustCompile(`(\.(?:yaml|yml|tpl|txt|json):1:)(\d+)`)

// execute runs the templates.
func (r *rendering) execute(values common.Values) (map[string]string, error) {
	announceAll(r.chart)
	e := engine.Engine{CustomTemplateFuncs: map[string]any{
		"__tapp": func(data map[string]any) string {
			if t, ok := data["Template"].(common.Values); ok {
				fmt.Fprintf(r.progress, "%s%v\n", helm.ProgressFile, t["Name"])
			}
			return ""
		},
		// As `helm template` has it.
		"lookup": func(string, string, string, string) (map[string]any, error) {
			r.warnings.add("a template calls lookup, which finds nothing here: charts are rendered without access to the cluster")
			return map[string]any{}, nil
		},
		"getHostByName": func(string) string {
			r.warnings.add("a template calls getHostByName, which finds nothing here: charts are rendered without network")
			return ""
		},
	}}
	files, err := e.RenderWithContext(context.Background(), r.chart, values)
	if err != nil {
		return nil, errors.New(withoutAnnounce(err.Error()))
	}
	size := 0
	for _, text := range files {
		size += len(text)
	}
	if size > helm.MaxManifest {
		return nil, fmt.Errorf("its templates become %d bytes; at most %d are possible", size, helm.MaxManifest)
	}
	return files, nil
}

func announceAll(c *chart.Chart) {
	for _, t := range c.Templates {
		if !strings.HasPrefix(path.Base(t.Name), "_") {
			t.Data = append([]byte(announce), t.Data...)
		}
	}
	for _, sub := range c.Dependencies() {
		announceAll(sub)
	}
}

// withoutAnnounce gives messages the columns that the chart's author sees.
func withoutAnnounce(message string) string {
	return firstLine.ReplaceAllStringFunc(message, func(place string) string {
		m := firstLine.FindStringSubmatch(place)
		column := 0
		if _, err := fmt.Sscan(m[2], &column); err != nil || column < len(announce) {
			return place
		}
		return fmt.Sprint(m[1], column-len(announce))
	})
}

// takeNotes removes the notes from the rendered files. Subcharts' are not shown, as
// helm does not show them either.
func (r *rendering) takeNotes(files map[string]string) string {
	notes := ""
	for name, text := range files {
		if !strings.HasSuffix(name, notesFile) {
			continue
		}
		if name == path.Join(r.chart.Name(), "templates", notesFile) {
			notes = text
		}
		delete(files, name)
	}
	return notes
}

// sort parts hooks from objects, and puts both into helm's order.
func (r *rendering) sort(files map[string]string, out *helm.Rendered) error {
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, m := range manifests {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	out.Manifest = b.String()
	objects, err := helm.Objects(out.Manifest)
	if err != nil {
		return err
	}
	r.warnDuplicates(objects)
	for _, h := range hooks {
		if _, err := helm.Objects(h.Manifest); err != nil {
			return fmt.Errorf("%s: %w", h.Path, err)
		}
		if slices.Contains(h.Events, release.HookTest) {
			r.warnings.add(fmt.Sprintf("%s is a test, which is not run here: `helm test %s` runs it", h.Path, r.request.Release))
		}
		out.Hooks = append(out.Hooks, hookOf(h))
	}
	var crds strings.Builder
	for _, crd := range r.chart.CRDObjects() {
		fmt.Fprintf(&crds, "---\n# Source: %s\n%s\n", crd.Filename, crd.File.Data)
	}
	out.CRDs = crds.String()
	if _, err := helm.Objects(out.CRDs); err != nil {
		return err
	}
	return nil
}

func (r *rendering) warnDuplicates(objects []helm.Object) {
	seen := map[string]string{}
	for _, o := range objects {
		id := strings.Join([]string{o.GroupVersionKind().GroupKind().String(), o.GetNamespace(), o.GetName()}, "/")
		if before, twice := seen[id]; twice {
			r.warnings.add(fmt.Sprintf("%s %s is in %s and in %s: the last one counts", o.GetKind(), o.GetName(), before, o.Source))
		}
		seen[id] = o.Source
	}
}

func hookOf(h *release.Hook) helm.Hook {
	out := helm.Hook{Name: h.Name, Kind: h.Kind, Path: h.Path, Manifest: h.Manifest, Weight: h.Weight}
	for _, e := range h.Events {
		out.Events = append(out.Events, e.String())
	}
	for _, p := range h.DeletePolicies {
		out.DeletePolicies = append(out.DeletePolicies, p.String())
	}
	for _, p := range h.OutputLogPolicies {
		out.OutputLogPolicies = append(out.OutputLogPolicies, p.String())
	}
	return out
}
