package fleet

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tkestack.io/tapp/fleet/health"
)

// Reasons of members that are alive and cannot be used.
const (
	ReasonUnauthorized = "Unauthorized"
	ReasonForbidden    = "Forbidden"
	ReasonCertificate  = "Certificate"
	ReasonRedirect     = "Redirect"
	ReasonNoAPI        = "NoAdvDeployments"
	ReasonNoServer     = "NoAPIServer"
	ReasonNotKept      = "IdentityNotKept"
	// ReasonInternal says that a bug ended what was done for the member.
	ReasonInternal = "InternalError"
)

const maxMessage = 256

// judge says what an error of a probe or a list tells about the member.
func judge(err error) health.Result {
	refused := func(reason, message string) health.Result {
		return health.Result{Outcome: health.Refused, Reason: reason, Message: bounded(message)}
	}
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var kept *keepError
	var alert tls.AlertError
	switch {
	case err == nil:
		return health.Result{}
	case errors.As(err, &kept) && apierrors.IsConflict(kept.err): // it is read anew soon
		return health.Result{Outcome: health.Silent, Reason: ReasonNotKept, Message: bounded(kept.Error())}
	case kept != nil:
		return refused(ReasonNotKept, kept.Error())
	case errors.Is(err, errNotKept):
		return refused(ReasonNotKept, errNotKept.Error())
	case errors.Is(err, errRedirect):
		return refused(ReasonRedirect, errRedirect.Error())
	case errors.As(err, &verification), errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return refused(ReasonCertificate, "its certificate is not one that the kubeconfig trusts: "+words(err))
	case errors.As(err, &alert):
		return refused(ReasonCertificate, "it does not take our client certificate: "+words(err))
	case apierrors.IsUnauthorized(err):
		return refused(ReasonUnauthorized, "it does not know our credentials; they may have expired or been revoked. kubectl tapp fleet join makes new ones")
	case apierrors.IsForbidden(err):
		return refused(ReasonForbidden, "our rights there do not suffice: "+words(err))
	case apierrors.IsNotFound(err):
		return refused(ReasonNoAPI, "it has no AdvDeployments; install tapp there with the worker")
	}
	return health.Result{Outcome: health.Silent, Reason: health.ReasonSilent, Message: bounded(words(err))}
}

// words of an error that stay the same from one time to the next: neither the URL nor the
// port that happened to be ours.
func words(err error) string {
	var request *url.Error
	for errors.As(err, &request) {
		if request.Timeout() {
			return "its API server does not answer in time"
		}
		err = request.Err
	}
	var network *net.OpError
	if errors.As(err, &network) {
		text := network.Op
		if network.Addr != nil && network.Op == "dial" {
			text += " " + network.Addr.String()
		}
		return text + ": " + network.Err.Error()
	}
	if strings.Contains(err.Error(), "context deadline exceeded") {
		return "its API server does not answer in time"
	}
	return err.Error()
}

func bounded(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}
