package plugin

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

const none = "<none>"

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

// age of a time, as kubectl writes it.
func age(at *metav1.Time, now time.Time) string {
	if at == nil || at.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

func images(list []string) string { return orNone(strings.Join(list, ",")) }

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
