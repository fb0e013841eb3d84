package controller

import (
	"context"
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const reachableRetry = 2 * time.Second

// onceReachable calls f until it fails for another reason than that the API server cannot
// be reached, or ctx ends. f has to be repeatable.
func onceReachable(ctx context.Context, f func(context.Context) error) error {
	return wait.PollUntilContextCancel(ctx, reachableRetry, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if isUnreachable(err) {
			klog.FromContext(ctx).Error(err, "The API server is away; trying again", "after", reachableRetry)
			return false, nil
		}
		return true, err
	})
}

// isUnreachable says whether an error is that of an API server which cannot be reached,
// or is not up yet.
func isUnreachable(err error) bool {
	var request *url.Error
	return errors.As(err, &request) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
