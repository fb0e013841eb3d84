package process

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// keys is a logger that writes nothing, and knows the key of the object that a process
// syncs where it is handed down.
type keys struct{ key string }

func (keys) Init(logr.RuntimeInfo)          {}
func (keys) Enabled(int) bool               { return false }
func (keys) Info(int, string, ...any)       {}
func (keys) Error(error, string, ...any)    {}
func (k keys) WithName(string) logr.LogSink { return k }
func (k keys) WithValues(all ...any) logr.LogSink {
	for i := 0; i+1 < len(all); i += 2 {
		if all[i] == "key" {
			k.key = fmt.Sprint(all[i+1])
		}
	}
	return k
}

// KeyOf the object whose sync asks for something; empty: no sync does.
func KeyOf(ctx context.Context) string {
	k, _ := klog.FromContext(ctx).GetSink().(keys)
	return k.key
}
