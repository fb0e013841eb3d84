package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/test/sim/apiserver"
)

const (
	chartURL = "demo/web"
	// fetchTime is how long a repository takes to answer.
	fetchTime = 2 * time.Second
	// sweepAge of archives that nothing uses: a run lasts some minutes.
	sweepAge = 30 * time.Second
)

var errNoChart = errors.New("the repository does not answer")

// charted makes an AppSet one of a chart, beside a template that then has no effect.
func charted(a *v1beta1.AppSet, version int) {
	a.Spec.PodSpec.DeployType = v1beta1.DeployHelm
	a.Spec.PodSpec.Chart = &v1beta1.ChartSpec{ChartURL: &v1beta1.ChartURL{URL: chartURL, ChartVersion: strconv.Itoa(version)}}
}

// fetch is a repository, in which one version is published again and again, with other bytes.
func (r *replica) fetch(ctx context.Context, url, version string) ([]byte, error) {
	w := r.world
	select {
	case <-w.clock.After(fetchTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if w.is(chartsGone, "") {
		return nil, errNoChart
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	archive := []byte(fmt.Sprintf("%s %s, published %d times", url, version, w.published))
	w.archives[podset.DigestOf(archive)] = url + " " + version
	return archive, nil
}

// placeOf an archive is where it is from.
func (w *world) placeOf(digest string) string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.archives[digest]
}

// judgeCharts is F11: what a member is given of a chart are the bytes that the others have of
// it, and it has them before it is told of them.
func (w *world) judgeCharts(c *cluster, after *v1beta1.AdvDeployment) error {
	for _, u := range w.placed(c, after) {
		if u.Content.Chart == nil {
			continue
		}
		w.coverage["F11 judged"]++
		digest := u.Content.Chart.Digest
		kept, ok := apiserver.Find[*corev1.Secret](c.Store, apiserver.Secrets, apiserver.KeyOf(v1beta1.DefaultChartNamespace, u.Content.Chart.SecretName()))
		if !ok || podset.DigestOf(kept.Data[v1beta1.KeyChart]) != digest {
			return fmt.Errorf("F11: %s is given a part that needs the archive %s, and does not have it", c.name, digest)
		}
		for _, name := range w.names {
			part, ok := apiserver.Find[*v1beta1.AdvDeployment](w.members[name].Store, parts, apiserver.Key(after))
			if !ok || name == c.name || part.Labels[v1beta1.LabelAppSetUID] != after.Labels[v1beta1.LabelAppSetUID] {
				continue
			}
			for _, other := range w.placed(w.members[name], part) {
				if has := other.Content.Chart; has != nil && has.Digest != digest && w.placeOf(has.Digest) == w.placeOf(digest) {
					return fmt.Errorf("F11: %s is given other bytes of the chart %s than %s has", c.name, w.placeOf(digest), name)
				}
			}
		}
	}
	return nil
}

// judgeDropped is F11, too: the hub has the archives of what rollouts return to.
func (w *world) judgeDropped(s *corev1.Secret) error {
	digest := podset.DigestIn(&corev1.LocalObjectReference{Name: s.Name})
	w.coverage["F11 judged of an archive that is dropped"]++
	for _, r := range apiserver.All[*appsv1.ControllerRevision](w.hub.Store, apiserver.Revisions) {
		if history := podset.HistoryIn(r); history != nil && slices.Contains(history.Digests(), digest) {
			return fmt.Errorf("F11: the hub drops the archive %s, which revision %s has", digest, r.Name)
		}
	}
	return nil
}

// chartSettled says what is wrong about the charts of a part where all is at rest.
func (w *world) chartSettled(a *v1beta1.AppSet, c *cluster, part *v1beta1.AdvDeployment) error {
	if !w.plan.Charted {
		return nil
	}
	want := chartURL + " " + a.Spec.PodSpec.Chart.ChartURL.ChartVersion
	for _, u := range w.placed(c, part) {
		if has := w.placeOf(u.Content.Chart.Digest); has != want {
			return fmt.Errorf("cluster %s: podSet %s has the chart %s, and %s is asked for", c.name, u.PodSet.Name, has, want)
		}
	}
	return nil
}

// charts have versions that are published anew while they roll out, repositories that do not
// answer, and processes that end before what they fetched is stored, or written on.
func (p *Plan) charts(rng *rand.Rand) {
	p.begin(3, 420)
	p.Charted = true
	for _, at := range []int{0, 110 + rng.IntN(40), 230 + rng.IntN(60)} {
		if at > 0 {
			p.edits(at, []string{"chart", "chart", "scale"}[rng.IntN(3)], rng.IntN(60), rng.IntN(60))
		}
		for range 2 + rng.IntN(3) { // while it is on its way
			p.strikes(at+20+rng.IntN(90), []string{republished, republished, chartsGone, cutThere, orderly, clockJump}[rng.IntN(6)], rng.IntN(40))
		}
		if rng.IntN(2) == 0 {
			p.strikes(at+10+rng.IntN(60), []string{workerLate, podSetsLate, cutThere}[rng.IntN(3)], rng.IntN(40))
		}
	}
	for step := 60; step < p.Horizon; step += 8 + rng.IntN(4) { // archives grow old
		p.strikes(step, clockJump, 1)
	}
	for range rng.IntN(4) {
		site := append(chartSites(), "member patch advdeployments", "hub patch controllerrevisions")[rng.IntN(7)]
		p.Faults = append(p.Faults, Fault{Step: rng.IntN(p.Horizon), Kind: writeFaults()[rng.IntN(len(writeFaults()))], Site: site})
	}
	p.sort()
}
