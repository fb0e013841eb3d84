package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/process/parallel"
)

const (
	defaultTail = 1000
	maxTail     = 10_000
	// maxLog bounds a log that is not followed, in bytes.
	maxLog = 16 << 20
	// defaultContainer is kubectl's annotation.
	defaultContainer = "kubectl.kubernetes.io/default-container"
)

func (a *API) podLog(q *request) error {
	pod, _, err := a.ownedPod(q, "log")
	if err != nil {
		return err
	}
	return a.writeLog(q, a.clients.core, pod, func() error {
		_, _, err := a.ownedPod(q, "log")
		return err
	})
}

// logOptions are what the query says.
func (q *request) logOptions(pod *corev1.Pod) (*corev1.PodLogOptions, error) {
	tail, err := q.number("tail", defaultTail, 0, maxTail)
	if err != nil {
		return nil, err
	}
	lines := int64(tail)
	o := &corev1.PodLogOptions{Container: q.r.URL.Query().Get("container"), TailLines: &lines, Follow: q.flag("follow"), Previous: q.flag("previous"), Timestamps: q.flag("timestamps")}
	var names []string
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	if o.Container == "" {
		o.Container = names[0]
		if named := pod.Annotations[defaultContainer]; slices.Contains(names, named) {
			o.Container = named
		}
	}
	if !slices.Contains(names, o.Container) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s has no container %q; it has %v", pod.Name, answer.Shorten(o.Container), names))
	}
	if !o.Follow {
		most := int64(maxLog)
		o.LimitBytes = &most
	}
	return o, nil
}

// writeLog copies a log to the caller. still says from time to time whether he still may.
func (a *API) writeLog(q *request, core corev1client.PodsGetter, pod *corev1.Pod, still func() error) error {
	o, err := q.logOptions(pod)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(q.ctx())
	defer cancel()
	if o.Follow {
		end, err := a.beginStream(q)
		if err != nil {
			return err
		}
		defer end()
		stop := context.AfterFunc(a.topics.Context(), cancel)
		defer stop()
		var beside parallel.Group
		defer beside.Wait()
		defer cancel()
		beside.Do(func() { a.recheckUntil(ctx, q, still, cancel) })
	}
	source, err := core.Pods(pod.Namespace).GetLogs(pod.Name, o).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	h := q.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	q.w.WriteHeader(http.StatusOK)
	if q.r.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(q.w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := source.Read(buffer)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(a.Limits.Write)) // a recorder has none
			if _, err := q.w.Write(buffer[:n]); err != nil {
				return errSent
			}
			if o.Follow && control.Flush() != nil {
				return errSent
			}
			_ = control.SetWriteDeadline(time.Time{}) // HTTP/2 would end the stream then, while it waits for lines
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return errSent
		}
	}
}

// recheckUntil ends a log that is followed when the caller may not any more.
func (a *API) recheckUntil(ctx context.Context, q *request, still func() error, cancel func()) {
	every := time.NewTicker(a.Limits.Recheck)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			_, err := a.Authenticator.Authenticate(ctx, q.r)
			if err == nil {
				err = still()
			}
			if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				a.metrics.ended.WithLabelValues("denied").Inc()
				cancel()
				return
			}
		}
	}
}
