package app

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/shell"
	plan "tkestack.io/tapp/plan/app"
)

// patience is how long the caches may lack our own writes. No harm would come of
// planning on such caches, as every write is conditional; but it would be written
// in vain. After that an App is planned on a live view, and the marks are dropped.
const patience = 5 * time.Second

// guard remembers the writes for one App that the caches may lack: an informer's
// store knows the newest resourceVersion that it has seen.
type guard struct {
	app      string // the newest resourceVersion that we wrote
	children map[plan.Kind]string
	gone     map[plan.Child]types.UID
	since    time.Time // when the caches were first found lacking; zero: not yet
}

func (g *guard) wroteApp(version string) {
	if shell.Newer(version, g.app) {
		g.app = version
	}
}

func (g *guard) wrote(kind plan.Kind, version string) {
	if g.children == nil {
		g.children = map[plan.Kind]string{}
	}
	if shell.Newer(version, g.children[kind]) {
		g.children[kind] = version
	}
}

func (g *guard) deleted(child plan.Child, uid types.UID) {
	if g.gone == nil {
		g.gone = map[plan.Child]types.UID{}
	}
	g.gone[child] = uid
}

// check says how long to wait for the caches, or that a live view is due; neither:
// they have all that was written.
func (g *guard) check(c *Controller, namespace string, now time.Time) (wait time.Duration, live bool) {
	if g.seen(c, namespace) {
		*g = guard{}
		return 0, false
	}
	if g.since.IsZero() {
		g.since = now
	}
	if left := patience - now.Sub(g.since); left > 0 {
		return left, false
	}
	*g = guard{}
	return 0, true
}

func (g *guard) seen(c *Controller, namespace string) bool {
	stores := map[plan.Kind]cache.Store{plan.Deployment: c.deployments.GetStore(), plan.Service: c.services.GetStore()}
	if shell.Newer(g.app, c.apps.GetStore().LastStoreSyncResourceVersion()) {
		return false
	}
	for kind, version := range g.children {
		if shell.Newer(version, stores[kind].LastStoreSyncResourceVersion()) {
			return false
		}
	}
	for child, uid := range g.gone {
		object, exists, _ := stores[child.Kind].GetByKey(namespace + "/" + child.Name)
		if o, ok := object.(metav1.Object); exists && ok && o.GetUID() == uid && o.GetDeletionTimestamp() == nil {
			return false
		}
	}
	return true
}
