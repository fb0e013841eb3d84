package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/client"
)

// In full, as the kubelets report them: the names are compared.
const (
	oldImage = "docker.io/library/demo:v1"
	newImage = "docker.io/library/demo:v2"
)

// bench holds what all measurements share.
type bench struct {
	core       *kubernetes.Clientset
	tapps      *client.Client
	kubeconfig string
	binary     string
	gate       bool
	skipBare   bool
}

func newBench(cfg *rest.Config, kubeconfig, binary string, gate bool) (*bench, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = -1, -1, "bench" // no limit: the API server is the limit
	tapps, err := client.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the client of TApps: %w", err)
	}
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return &bench{core: core, tapps: tapps, kubeconfig: kubeconfig, binary: binary, gate: gate}, nil
}

// result of one contender in one phase.
type result struct {
	create, update time.Duration
	usage          usage
}

func (b *bench) run(ctx context.Context, sizes []int, rounds int) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "instances\tphase\tbare client\ttapp\tratio\tcontroller CPU\tcontroller memory")
	for _, n := range sizes {
		var bare, tapp []result
		for round := range rounds {
			for _, c := range []struct {
				name string
				run  func(context.Context, string, int) (result, error)
				to   *[]result
			}{{"bare", b.bare, &bare}, {"tapp", b.tapp, &tapp}} {
				if b.skipBare && c.name == "bare" {
					continue
				}
				fmt.Fprintf(os.Stderr, "%d instances, round %d of %d: %s\n", n, round+1, rounds, c.name)
				r, err := b.inNamespace(ctx, fmt.Sprintf("bench-%s-%d-%d", c.name, n, round), n, c.run)
				if err != nil {
					return fmt.Errorf("%s with %d instances: %w", c.name, n, err)
				}
				fmt.Fprintf(os.Stderr, "  created in %.2f s, updated in %.2f s, controller %.2f s of CPU and %d MB\n",
					r.create.Seconds(), r.update.Seconds(), r.usage.cpu.Seconds(), r.usage.peak>>20)
				*c.to = append(*c.to, r)
			}
		}
		for _, phase := range []struct {
			name string
			of   func(result) time.Duration
		}{
			{"create", func(r result) time.Duration { return r.create }},
			{"update in place", func(r result) time.Duration { return r.update }},
		} {
			ours := median(tapp, phase.of).Seconds()
			limit, ratio := "-", "-"
			if len(bare) > 0 {
				seconds := median(bare, phase.of).Seconds()
				limit, ratio = fmt.Sprintf("%.2f s", seconds), fmt.Sprintf("%.2f", ours/seconds)
			}
			u := tapp[len(tapp)-1].usage
			fmt.Fprintf(table, "%d\t%s\t%s\t%.2f s\t%s\t%.2f s\t%d MB\n", n, phase.name, limit, ours, ratio, u.cpu.Seconds(), u.peak>>20)
		}
	}
	return table.Flush()
}

func median(rs []result, of func(result) time.Duration) time.Duration {
	all := make([]time.Duration, 0, len(rs))
	for _, r := range rs {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// inNamespace runs a measurement in a namespace of its own, and waits until all
// is gone before the next one: pods that are going away cost the API server, too.
func (b *bench) inNamespace(ctx context.Context, name string, n int, f func(context.Context, string, int) (result, error)) (result, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := b.core.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return result{}, fmt.Errorf("creating the namespace: %w", err)
	}
	r, err := f(ctx, name, n)
	if clean := b.clean(context.WithoutCancel(ctx), name); err == nil {
		err = clean
	}
	return r, err
}

func (b *bench) clean(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := b.deletePods(ctx, name); err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	if err := b.core.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting the namespace: %w", err)
	}
	return b.await(ctx, name, 0, func(*corev1.Pod) bool { return true })
}

// deletePods deletes one by one: a collection of thousands takes the API server
// longer than a request may.
func (b *bench) deletePods(ctx context.Context, namespace string) error {
	pods, err := b.core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(writers)
	for i := range pods.Items {
		g.Go(func() error {
			err := b.core.CoreV1().Pods(namespace).Delete(ctx, pods.Items[i].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}
