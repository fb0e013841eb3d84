package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/bench/record"
)

// Sizes of what is measured.
const (
	fewMembers, manyAppSets = 3, 1000
	manyMembers, manyParts  = 200, 100
	someMembers, someParts  = 12, 20
	changes                 = 60
	rollouts                = 5
	deaths                  = 6
)

// Options of a run.
type Options struct {
	Config             *rest.Config
	Binary, Kubeconfig string
	// Rollouts, Members and AppSets say what is measured: rollouts and silent members of a small
	// fleet, and what many members, or many AppSets, take.
	Rollouts, Members, AppSets bool
	// Save is handed each figure when it is there.
	Save func(record.Fleet) error
}

// Run measures what the options ask for.
func Run(ctx context.Context, o Options) (err error) {
	h, err := connect(o.Config, o.Binary, o.Kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.clear(context.WithoutCancel(ctx))) }()
	if o.Rollouts {
		if err := h.filled(ctx, someMembers, someParts); err != nil {
			return err
		}
		if err := h.step(ctx, o.Save); err != nil {
			return err
		}
		if err := h.die(ctx, o.Save); err != nil {
			return err
		}
	}
	if o.AppSets {
		if err := h.filled(ctx, fewMembers, manyAppSets); err != nil {
			return err
		}
		if err := h.restart(ctx, record.FleetManyAppSets, manyAppSets, o.Save); err != nil {
			return err
		}
		if err := h.follow(ctx, o.Save); err != nil {
			return err
		}
	}
	if !o.Members {
		return nil
	}
	if err := h.filled(ctx, manyMembers, manyParts); err != nil {
		return err
	}
	return h.restart(ctx, record.FleetManyMembers, manyParts, o.Save)
}

func tell(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+"  "+format+"\n", args...)
}

// filled has a hub with AppSets that run in all members.
func (h *hub) filled(ctx context.Context, members, appSets int) error {
	if err := h.begin(ctx, members); err != nil {
		return err
	}
	for i := range appSets {
		if _, err := h.appSets.Create(ctx, appSet(i, members), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating an AppSet: %w", err)
		}
	}
	began := time.Now()
	err := h.process.until(ctx, "all AppSets run", func(ctx context.Context) bool {
		list, err := h.appSets.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		running := 0
		for i := range list.Items {
			if s := &list.Items[i].Status.AggrStatus; s.Status == v1beta1.PhaseRunning && int(s.Available) == 2*members {
				running++
			}
		}
		return running == appSets
	})
	tell("%d AppSets were installed in %d members after %.1f s", appSets, members, time.Since(began).Seconds())
	return err
}

// restart the controller while nothing changes.
func (h *hub) restart(ctx context.Context, name string, appSets int, save func(record.Fleet) error) error {
	if err := h.process.Stop(); err != nil {
		return err
	}
	h.forget()
	var err error
	if h.process, err = launch(ctx, h.binary, h.kubeconfig); err != nil {
		return err
	}
	at, err := h.process.synced(ctx, len(h.members), appSets)
	if err != nil {
		return err
	}
	used, err := h.process.usage()
	if err != nil {
		return err
	}
	h.mu.Lock()
	wrote := len(h.applied)
	h.mu.Unlock()
	return save(record.Fleet{Name: name, Members: len(h.members), AppSets: appSets, Memory: used.Peak, Writes: wrote,
		Spread: record.SpreadOf([]time.Duration{at.Sub(h.process.Started)})})
}

// follow scales AppSets: how soon are the parts written, and how soon does the hub tell of
// what the members say?
func (h *hub) follow(ctx context.Context, save func(record.Fleet) error) error {
	var there, back []time.Duration
	for i := range changes {
		h.forget()
		name := fmt.Sprintf("app-%d", i)
		want := int32(3 * len(h.members))
		watching, stop := context.WithCancel(ctx)
		seen, err := h.shows(watching, name, func(a *v1beta1.AppSet) bool { return a.Status.AggrStatus.Available == want })
		if err != nil {
			stop()
			return err
		}
		began := time.Now()
		patch := fmt.Sprintf(`{"spec": {"replicas": %d}}`, want)
		if _, err := h.appSets.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			stop()
			return fmt.Errorf("scaling an AppSet: %w", err)
		}
		select {
		case at := <-seen:
			applied, all := h.last(&h.applied, name, len(h.members))
			told, _ := h.last(&h.told, name, len(h.members))
			if !all {
				err = fmt.Errorf("AppSet %s shows what not all members have", name)
			}
			there, back = append(there, applied.Sub(began)), append(back, at.Sub(told))
		case <-time.After(patience):
			err = fmt.Errorf("AppSet %s does not follow", name)
		}
		stop()
		if err != nil {
			return err
		}
	}
	size := record.Fleet{Members: len(h.members), AppSets: manyAppSets}
	part, status := size, size
	part.Name, part.Spread = record.FleetPart, record.SpreadOf(there)
	status.Name, status.Spread = record.FleetStatus, record.SpreadOf(back)
	return errors.Join(save(part), save(status))
}

// shows sends the time at which the hub's AppSet is so.
func (h *hub) shows(ctx context.Context, name string, so func(*v1beta1.AppSet) bool) (<-chan time.Time, error) {
	one := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	list, err := h.appSets.List(ctx, one)
	if err != nil {
		return nil, fmt.Errorf("reading an AppSet: %w", err)
	}
	one.ResourceVersion = list.ResourceVersion
	events, err := h.appSets.Watch(ctx, one)
	if err != nil {
		return nil, fmt.Errorf("watching an AppSet: %w", err)
	}
	out := make(chan time.Time, 1)
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			if a, ok := event.Object.(*v1beta1.AppSet); ok && so(a) {
				out <- time.Now()
				return
			}
		}
	}()
	return out, nil
}

// die has members fall silent, one after the other.
func (h *hub) die(ctx context.Context, save func(record.Fleet) error) error {
	var took []time.Duration
	for i := range deaths {
		m := h.members[i]
		watching, stop := context.WithCancel(ctx)
		seen, err := h.shows(watching, "app-0", func(a *v1beta1.AppSet) bool {
			for k := range a.Status.AggrStatus.Clusters {
				if c := &a.Status.AggrStatus.Clusters[k]; c.Name == m.name {
					return c.State == v1beta1.ClusterOffline
				}
			}
			return false
		})
		if err == nil {
			began := time.Now()
			m.die()
			select {
			case at := <-seen:
				took = append(took, at.Sub(began))
			case <-time.After(patience):
				err = fmt.Errorf("member %s does not count as Offline", m.name)
			}
		}
		stop()
		if err != nil {
			return err
		}
	}
	return save(record.Fleet{Name: record.FleetOffline, Members: len(h.members), AppSets: someParts, Spread: record.SpreadOf(took)})
}
