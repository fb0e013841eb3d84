//go:build programs && !linux

package main

import "github.com/spf13/cobra"

// nodeCommand has nothing: real nodes need Linux.
func nodeCommand(string) *cobra.Command { return nil }
