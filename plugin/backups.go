package plugin

import (
	"github.com/spf13/cobra"

	"tkestack.io/tapp/plugin/backup"
)

func newBackup(e *environment) *cobra.Command {
	c := backup.NewBackup(e.forBackups())
	c.ValidArgsFunction = e.completeTApps(noLimit)
	return c
}

func newRestore(e *environment) *cobra.Command { return backup.NewRestore(e.forBackups()) }

func (e *environment) forBackups() backup.Options {
	return backup.Options{
		Streams: e.streams, Usage: func(err error) error { return usageError{err} }, Clean: clean,
		Connect: func() (*backup.Cluster, error) {
			s, err := e.connect()
			if err != nil {
				return nil, err
			}
			return &backup.Cluster{Namespace: s.namespace, Objects: s.dynamic}, nil
		},
	}
}
